"""Upserts rows in a store: rows are written as they arrive, idempotently.

The changes of a changelog are also taken back: see ``undo``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import ClassVar, cast

import pyarrow as pa

from workbench.clock import Clock, SystemClock
from workbench.connectors.contract.saved_files import impossible, saved_as, shown
from workbench.connectors.contract.upsert_key import check_no_nulls
from workbench.connectors.epochs.row_store import RowStore
from workbench.connectors.epochs.undo import Point, UndoLog
from workbench.connectors.epochs.waiting import WaitingOperator
from workbench.connectors.tables.latest_rows import LatestRows
from workbench.elements import Records
from workbench.operators.changelogs.row_kinds import is_changelog, plain_schema, present_rows, removed_rows
from workbench.operators.contract.base import OperatorContext, Output, Snapshot

FLUSH_ROWS = 10_000
FLUSH_US = 1_000_000


class UpsertLogic(WaitingOperator):
    """Buffers the latest row of each key for at most `FLUSH_US`; all rows before a checkpoint are written before it
    completes.

    State: of a changelog, behind which checkpoint it writes.

    Attributes:
        reason: why the guarantee is not stronger; continues a sentence that begins with ``the sink 'name'``.
    """

    reason: ClassVar[str] = (
        "writes the rows since the last checkpoint again after a failure: every key converges to the row of a run "
        "without failures, but a reader can see older values for a while"
    )

    def __init__(self, table: RowStore, schema: pa.Schema, *, creates_table: bool) -> None:
        super().__init__(table.attempts)
        self._table = table
        self._schema = schema
        self._creates_table = creates_table
        self._clock: Clock = SystemClock()
        self._latest = LatestRows(table.keys, schema)
        self._undo = UndoLog(table, schema) if is_changelog(schema) else None
        self._begun = False
        self._run = ""
        self._due_us: int | None = None

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        self._run = context.run
        if context.subtask == 0:
            self._table.prepare(plain_schema(self._schema), create=self._creates_table)
        if self._undo is not None:
            self._undo.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        self._begin()
        check_no_nulls(records.batch, self._table.keys, self._table.name)
        if self._undo is not None:
            self._undo.add(records.batch)
        self._latest.add(records.batch)
        if len(self._latest) >= FLUSH_ROWS:
            self._flush()
        elif self._due_us is None:
            self._due_us = self._clock.now_us() + FLUSH_US

    def next_time_us(self) -> int | None:
        return self._due_us

    def on_time(self, now_us: int, out: Output) -> None:
        self._flush()

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        self._begin()
        self._flush()
        if self._undo is None:
            return {}
        self._undo.passed(checkpoint_id)
        return cast("Snapshot", asdict(self._undo.point))

    def notify_complete(self, checkpoint_id: int) -> None:
        if self._undo is not None:
            self._undo.completed(checkpoint_id)

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        if self._undo is None or not any(snapshots):
            return  # earlier versions saved nothing
        name = f"the state of the sink to {self._table.title.partition(' of ')[0]}"
        points = [saved_as(Point, snapshot, name) for snapshot in snapshots if snapshot]
        if others := {point.writer for point in points} - {points[0].writer}:
            raise impossible(f"the subtasks write as {shown(points[0].writer)} and as {shown(min(others))}")
        self._go_back(max(points, key=lambda point: point.checkpoint))

    def _begin(self) -> None:
        """Called before the first row of a job that was not restored, also after a recovery without a checkpoint."""
        if not self._begun and self._undo is not None:
            self._go_back(self._undo.point)

    def _go_back(self, point: Point) -> None:
        assert self._undo is not None
        self._undo.go_back(point)
        self._begun = True

    def _flush(self) -> None:
        if len(self._latest):
            if self._undo is not None:
                self._undo.keep()
            latest = self._latest.table()
            gone = removed_rows(latest)
            if gone.num_rows:
                self._table.remove(gone.select(self._table.keys), self._run)
            if gone.num_rows < latest.num_rows:
                self._table.upsert(present_rows(latest), self._run)
            self._latest = LatestRows(self._table.keys, self._schema)
        self._due_us = None
