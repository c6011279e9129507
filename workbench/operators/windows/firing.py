"""When windows fire, by a `Schedule`: decided at once for all windows of a batch or of a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from workbench.compiled import count_into_waves, warm_up
from workbench.durations import LATEST_TIME, MAX_TIME, NO_TIME
from workbench.elements import Int64s, Mask
from workbench.operators.snapshots.pieces import column_in, numbers_in
from workbench.operators.windows.columns import EntryColumns
from workbench.operators.windows.places import Placement
from workbench.windows.schedule import Schedule, TimeKind


@dataclass(slots=True)
class Moment:
    """The present event time and processing time.

    Attributes:
        watermark_us: no record at or before it is expected; NO_TIME before the first watermark.
        now_us: the clock's time when it was last read.
    """

    watermark_us: int = NO_TIME
    now_us: int = 0

    def passed_end(self, kind: TimeKind) -> int:
        """Windows that end here or earlier are over in this kind of time."""
        if kind == "processing":
            return self.now_us
        return min(MAX_TIME, self.watermark_us + 1) if self.watermark_us != NO_TIME else NO_TIME


@dataclass(frozen=True, slots=True)
class Waves:
    """The actions of windows that records cause within a batch.

    The pairs of a wave can be added to their windows at once: each window acts at most once in a wave, after the last
    of its pairs there.

    Attributes:
        count: the number of waves.
        of_pair, of_move: shapes (pairs,) and (m,), the wave of each.
        acting: the pairs after which their window acts, ascending.
        fires, purges: shape (len(acting),), the actions.
    """

    count: int
    of_pair: Int64s
    of_move: Int64s
    acting: Int64s
    fires: Mask
    purges: Mask


@dataclass(frozen=True, slots=True)
class Round:
    """Entries that act at one moment, each once.

    Attributes:
        entries: shape (r,), distinct, in the order of their results.
        fires, purges: shape (r,), the actions.
        moments: shape (r,), the event time for which each was scheduled; NO_TIME if none was.
    """

    entries: Int64s
    fires: Mask
    purges: Mask
    moments: Int64s


class Firing(Protocol):
    """Decides when entries fire."""

    def grow(self, entries: int) -> None:
        """Make room for entries 0 to entries - 1."""

    def waves(self, placement: Placement, times: Int64s | None, moment: Moment) -> Waves | None:
        """The actions when records arrive; None: none of them makes a window fire by itself.

        Args:
            placement: the entries of the records; late ones are in no pair.
            times: shape (pairs,), or None.
            moment: the present time.
        """

    def is_due(self, moment: Moment) -> bool:
        """Whether ``due`` may return anything; cheap."""

    def due(self, moment: Moment, starts: Int64s, ends: Int64s) -> Sequence[Round]:
        """The actions of windows because time has passed, in rounds; they count as done."""

    def next_time_us(self) -> int | None:
        """The processing time at which an action may be due."""

    def release(self, entries: Int64s) -> None:
        """Mark entries as over, or as merged into others; they never fire again."""

    def retain(self, entries: Int64s) -> None:
        """Keep only these; ``entries[i]`` becomes entry i."""

    def state(self, entries: Int64s) -> dict[str, pa.Array]:
        """A copy of the data about these."""

    def load(self, entries: Int64s, table: pa.Table, ends: Int64s) -> None:
        """Restore what ``state`` returned, for windows that end at `ends`."""


class ScheduledFiring:
    """Fires by a `Schedule`.

    State by entry: ``pending``, whether the firing at the end is yet to come (or has to be corrected); ``seen``, the
    number of records since the last firing by count; ``early``, when it fires before its end.

    Args:
        schedule: when windows fire.
        end_in: the time whose passing ends a window; None: no window fires because it ends.
        records: fire after this many further records, and not at an end; None: never.
    """

    def __init__(self, schedule: Schedule, end_in: TimeKind | None, records: int | None) -> None:
        warm_up(count_into_waves)
        self._purge = schedule.purge
        self._end_in = end_in
        self._records = records
        self._every_us = schedule.every_us
        self._every_in = schedule.every_in
        self._columns = EntryColumns({"pending": False, "seen": 0, "early": MAX_TIME})
        self._scratch = EntryColumns({"waves": 0})
        self._next_end = MAX_TIME + 1  # a lower bound on the ends of pending entries
        self._next_early = MAX_TIME  # a lower bound on ``early`` of all entries

    def grow(self, entries: int) -> None:
        self._columns.grow(entries)
        self._scratch.grow(entries)

    def waves(self, placement: Placement, times: Int64s | None, moment: Moment) -> Waves | None:
        entries = placement.entries
        if self._end_in is not None and len(entries):
            self._columns["pending"][entries] = True
            self._next_end = min(self._next_end, int(placement.ends.min()))
        if self._every_us is not None and len(entries):
            self._plan_early(entries, times, moment)
        waves = None if self._records is None else self._count(placement)
        self._release_moved(placement.moves)
        return waves

    def _plan_early(self, entries: Int64s, times: Int64s | None, moment: Moment) -> None:
        """Schedule the first multiple of the interval after now; in event time, after the record and the watermark."""
        assert self._every_us is not None
        if self._every_in == "processing":
            since: Int64s = np.full(len(entries), moment.now_us)
        elif times is None:
            since = np.full(len(entries), moment.watermark_us)
        else:
            since = np.maximum(times, moment.watermark_us)
        due = since - since % self._every_us + self._every_us
        due[since > LATEST_TIME] = MAX_TIME  # a job that continues after the end of its input never reaches it
        np.minimum.at(self._columns["early"], entries, due)
        self._next_early = min(self._next_early, int(due.min()))

    def _count(self, placement: Placement) -> Waves:
        assert self._records is not None
        entries, moves = placement.entries, placement.moves
        of_pair, of_move = np.empty(len(entries), np.int64), np.empty(len(moves), np.int64)
        acting = np.empty(len(entries), np.int64)
        fired, count = count_into_waves(
            entries, self._records, self._columns["seen"], moves, self._scratch["waves"], of_pair, of_move, acting
        )
        return Waves(count, of_pair, of_move, acting[:fired], np.ones(fired, np.bool_), np.full(fired, self._purge))

    def _release_moved(self, moves: Int64s) -> None:
        if len(moves) == 0:
            return
        early = self._columns["early"]
        for _, kept, gone in moves.tolist():
            early[kept] = min(early[kept], early[gone])
        self.release(moves[:, 2])

    def is_due(self, moment: Moment) -> bool:
        ended = self._end_in is not None and self._next_end <= moment.passed_end(self._end_in)
        return ended or (self._next_early < MAX_TIME and self._next_early <= moment.passed_end(self._every_in))

    def due(self, moment: Moment, starts: Int64s, ends: Int64s) -> Sequence[Round]:
        n = len(ends)
        pending, early = self._columns["pending"][:n], self._columns["early"][:n]
        at_end = np.zeros(n, np.bool_)
        if self._end_in is not None:
            at_end = pending & (ends <= moment.passed_end(self._end_in))
        entries = np.flatnonzero(at_end | ((early < MAX_TIME) & (early <= moment.passed_end(self._every_in))))
        entries = entries[np.argsort(ends[entries], kind="stable")]
        planned = (early[entries] < MAX_TIME) & (self._every_in == "event")
        moments = np.where(planned, early[entries] - 1, NO_TIME)
        pending[at_end] = False
        early[entries] = MAX_TIME
        if self._purge:
            pending[entries] = False
        self._next_end = int(ends[pending].min(initial=MAX_TIME)) if pending.any() else MAX_TIME + 1
        self._next_early = int(early.min(initial=MAX_TIME))
        if len(entries) == 0:
            return []
        return [Round(entries, np.ones(len(entries), np.bool_), np.full(len(entries), self._purge), moments)]

    def next_time_us(self) -> int | None:
        due = MAX_TIME
        if self._end_in == "processing":
            due = min(due, self._next_end)
        if self._every_us is not None and self._every_in == "processing":
            due = min(due, self._next_early)
        return None if due > LATEST_TIME else due  # no clock reaches it: it waits for the end of the input

    def release(self, entries: Int64s) -> None:
        self._columns.reset(entries)

    def retain(self, entries: Int64s) -> None:
        self._columns.retain(entries)

    def state(self, entries: Int64s) -> dict[str, pa.Array]:
        return self._columns.arrow(entries)

    def load(self, entries: Int64s, table: pa.Table, ends: Int64s) -> None:
        self._columns.load(entries, table)
        pending = column_in(table, "pending", pa.bool_())
        if pending.any():
            self._next_end = min(self._next_end, int(ends[pending].min()))
        early = numbers_in(table, "early")
        self._next_early = min(self._next_early, int(early.min(initial=MAX_TIME)))
