"""The window assigner: a small frozen object that determines the windows of a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

import numpy as np

from workbench.durations import EARLIEST_TIME, LONGEST_US, MAX_TIME
from workbench.elements import Int64s
from workbench.errors import RecordError
from workbench.raised import PASSING, described, kind_of

_FIRST_BOUND = EARLIEST_TIME - LONGEST_US
"""No window of a record starts earlier."""

Bounds = Literal["time", "position", "none"]
"""The form of ``window_start`` and ``window_end`` in results: times, positions among a key's records, or omitted."""

Assigned = tuple[Int64s, Int64s, Int64s]
"""Pairs of a record and a window: the record's row, the window's start and its end, each of shape (pairs,)."""


class WindowAssigner:
    """Base of all assigners; define your own by overriding `windows`, preferably as a frozen dataclass.

    The same object serves event time and processing time, which ``.window(time=...)`` selects.

    Source: F1-7; Flink's ``WindowAssigner``.

    Example:
        >>> class Shifts(WindowAssigner):
        ...     '''Early shift from 6 to 14 h, late shift from 14 to 22 h (UTC); the night belongs to no window.'''
        ...     def windows(self, time_us):
        ...         hour, day = 3_600_000_000, 86_400_000_000
        ...         midnight = time_us - time_us % day
        ...         for start in (midnight + 6 * hour, midnight + 14 * hour):
        ...             if start <= time_us < start + 8 * hour:
        ...                 yield start, start + 8 * hour
        >>> [list(Shifts().windows(hour * 3_600_000_000)) for hour in (3, 6)]
        [[], [(21600000000, 50400000000)]]
    """

    __slots__ = ()

    bounds: ClassVar[Bounds] = "time"
    needs_times: ClassVar[bool] = True
    """Whether a record without a time belongs to no window."""

    def windows(self, time_us: int) -> Iterable[tuple[int, int]]:
        """The windows that a time belongs to; there may be none.

        Args:
            time_us: microseconds since 1970 (of count windows a position, from 0).

        Returns:
            Pairs of start and end, in microseconds since 1970; the end no longer belongs to the window. Both are from
            -2**62 to 2**63 - 1; a window that ends after all event times (2**61) lasts until the input ends.
        """
        raise NotImplementedError(type(self).__name__)  # abstract

    def panes(self, times: Int64s) -> Int64s:
        """Shape (n,): for each time a representative with the same windows, so that `windows` is called for few.

        By default every time is its own representative.

        Args:
            times: shape (n,), microseconds since 1970.
        """
        return times

    def assign(self, times: Int64s) -> Assigned:
        """The windows of many times; the pairs are in the order of the rows.

        Args:
            times: shape (n,), microseconds since 1970.
        """
        distinct, inverse = np.unique(times, return_inverse=True)
        windows = [self._told(time) for time in distinct.tolist()]
        counts = np.array([len(some) for some in windows], np.int64)
        flat = self._checked([bounds for some in windows for bounds in some])
        firsts = np.cumsum(counts) - counts
        repeats = counts[inverse]
        rows = np.repeat(np.arange(len(times)), repeats)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        at = np.repeat(firsts[inverse], repeats) + within
        return rows, flat[at, 0], flat[at, 1]

    def _told(self, time_us: int) -> list[tuple[int, int]]:
        """The windows of one time; an exception of a user's class is reported with the class's name."""
        try:
            return list(self.windows(time_us))
        except PASSING:
            raise
        except BaseException as error:
            raise RecordError(
                f"the windows of {kind_of(self)} failed for {time_us} (microseconds since 1970) with "
                f"{described(error)}; they must be pairs of start and end"
            ) from error

    def _checked(self, windows: Sequence[tuple[int, int]]) -> Int64s:
        """Shape (windows, 2): their starts and ends."""
        for start, end in windows:
            if not _FIRST_BOUND <= start <= MAX_TIME or not _FIRST_BOUND <= end <= MAX_TIME:
                raise RecordError(
                    f"{self.describe()} gave the window ({start}, {end}): its bounds are microseconds since 1970, from"
                    f" {_FIRST_BOUND} to {MAX_TIME}"
                )
        return np.array(windows, np.int64).reshape(-1, 2)

    def reached(self, watermark_us: int) -> int:
        """The event time for these windows at a watermark: a window [start, end) is over when it reaches end - 1.

        Args:
            watermark_us: microseconds since 1970.
        """
        return watermark_us

    def layout(self) -> str:
        """The part that must stay the same in a restored job; by default, custom assigners can change."""
        return "custom"

    def describe(self) -> str:
        """One short text for the graph."""
        return type(self).__name__
