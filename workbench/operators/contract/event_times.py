"""Event times of some records and windows, so that a person can see them against processing time.

A sampler asks for a few of them at a time. Until it asks again, a batch costs a comparison. Counts of late records are
kept for all of them: a late record is rare, and a job has few of its kind.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Literal

import numpy as np
import pyarrow as pa

from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Int64s

BATCHES, ROWS, POINTS, WINDOWS = 8, 512, 6, 12
"""What is looked at each time that the sampler asks: batches, records of each, those of them that become points, and
windows."""
GROUPS = 4_096
"""Groups in open windows that are looked at; of more of them an even share."""
GROUPS_MAX = 65_536
"""Of more groups than that none are looked at: finding the open ones would take too long."""

_MS, _S, _MIN, _H, _D = 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
BOUNDS = (
    *(n * _MS for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(n * _S for n in (1, 2, 3, 5, 8, 10, 15, 20, 30, 45)),
    *(n * _MIN for n in (1, 2, 3, 5, 8, 10, 15, 20, 30, 45)),
    *(n * _H for n in (1, 2, 3, 6, 12)),
    *(n * _D for n in (1, 2, 3, 7, 14, 30, 90, 365)),
)
"""Durations by which lateness and disorder are counted, in microseconds, ascending."""
_EDGES = np.array(BOUNDS)
_DISORDER_EDGES = np.array((1, *(bound + 1 for bound in BOUNDS)))

Fate = Literal["in time", "updated", "side output", "dropped"]
"""The fate of a record: an ``updated`` one arrived after its window had fired, within the allowed lateness."""

Point = tuple[int, int, int, Fate]
"""Processing time, event time, how far that is behind (the largest so far of a source's split; of a late record the end
of the lateness of its last window), and what became of it; all times in microseconds."""


class EventTimes:
    """Event times that one operator of one subtask has seen; its task writes, one sampler reads.

    Attributes:
        asked: grows whenever the sampler wants to see more.
        examined: records of which the disorder was measured.
        disorder: how many of them were in order, then how many at most ``BOUNDS[i]`` behind the largest event time so
            far and more than the bound before, and at last those further behind.
        bound_us: the out-of-orderness bound of the watermarks; None if there is none.
        dropped, aside, updated: late records by their fate.
        shortfalls: late records that were dropped or put aside by the least of ``BOUNDS`` that, added to the bound of
            the watermarks, would have kept them, and at last those that none of them would have kept.
        points, fired: for the sampler to take.
        open: start, end, number of groups and whether it has fired, of the windows that still take records.

    Example:
        >>> seen = EventTimes()
        >>> seen.asked += 1
        >>> seen.read(np.array([5_000_000, 4_000_000, 9_000_000]), None, 100)
        >>> seen.examined, seen.disorder[0], [point[:3] for point in seen.points]
        (3, 2, [(100, 5000000, 0), (100, 4000000, 1000000), (100, 9000000, 0)])
    """

    __slots__ = (
        "_answered", "_batches", "_largest_us", "_windows", "aside", "asked", "bound_us", "disorder", "dropped",
        "examined", "fired", "open", "points", "shortfalls", "updated",
    )  # fmt: skip

    def __init__(self) -> None:
        self.asked = self._answered = 0
        self._batches = self._windows = 0
        self._largest_us = NO_TIME
        self.bound_us: int | None = None
        self.examined = self.dropped = self.aside = self.updated = 0
        self.disorder: tuple[int, ...] = ()
        self.shortfalls: tuple[int, ...] = ()
        self.points: deque[Point] = deque(maxlen=256)
        self.fired: deque[tuple[int, Int64s, Int64s, Int64s, pa.RecordBatch]] = deque(maxlen=8)
        self.open: tuple[tuple[int, int, int, bool], ...] = ()

    def _begin(self) -> None:
        if self.asked != self._answered:
            self._answered, self._batches, self._windows = self.asked, BATCHES, WINDOWS

    def read(self, times: Int64s | None, largest_us: int | None, now_us: int) -> None:
        """A source, or what assigns event times, has read a batch.

        Args:
            times: shape (n,), NO_TIME where a record has none.
            largest_us: of the records before, NO_TIME without any; None: it is to be kept here.
            now_us: processing time.
        """
        if times is None or not len(times):
            return
        before_us = self._largest_us if largest_us is None else largest_us
        if largest_us is None:
            self._largest_us = max(before_us, int(np.maximum.reduce(times)))
        if self.asked != self._answered:
            self._begin()
        if not self._batches:
            return
        self._batches -= 1
        some = times[:ROWS]
        behind = np.maximum(np.maximum.accumulate(some), before_us) - some
        timed = some != NO_TIME
        if not timed.all():
            some, behind = some[timed], behind[timed]
        found = np.bincount(np.searchsorted(_DISORDER_EDGES, behind, "right"), minlength=len(BOUNDS) + 2)
        self.disorder = tuple((found + np.array(self.disorder or 0)).tolist())
        self.examined += len(some)
        step = -(-len(some) // POINTS) or 1
        for time_us, behind_us in zip(some[::step].tolist(), behind[::step].tolist(), strict=True):
            self.points.append((now_us, time_us, behind_us, "in time"))

    def late(self, times: Int64s, short: Int64s, weights: Int64s | None, fate: Fate, now_us: int) -> None:
        """Note records that arrived too late for all their windows.

        Args:
            times: shape (n,).
            short: shape (n,), how far behind the end of its last window's lateness each came, at least 0; below it
                where that is not known.
            weights: shape (n,), how many records stand behind each; None: one.
            fate: what becomes of them.
            now_us: processing time.
        """
        places = np.where(short < 0, len(BOUNDS), np.searchsorted(_EDGES, short, "right"))
        found = np.bincount(places, weights, minlength=len(BOUNDS) + 1).astype(np.int64)
        self.shortfalls = tuple((found + np.array(self.shortfalls or 0)).tolist())
        if fate == "dropped":
            self.dropped += int(found.sum())
        else:
            self.aside += int(found.sum())
        self._mark(times, short, fate, now_us)

    def update(self, times: Int64s, records: int, now_us: int) -> None:
        """Note a number of records that changed windows that had fired."""
        self.updated += records
        self._mark(times, np.zeros(len(times), np.int64), "updated", now_us)

    def _mark(self, times: Int64s, behind: Int64s, fate: Fate, now_us: int) -> None:
        step = -(-len(times) // POINTS) or 1
        for time_us, behind_us in zip(times[::step].tolist(), behind[::step].tolist(), strict=True):
            self.points.append((now_us, time_us, behind_us, fate))

    def fire(self, batch: pa.RecordBatch, starts: Int64s, ends: Int64s, now_us: int) -> None:
        """Windows have fired.

        Args:
            batch: their results.
            starts, ends: shape (rows of the batch,), those of each window together.
            now_us: processing time.
        """
        self._begin()
        if not self._windows or not len(starts):
            return
        first = np.ones(len(starts), np.bool_)
        first[1:] = (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
        places = np.flatnonzero(first)
        counts = np.diff(np.append(places, len(starts)))
        places, counts = places[-self._windows :], counts[-self._windows :]
        self._windows -= len(places)
        self.fired.append((now_us, starts[places], ends[places], counts, batch.take(pa.array(places))))

    @property
    def wants_open(self) -> bool:
        """Whether the sampler waits for the windows that are open."""
        self._begin()
        return self._batches > 0

    def keep_open(self, starts: Int64s, ends: Int64s, fired: Int64s) -> None:
        """The windows that still take records, a row for each group in each.

        Args:
            starts, ends, fired: shape (groups,); 1 where it has fired.
        """
        self._batches = 0
        step = -(-len(starts) // GROUPS) or 1
        counts = Counter(zip(*(each[::step].tolist() for each in (starts, ends, fired)), strict=True))
        some = sorted(counts.items())[-WINDOWS:]
        self.open = tuple((start, min(end, MAX_TIME), count * step, bool(done)) for (start, end, done), count in some)
