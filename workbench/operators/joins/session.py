"""Join two streams on keys within sessions (F1-9): the records of both sides form a key's sessions together.

A session continues while a record of either side arrives within the gap. When the watermark ends it, each of its left
records is joined with each right one; the event time is ``end - 1``. A record is late if its own window has ended and
it
reaches no session that still accepts records: it is counted and dropped. A record with a null key that cannot be
    emitted
alone is in no session: it is filtered out, and never late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Int64s, Mask, Records
from workbench.operators.contract.base import EventTimeOutput, Output, Snapshot
from workbench.operators.joins.columns import JoinColumns, key_batch, without_null_keys
from workbench.operators.joins.groups import Grouped, emit_joined, with_times
from workbench.operators.joins.two_sides import LEFT, RIGHT, TwoSidedJoin
from workbench.operators.snapshots.pieces import numbers_in
from workbench.operators.snapshots.saved_rows import saved_rows, together
from workbench.operators.windows.columns import EntryColumns, time_of_results
from workbench.operators.windows.sessions import SessionPlaces
from workbench.state.key_index import KeyIndex
from workbench.windows.session import Session

_FEW_SESSIONS = 1_024  # not worth packing
_ITSELF = -1


@dataclass(frozen=True, slots=True)
class _Kept:
    """Records of one side, each with its session, or one that has been merged into that session."""

    batch: pa.RecordBatch
    sessions: Int64s


class SessionJoinLogic(TwoSidedJoin):
    """State: the records of each side whose sessions have not ended.

    Event time advances as in `Session.reached`.

    Args:
        columns: the columns compared and emitted.
        session: the gap.
        inputs: schemas of both sides.
    """

    _called = "a windowed join"
    tells_event_time = True

    def __init__(self, columns: JoinColumns, session: Session, inputs: Sequence[pa.Schema]) -> None:
        super().__init__(columns, inputs)
        self._index = KeyIndex(columns.left_keys, inputs[LEFT])
        self._session = session
        self._places = SessionPlaces(session)
        self._into = EntryColumns({"session": _ITSELF})  # by session, the one that it was merged into
        self._kept: tuple[list[_Kept], list[_Kept]] = ([], [])
        self._next_end = MAX_TIME  # no session with records ends earlier

    def _take(self, records: Records, port: int, watermark_us: int, out: Output) -> None:
        counters = self._context.counters
        batch, times = with_times(records, counters)
        complete = None if self._keeps[port] else without_null_keys(batch, self._keys[port])
        if complete is not None:
            batch, times = batch.filter(pa.array(complete)), times[complete]
        placed = self._places.place(self._codes(batch, port), times, _closed_end(watermark_us), batch)
        self._into.grow(len(self._places))
        for _, kept, gone in placed.moves.tolist():
            self._into["session"][gone] = kept
        if placed.late is not None:
            counters.numLateRecordsDropped += int(np.count_nonzero(placed.late))
            counters.late.note(batch, times, placed.late, watermark_us, self._keys[port])
            batch = batch.filter(pa.array(~placed.late))
        if len(batch):
            self._kept[port].append(_Kept(batch, placed.entries))
            self._next_end = min(self._next_end, int(placed.ends.min()))

    def _codes(self, batch: pa.RecordBatch, port: int) -> Int64s:
        return self._index.codes(key_batch(batch, self._keys[port], self._keys[LEFT]))

    # time --------------------------------------------------------------------------------------------------------

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        reached_us = self._session.reached(watermark_us)
        if reached_us > self._watermark:
            self._watermark = reached_us
            if self._next_end <= _closed_end(self._watermark):
                self._fire(out)
        cast("EventTimeOutput", out).emit_watermark(reached_us)

    def on_idle(self, idle: bool, out: EventTimeOutput) -> None:
        out.emit_idle(idle)

    def _fire(self, out: Output) -> None:
        """Join and forget the sessions that have ended."""
        ends = self._places.windows()[2]
        over = ends <= _closed_end(self._watermark)
        left, right = (self._all(port) for port in (LEFT, RIGHT))
        due = [self._where(side, over[side.sessions]) for side in (left, right)]
        waiting = [self._where(side, ~over[side.sessions]) for side in (left, right)]
        for port in (LEFT, RIGHT):
            self._kept[port][:] = [waiting[port]] if len(waiting[port].batch) else []
        self._next_end = min(int(ends[side.sessions].min(initial=MAX_TIME)) for side in waiting)
        numbers, groups = np.unique(np.concatenate([side.sessions for side in due]), return_inverse=True)
        cut = len(due[LEFT].batch)
        joined = [
            Grouped(side.batch, some, time_of_results(ends[side.sessions]))
            for side, some in zip(due, (groups[:cut], groups[cut:]), strict=True)
        ]
        emit_joined(self._columns, self._rows, joined[LEFT], joined[RIGHT], len(numbers), out)
        self._pack(waiting)

    def _all(self, port: int) -> _Kept:
        """All records of a side, each with its present session."""
        items = self._kept[port]
        sessions = np.concatenate([np.empty(0, np.int64), *(item.sessions for item in items)])
        return _Kept(together([item.batch for item in items], self._inputs[port]), self._now(sessions))

    def _now(self, sessions: Int64s) -> Int64s:
        """The sessions that these were merged into."""
        into = self._into["session"]
        while (moved := into[sessions] != _ITSELF).any():
            sessions = np.where(moved, into[sessions], sessions)
        return sessions

    def _where(self, side: _Kept, chosen: Mask) -> _Kept:
        return _Kept(side.batch.filter(pa.array(chosen)), side.sessions[chosen])

    def _pack(self, waiting: Sequence[_Kept]) -> None:
        """Forget sessions that have ended or were merged, and their keys, once most sessions are of this kind."""
        owners, _, ends = self._places.windows()
        live = np.flatnonzero((ends > _closed_end(self._watermark)) & (self._into["session"][: len(ends)] == _ITSELF))
        if len(self._places) <= max(_FEW_SESSIONS, 2 * len(live)):
            return
        codes = self._index.retain(np.unique(owners[live]))
        self._places.retain(live, codes)
        self._into = EntryColumns({"session": _ITSELF})
        self._into.grow(len(live))
        for port, side in enumerate(waiting):
            if len(side.batch):
                self._kept[port][:] = [_Kept(side.batch, np.searchsorted(live, side.sessions))]

    # snapshots ---------------------------------------------------------------------------------------------------

    def _saved(self, port: int) -> DelayedEncoding:
        """The records of one side with the bounds of their sessions; records are copied off the data path."""
        items = tuple(self._kept[port])
        _, starts, ends = self._places.windows()
        sessions = self._now(np.concatenate([np.empty(0, np.int64), *(item.sessions for item in items)]))
        details = {"window_start": pa.array(starts[sessions]), "window_end": pa.array(ends[sessions])}

        def table() -> pa.Table:
            return saved_rows(together([item.batch for item in items], self._inputs[port]), details)

        return table

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._watermark = self._past.restore(snapshots)
        batches, windows = [], []
        for port, batch, table in self._restored(snapshots):
            bounds = [numbers_in(table, name) for name in ("window_start", "window_end")]
            batches.append(batch)
            windows.append(np.stack([self._codes(batch, port), *bounds], axis=1))
        found, numbers = np.unique(np.concatenate(windows), axis=0, return_inverse=True)
        if not len(found):
            return
        sessions = self._places.add(*(np.ascontiguousarray(found[:, at]) for at in range(3)))[numbers.ravel()]
        self._into.grow(len(self._places))
        self._next_end = int(found[:, 2].min())
        cut = len(batches[LEFT])
        for port, some in ((LEFT, sessions[:cut]), (RIGHT, sessions[cut:])):
            if len(some):
                self._kept[port].append(_Kept(batches[port], some))


def _closed_end(watermark_us: int) -> int:
    """Sessions that end here or earlier have ended."""
    return NO_TIME if watermark_us == NO_TIME else min(MAX_TIME, watermark_us + 1)
