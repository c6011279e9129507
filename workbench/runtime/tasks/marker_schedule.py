"""When a source sends latency markers."""

from __future__ import annotations

LONGEST_GAP_US = 200_000
"""The gap between two markers of a source that reads nothing grows up to this."""


class MarkerSchedule:
    """When a source sends its next latency marker: at no fixed distance from the last one, because a distance that is a
    multiple of the buffer timeout would find every buffer equally full, and seldom while the source reads nothing.

    Args:
        now_us: processing time.
        interval_us: between two markers, on average, while it reads.

    Attributes:
        due_us: when the next marker is due.

    Example:
        >>> schedule = MarkerSchedule(0, 20_000)
        >>> schedule.advance(0)
        >>> schedule.due_us
        22000
    """

    __slots__ = ("_gap_us", "_read", "_sent", "due_us")

    def __init__(self, now_us: int, interval_us: int) -> None:
        self.due_us = now_us
        self._gap_us = interval_us
        self._read = 0
        self._sent = 0

    def space(self, read: int, interval_us: int) -> None:
        """Choose the gap to the next marker, by how many records the source has read so far."""
        if read == self._read:
            self._gap_us = min(2 * self._gap_us, max(interval_us, LONGEST_GAP_US))
        else:
            self._read, self._gap_us = read, interval_us

    def advance(self, from_us: int) -> None:
        """A marker is sent that stands for `from_us`."""
        self._sent += 1
        turn = self._sent * 618 % 1_000  # spreads evenly over the thousand
        self.due_us = from_us + max(1_000, (500 + turn) * self._gap_us // 1_000_000 * 1_000)
