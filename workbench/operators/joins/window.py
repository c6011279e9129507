"""Join two streams on keys within event-time windows.

Both sides keep their records until the watermark ends a window; then each left record of it is joined with each right
record of its key, and those without a partner are emitted alone, depending on `how`. The results of a window
[start, end) have the event time ``end - 1``, like all results of windows, so they are not late downstream. A record is
late if all of its windows have ended: it is counted and dropped. A record that belongs to several (sliding) windows is
joined in each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.arguments import as_given
from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.durations import MAX_TIME
from workbench.elements import Int64s, Mask, Records
from workbench.errors import PlanError
from workbench.operators.contract.base import Operator, Output, Snapshot
from workbench.operators.joins.columns import JoinColumns, key_batch, without_null_keys
from workbench.operators.joins.groups import Grouped, emit_joined, with_times
from workbench.operators.joins.session import SessionJoinLogic
from workbench.operators.joins.two_sides import LEFT, RIGHT, TwoSidedJoin
from workbench.operators.snapshots.pieces import numbers_in
from workbench.operators.snapshots.saved_rows import saved_rows, together
from workbench.operators.windows.columns import time_of_results
from workbench.operators.windows.settings import WindowSettings
from workbench.state.key_index import KeyIndex
from workbench.state.key_table import KeyTable
from workbench.windows import WindowAssigner
from workbench.windows.session import Session


@dataclass(frozen=True)
class WindowJoin:
    """Joins records of equal keys in the same window (see the module).

    Attributes:
        columns: the columns compared and emitted.
        window: the windows of both sides: tumbling, sliding or other windows that a record's own time determines; or
            sessions, see ``join_session``.

    Raises:
        PlanError: windows that are not based on time.
    """

    kind: ClassVar[str] = "join"
    columns: JoinColumns
    window: WindowAssigner

    def __post_init__(self) -> None:
        if not isinstance(self.window, WindowAssigner):
            raise PlanError(f"window is {as_given(self.window)}: write for example window=wb.tumbling('1h')")
        if self.window.bounds == "position":
            raise PlanError(
                f"a join cannot use {self.window.describe()} windows: which records of two streams have the same "
                "number depends on how they arrive; use time windows, or between="
            )
        if self.window.bounds != "time":
            raise PlanError(
                f"a join cannot use {self.window.describe()} windows, which would keep all records until the input "
                "ends: use time windows, or between="
            )

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """See `JoinColumns`; sessions with a gap column need it on both sides."""
        for schema in inputs:
            WindowSettings(self.window).check(schema)
        return self.columns.output_schema(inputs[LEFT], inputs[RIGHT])

    def windows_kept(self) -> str:
        """The layout of the windows."""
        return self.window.layout()

    def describe(self) -> str:
        return f"{self.columns.describe()}, {self.window.describe()}"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        if isinstance(self.window, Session):
            return SessionJoinLogic(self.columns, self.window, inputs)
        return _WindowJoin(self, inputs)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Records of one side, each with one of its windows; `first_end` is the earliest end."""

    batch: pa.RecordBatch
    starts: Int64s
    ends: Int64s
    first_end: int

    def where(self, chosen: Mask) -> _Kept | None:
        """The selected rows; None if there are none."""
        if not chosen.any():
            return None
        if chosen.all():
            return self
        ends = self.ends[chosen]
        return _Kept(self.batch.filter(pa.array(chosen)), self.starts[chosen], ends, int(ends.min()))


class _WindowJoin(TwoSidedJoin):
    """State: the records of each side whose windows have not ended."""

    _called = "a windowed join"

    def __init__(self, spec: WindowJoin, inputs: Sequence[pa.Schema]) -> None:
        super().__init__(spec.columns, inputs)
        self._window = spec.window
        self._kept: tuple[list[_Kept], list[_Kept]] = ([], [])

    def _take(self, records: Records, port: int, watermark_us: int, out: Output) -> None:
        counters = self._context.counters
        batch, times = with_times(records, counters)
        rows, starts, ends = self._window.assign(times)
        wanted = ends - 1 > watermark_us
        if not wanted.all():
            late = np.zeros(len(batch), np.bool_)
            late[rows], late[rows[wanted]] = True, False
            counters.numLateRecordsDropped += int(np.count_nonzero(late))
            counters.late.note(batch, times, late, watermark_us, self._keys[port])
        complete = None if self._keeps[port] else without_null_keys(batch, self._keys[port])
        if complete is not None:
            wanted &= complete[rows]
        if not wanted.all():
            rows, starts, ends = rows[wanted], starts[wanted], ends[wanted]
        if len(rows) != len(batch) or not np.array_equal(rows, np.arange(len(rows))):
            batch = batch.take(pa.array(rows))
        self._keep(port, batch, starts, ends)

    def _keep(self, port: int, batch: pa.RecordBatch, starts: Int64s, ends: Int64s) -> None:
        if len(batch):
            self._kept[port].append(_Kept(batch, starts, ends, int(ends.min())))

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        if watermark_us <= self._watermark:
            return
        self._watermark = watermark_us
        if any(item.first_end - 1 <= watermark_us for side in self._kept for item in side):
            self._fire(self._take_over(LEFT), self._take_over(RIGHT), out)

    def _take_over(self, port: int) -> _Kept:
        """Remove the records of windows that have ended from the state, and return them."""
        taken: list[_Kept | None] = []
        waiting: list[_Kept | None] = []
        for item in self._kept[port]:
            if item.first_end - 1 > self._watermark:
                waiting.append(item)
            else:
                over = item.ends - 1 <= self._watermark
                taken.append(item.where(over))
                waiting.append(item.where(~over))
        self._kept[port][:] = [item for item in waiting if item is not None]
        return self._together(port, [item for item in taken if item is not None])

    def _together(self, port: int, items: Sequence[_Kept]) -> _Kept:
        empty = np.empty(0, np.int64)
        return _Kept(
            together([item.batch for item in items], self._inputs[port]),
            np.concatenate([empty, *(item.starts for item in items)]),
            np.concatenate([empty, *(item.ends for item in items)]),
            min((item.first_end for item in items), default=MAX_TIME),
        )

    def _fire(self, left: _Kept, right: _Kept, out: Output) -> None:
        """Join everything that is due, all windows at once."""
        groups, windows = KeyTable(), KeyTable()  # of a key in a window; of a start with an end
        starts, ends, index = KeyTable(), KeyTable(), KeyIndex(self._keys[LEFT], self._inputs[LEFT])
        codes = []
        for side, keys in zip((left, right), self._keys, strict=True):
            window = windows.codes(starts.codes(side.starts) << 32 | ends.codes(side.ends))
            codes.append(groups.codes(window << 32 | index.codes(key_batch(side.batch, keys, self._keys[LEFT]))))
        joined = [
            Grouped(side.batch, some, time_of_results(side.ends))
            for side, some in zip((left, right), codes, strict=True)
        ]
        emit_joined(self._columns, self._rows, joined[LEFT], joined[RIGHT], len(groups), out)

    def _saved(self, port: int) -> DelayedEncoding:
        items = tuple(self._kept[port])

        def table() -> pa.Table:
            kept = self._together(port, items)
            details = {"window_start": pa.array(kept.starts), "window_end": pa.array(kept.ends)}
            return saved_rows(kept.batch, details)

        return table

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._watermark = self._past.restore(snapshots)
        for port, batch, table in self._restored(snapshots):
            self._keep(port, batch, numbers_in(table, "window_start"), numbers_in(table, "window_end"))
