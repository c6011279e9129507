"""When a source sends latency markers, and for how much of its time each of them stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.durations import NO_TIME
from workbench.elements import LatencyMarker
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.tasks.kept_markers import FEW, markers_after

Stretch = tuple[int, int]
"""When the last of the records that a source has read together became due, and how long before it the first, both
microseconds: until when, and for how long, the source had not read."""

LONGEST_GAP_US = 200_000
"""The gap between two markers of a source that reads nothing grows up to this."""


class MarkerSchedule:
    """When a source sends its next latency marker, and for how much of its time it stands.

    A long rest has markers of its own, which stand for its whole length: what became due during it is in no buffer by
    chance. So has a long time in which the source was held up, by its receiver or by a busy machine. The rest of the
    time is sampled: a marker stands for the time since the one before it, at no fixed distance, because a distance that
    is a multiple of the buffer timeout would find every buffer equally full, and seldom while the source reads nothing.

    Where a source has a schedule, all times are those at which its records were due.

    Sampling in proportion to size, with the largest units taken for certain: Hansen and Hurwitz, "On the Theory of
    Sampling from Finite Populations", 1943.

    Args:
        now_us: processing time.
        interval_us: between two markers, on average, while it reads.

    Attributes:
        due_us: when the next marker is due.
        interval_us: between two markers, as given last.
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

    __slots__ = ("_gap_us", "_read", "_sent", "_since_us", "due_us", "interval_us", "long_us")

    def __init__(self, now_us: int, interval_us: int) -> None:
        self.due_us = now_us
        self._since_us = now_us
        self.interval_us = self._gap_us = interval_us
        self.long_us = interval_us // 2
        self._read = 0
        self._sent = 0

    def space(self, read: int, interval_us: int) -> None:
        """Choose the gap to the next marker, by how many records the source has read so far."""
        self.interval_us, self.long_us = interval_us, interval_us // 2
        if read == self._read:
            self._gap_us = min(2 * self._gap_us, max(interval_us, LONGEST_GAP_US))
        else:
            self._read, self._gap_us = read, interval_us

    def wants(self, until_us: int, rested_us: int) -> bool:
        """Whether a marker is to be sent for what became due until then, in so long a time."""
        return until_us >= self.due_us or rested_us >= self.long_us

    def cover(self, until_us: int, rested_us: int = 0) -> int:
        """A marker is sent for what became due until then; returns the time for which it stands, microseconds."""
        if rested_us >= self.long_us:
            self._since_us = min(self._since_us + rested_us, until_us)
            self.due_us = min(self.due_us + rested_us, until_us + self.interval_us)
            return rested_us
        covers_us = max(0, min(until_us - self._since_us, 2 * self.interval_us))
        self._since_us = until_us
        self._sent += 1
        turn = self._sent * 618 % 1_000  # spreads evenly over the thousand
        self.due_us = until_us + max(1_000, (500 + turn) * self._gap_us // 1_000_000 * 1_000)
        return covers_us


class SourceMarkers:
    """The latency markers of one source.

    Args:
        source: name of the task.
        outputs: where it sends them.
        now_us, interval_us: see `MarkerSchedule`.

    Attributes:
        schedule: when they are due.
        scheduled: whether the reader says when records were due.
        resumed_us: what was due earlier, while the source was paused, has not waited.
    """

    __slots__ = ("_outputs", "_source", "resumed_us", "schedule", "scheduled")

    def __init__(self, source: str, outputs: Sequence[EdgeOutput], now_us: int, interval_us: int) -> None:
        self._source, self._outputs = source, outputs
        self.schedule = MarkerSchedule(now_us, interval_us)
        self.scheduled = False
        self.resumed_us = NO_TIME

    def stretch(self, due_us: tuple[int, int], records: int) -> Stretch:
        """When some records became due that were read together.

        Args:
            due_us: when the first and the last of them were.
            records: how many there are, at equal distances; the last became due half a distance ago on average.

        Example:
            >>> SourceMarkers("read[0]", (), 0, 20_000).stretch((1_000, 3_000), 3)
            (3500, 2500)
        """
        first_us, last_us = due_us
        if first_us < self.resumed_us:
            first_us, last_us = self.resumed_us, max(last_us, self.resumed_us)
        until_us = last_us + (last_us - first_us) // max(1, 2 * (records - 1))
        return until_us, until_us - first_us

    def begin(self, due_us: tuple[int, int], records: int, turn: int) -> Stretch:
        """The same of records that are sent next: the outputs note what they hold before that."""
        for output in self._outputs:
            output.markers.begin_rest(turn)
        return self.stretch(due_us, records)

    def are_due(self, now_us: int, rested_us: int, found: int, records: int, *, reads_on: bool) -> bool:
        """Whether a marker is sent now that tells of no record whose time is known.

        Args:
            now_us: processing time.
            rested_us: how long the source has rested before this step; 0: not at all.
            found: records that it has read in this step.
            records: the same since the rest began.
            reads_on: there may be more to read now.
        """
        if self.scheduled:  # a marker that tells of no record is sent only where none comes for long
            return not (found or rested_us) and now_us >= self.schedule.due_us + LONGEST_GAP_US
        return self.schedule.wants(now_us, rested_us) and (not rested_us or (records > 0 and not reads_on))

    def of(self, stretch: Stretch, records: int, turn: int, now_us: int, rests: bool) -> Iterator[LatencyMarker]:
        """The marker that is due, or those of a long time: one for each channel.

        Args:
            stretch: when the records became due that they tell of.
            records: that have been read; 0: the first of them may have become due at any time.
            turn: of few records, decides for which one a marker stands.
            now_us: processing time.
            rests: whether the source has rested lately: otherwise a marker that is not of a long time happens to be in
                a buffer.
        """
        until_us, rested_us = stretch
        by_chance = not rests and rested_us < self.schedule.long_us
        for output in self._outputs:
            output.markers.lag_us = now_us - until_us + rested_us if by_chance else None
            if not rested_us and not self.scheduled:
                output.markers.end_rest()
        covers_us = self.schedule.cover(until_us, rested_us)
        places = records if 0 < records < FEW else max((len(output.pending) for output in self._outputs), default=1)
        count = max(1, min(rested_us // self.schedule.interval_us, places))
        return markers_after(rested_us, records, until_us, self._source, turn, covers_us, count)
