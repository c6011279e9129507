"""Join two streams on keys within event-time windows.

Both sides keep their records until the watermark ends a window; then each left record of it comes out beside each
right record of its key, and those without a partner alone, as `how` says. What comes out of a window [start, end) has
the event time ``end - 1``, like every result of a window, so nothing that follows takes it for late. A record of a
window that is over is late: it is counted and dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.durations import NO_TIME
from workbench.elements import Int64s, Records
from workbench.errors import RecordError
from workbench.kernels import order_by_code
from workbench.operators.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.join_columns import (
    JoinColumns,
    JoinRows,
    key_batch,
    owned_rows_of,
    pairs_of,
    saved_rows,
    together,
    without_null_keys,
)
from workbench.state import KeyIndex
from workbench.state.key_table import KeyTable
from workbench.windows import Tumbling

LEFT, RIGHT = 0, 1
SIDES = ("left", "right")

_ROWS_AT_ONCE = 65_536  # so that a hot key does not make one huge batch


@dataclass(frozen=True)
class WindowJoin:
    """Joins records of equal keys in the same window (see the module).

    Attributes:
        columns: what is compared and what comes out.
        window: the windows of both sides.
    """

    kind: ClassVar[str] = "join"
    columns: JoinColumns
    window: Tumbling

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """See `JoinColumns`."""
        return self.columns.output_schema(inputs[LEFT], inputs[RIGHT])

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return f"{self.columns.describe()}, {self.window.describe()}"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _WindowJoin(self, inputs)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Records of one side and the starts of their windows; `first` is the smallest of these."""

    batch: pa.RecordBatch
    starts: Int64s
    first: int


class _WindowJoin(Operator):
    """State: the records of each side whose windows are not over."""

    def __init__(self, spec: WindowJoin, inputs: Sequence[pa.Schema]) -> None:
        self._window = spec.window
        self._columns = spec.columns
        self._inputs = inputs
        self._keys = (spec.columns.left_keys, spec.columns.right_keys)
        self._keeps = (spec.columns.keeps_left, spec.columns.keeps_right)
        self._rows = JoinRows(spec.columns, inputs[LEFT], inputs[RIGHT])
        self._kept: tuple[list[_Kept], list[_Kept]] = ([], [])
        self._watermark = NO_TIME

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def _over_start(self) -> int:
        """Windows that start here or earlier are over: their end - 1 is at or below the watermark."""
        return max(NO_TIME, self._watermark - self._window.size_us + 1)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records.timestamps is None:
            raise RecordError(
                "records without event times reached a windowed join: name the event-time column at the source "
                "(event_time=)"
            )
        times, batch = records.timestamps, records.batch
        kept = times != NO_TIME
        starts = np.where(kept, times - (times - self._window.offset_us) % self._window.size_us, NO_TIME)
        timeless = len(times) - int(np.count_nonzero(kept))
        kept &= starts > self._over_start()
        self._context.counters.numRecordsWithoutTimestamp += timeless
        self._context.counters.numLateRecordsDropped += len(times) - timeless - int(np.count_nonzero(kept))
        if not self._keeps[port]:
            complete = without_null_keys(batch, self._keys[port])
            if complete is not None:
                kept &= complete
        if not kept.all():
            batch, starts = batch.filter(pa.array(kept)), starts[kept]
        self._keep(port, batch, starts)

    def _keep(self, port: int, batch: pa.RecordBatch, starts: Int64s) -> None:
        if len(batch):
            self._kept[port].append(_Kept(batch, starts, int(starts.min())))

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        if watermark_us <= self._watermark:
            return
        self._watermark = watermark_us
        if any(item.first <= self._over_start() for side in self._kept for item in side):
            self._fire(self._take_over(LEFT), self._take_over(RIGHT), out)

    def _take_over(self, port: int) -> tuple[pa.RecordBatch, Int64s]:
        """Take the records of windows that are over out of the state."""
        over = self._over_start()
        taken: list[_Kept] = []
        waiting = self._kept[port][:]
        self._kept[port].clear()
        for item in waiting:
            if item.first > over:
                self._kept[port].append(item)
                continue
            due = item.starts <= over
            if due.all():
                taken.append(item)
                continue
            taken.append(_Kept(item.batch.filter(pa.array(due)), item.starts[due], item.first))
            self._keep(port, item.batch.filter(pa.array(~due)), item.starts[~due])
        return self._together(port, taken)

    def _together(self, port: int, items: Sequence[_Kept]) -> tuple[pa.RecordBatch, Int64s]:
        batch = together([item.batch for item in items], self._inputs[port])
        return batch, np.concatenate([np.empty(0, np.int64), *(item.starts for item in items)])

    def _fire(self, left: tuple[pa.RecordBatch, Int64s], right: tuple[pa.RecordBatch, Int64s], out: Output) -> None:
        """Join what is due, all windows at once."""
        groups = KeyTable()  # window and key -> group
        windows, index = KeyTable(), KeyIndex(self._keys[LEFT], self._inputs[LEFT])
        codes = [
            groups.codes(windows.codes(starts) << 32 | index.codes(key_batch(batch, keys, self._keys[LEFT])))
            for (batch, starts), keys in zip((left, right), self._keys, strict=True)
        ]
        right_complete = without_null_keys(right[0], self._keys[RIGHT])
        if right_complete is not None:  # a null key equals nothing
            codes[RIGHT][~right_complete] = len(groups)
        firsts_of = np.empty(len(groups) + 2, np.int64)
        order = np.empty(len(codes[RIGHT]), np.int64)
        order_by_code(codes[RIGHT], firsts_of, order)
        firsts = firsts_of[codes[LEFT]]
        counts = firsts_of[codes[LEFT] + 1] - firsts
        lefts, places = pairs_of(firsts, counts)
        rights = order[places]
        for at in range(0, len(lefts), _ROWS_AT_ONCE):
            some = lefts[at : at + _ROWS_AT_ONCE]
            pairs = self._rows.assemble(
                left[0].take(pa.array(some)), right[0].take(pa.array(rights[at : at + _ROWS_AT_ONCE]))
            )
            self._emit(pairs, left[1][some], out)
        if self._keeps[LEFT]:
            alone = np.flatnonzero(counts == 0)
            self._emit(self._rows.assemble(left[0].take(pa.array(alone)), None), left[1][alone], out)
        if self._keeps[RIGHT]:
            matched = np.zeros(len(groups) + 1, np.bool_)
            matched[codes[LEFT]] = True
            alone = np.flatnonzero(~matched[codes[RIGHT]])
            self._emit(self._rows.assemble(None, right[0].take(pa.array(alone))), right[1][alone], out)

    def _emit(self, batch: pa.RecordBatch, starts: Int64s, out: Output) -> None:
        out.emit(Records(batch, starts + (self._window.size_us - 1)))

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        snapshot: Snapshot = {"watermark": self._watermark}
        for port, side in enumerate(SIDES):
            batch, starts = self._together(port, self._kept[port])
            snapshot[side] = saved_rows(batch, {"window_start": pa.array(starts)})
        return snapshot

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        watermarks = [snapshot["watermark"] for snapshot in snapshots]
        self._watermark = min((mark for mark in watermarks if isinstance(mark, int)), default=NO_TIME)
        for port, side in enumerate(SIDES):
            batch, table = owned_rows_of(snapshots, side, self._keys[port], self._inputs[port], self._context)
            self._keep(port, batch, table.column("window_start").to_numpy())
