"""What a window assigner is: a small frozen object that says to which windows a time belongs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

import numpy as np

from workbench.elements import Int64s
from workbench.errors import RecordError
from workbench.raised import PASSING, described, kind_of

Bounds = Literal["time", "position", "none"]
"""What ``window_start`` and ``window_end`` of the results are: times, positions among a key's records, or left out."""

Assigned = tuple[Int64s, Int64s, Int64s]
"""Pairs of a record and a window: the record's row, the window's start and its end, each of shape (pairs,)."""


class WindowAssigner:
    """Base of all assigners; write your own by giving `windows`, preferably as a frozen dataclass.

    The same object serves event time and processing time: which of them it is given is said at ``.window(time=...)``.

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
            Pairs of start and end, in microseconds since 1970; the end no longer belongs to the window.
        """
        raise NotImplementedError(type(self).__name__)  # abstract

    def panes(self, times: Int64s) -> Int64s:
        """Shape (n,): for each time one of those that belong to the same windows, so that windows are told for few.

        The default tells them for every time.

        Args:
            times: shape (n,), microseconds since 1970.
        """
        return times

    def assign(self, times: Int64s) -> Assigned:
        """The windows of many times at once; the pairs are in the order of the rows.

        Args:
            times: shape (n,), microseconds since 1970.
        """
        distinct, inverse = np.unique(times, return_inverse=True)
        windows = [self._told(time) for time in distinct.tolist()]
        counts = np.array([len(some) for some in windows], np.int64)
        flat = np.array([bounds for some in windows for bounds in some], np.int64).reshape(-1, 2)
        firsts = np.cumsum(counts) - counts
        repeats = counts[inverse]
        rows = np.repeat(np.arange(len(times)), repeats)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        at = np.repeat(firsts[inverse], repeats) + within
        return rows, flat[at, 0], flat[at, 1]

    def _told(self, time_us: int) -> list[tuple[int, int]]:
        """The windows of one time; whatever a class of the user's raises is told with its name."""
        try:
            return list(self.windows(time_us))
        except PASSING:
            raise
        except BaseException as error:
            raise RecordError(
                f"the windows of {kind_of(self)} failed for {time_us} (microseconds since 1970) with "
                f"{described(error)}; they are pairs of start and end"
            ) from error

    def reached(self, watermark_us: int) -> int:
        """How far event time is for these windows when the watermark is so far: a window [start, end) is over when it
        reaches end - 1.

        Args:
            watermark_us: microseconds since 1970.
        """
        return watermark_us

    def layout(self) -> str:
        """What has to be the same where windows go on from a checkpoint; the default lets any of one's own go on."""
        return "custom"

    def describe(self) -> str:
        """One short text for the graph."""
        return type(self).__name__
