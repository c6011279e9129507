"""When a source sends latency markers, and for how much of its time each of them stands."""

from __future__ import annotations

LONGEST_GAP_US = 200_000
"""The gap between two markers of a source that reads nothing grows up to this."""


class MarkerSchedule:
    """When a source sends its next latency marker, and for how much of its time it stands.

    A long rest has markers of its own, which stand for its whole length: what became due during it is in no buffer by
    chance. The rest of the time is sampled: a marker stands for the time since the one before it, at no fixed distance,
    because a distance that is a multiple of the buffer timeout would find every buffer equally full, and seldom while
    the source reads nothing.

    Sampling in proportion to size, with the largest units taken for certain: Hansen and Hurwitz, "On the Theory of
    Sampling from Finite Populations", 1943.

    Args:
        now_us: processing time.
        interval_us: between two markers, on average, while it reads.

    Attributes:
        due_us: when the next marker is due.
        long_us: a rest of this length has markers of its own, which are due at its end.

    Example:
        >>> schedule = MarkerSchedule(0, 20_000)
        >>> schedule.cover(20_000), schedule.due_us
        (20000, 42000)
        >>> schedule.long_us
        10000
        >>> schedule.cover(70_000, 40_000), schedule.due_us  # the 10 ms before the rest are left to the next marker
        (40000, 82000)
    """

    __slots__ = ("_gap_us", "_interval_us", "_read", "_sent", "_since_us", "due_us", "long_us")

    def __init__(self, now_us: int, interval_us: int) -> None:
        self.due_us = now_us
        self._since_us = now_us
        self._interval_us = self._gap_us = interval_us
        self.long_us = interval_us // 2
        self._read = 0
        self._sent = 0

    def space(self, read: int, interval_us: int) -> None:
        """Choose the gap to the next marker, by how many records the source has read so far."""
        self._interval_us, self.long_us = interval_us, interval_us // 2
        if read == self._read:
            self._gap_us = min(2 * self._gap_us, max(interval_us, LONGEST_GAP_US))
        else:
            self._read, self._gap_us = read, interval_us

    def cover(self, now_us: int, rested_us: int = 0) -> int:
        """A marker is sent now; returns the time for which it stands, microseconds."""
        if rested_us >= self.long_us:
            self._since_us += rested_us
            self.due_us += rested_us
            return rested_us
        covers_us = min(now_us - self._since_us, 2 * self._interval_us)
        self._since_us = now_us
        self._sent += 1
        turn = self._sent * 618 % 1_000  # spreads evenly over the thousand
        self.due_us = now_us + max(1_000, (500 + turn) * self._gap_us // 1_000_000 * 1_000)
        return covers_us
