"""Upserts rows in a store: rows are written as they arrive, idempotently."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from workbench.clock import Clock, SystemClock
from workbench.connectors.contract.upsert_key import check_no_nulls
from workbench.connectors.epochs.row_store import RowStore
from workbench.connectors.epochs.waiting import WaitingOperator
from workbench.connectors.tables.latest_rows import LatestRows
from workbench.elements import Records
from workbench.operators.changelogs.row_kinds import plain_schema, present_rows, removed_rows
from workbench.operators.contract.base import OperatorContext, Output, Snapshot

FLUSH_ROWS = 10_000
FLUSH_US = 1_000_000


class UpsertLogic(WaitingOperator):
    """Buffers the latest row of each key for at most `FLUSH_US`; all rows before a checkpoint are written before it
    completes.

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
        self._run = ""
        self._due_us: int | None = None

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        self._run = context.run
        if context.subtask == 0:
            self._table.prepare(plain_schema(self._schema), create=self._creates_table)

    def process(self, records: Records, port: int, out: Output) -> None:
        check_no_nulls(records.batch, self._table.keys, self._table.name)
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
        self._flush()
        return {}

    def _flush(self) -> None:
        if len(self._latest):
            latest = self._latest.table()
            gone = removed_rows(latest)
            if gone.num_rows:
                self._table.remove(gone.select(self._table.keys), self._run)
            if gone.num_rows < latest.num_rows:
                self._table.upsert(present_rows(latest), self._run)
            self._latest = LatestRows(self._table.keys, self._schema)
        self._due_us = None
