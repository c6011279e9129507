"""Shows the rows of a stream: a job runs until it has delivered enough of them, and the rows are printed as text."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.connectors.contract.plain_types import given_table
from workbench.connectors.live.callback_sink import CallbackSink
from workbench.operators.changelogs.net_rows import NetRows
from workbench.operators.changelogs.row_kinds import is_changelog, plain_schema
from workbench.packages import needed

if TYPE_CHECKING:
    from workbench.api.job.job import Job

_LOOK_S = 0.05


class FirstRows:
    """The function of a sink that keeps the first rows.

    Args:
        limit: the number of rows.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._lock = threading.Lock()  # subtasks call it on their own threads
        self.enough = threading.Event()

    def __call__(self, batch: pa.RecordBatch) -> None:
        with self._lock:
            missing = self._limit - self._rows
            if missing > 0:
                self._batches.append(batch.slice(0, missing))
                self._rows += min(missing, len(batch))
            if self._rows >= self._limit:
                self.enough.set()

    def table(self, schema: pa.Schema) -> pa.Table:
        """The rows received so far; of a changelog, those that its changes have left."""
        with self._lock:
            if not is_changelog(schema):
                return pa.Table.from_batches(self._batches, schema)
            rows = NetRows(schema)
            for batch in self._batches:
                rows.add(batch)
            return rows.table()


def collected(start: Callable[[CallbackSink], Job], schema: pa.Schema, limit: int, timeout_us: int) -> pa.Table:
    """The first rows that a job sends to its sink; then the job is ended.

    Args:
        start: starts the job with a sink.
        schema: of the rows.
        limit: maximum number of rows.
        timeout_us: how long to wait for them; rows received by then are returned.

    Raises:
        JobError: the job failed.
    """
    rows = FirstRows(limit)
    job = start(CallbackSink(rows, name="collect"))
    deadline = time.monotonic() + timeout_us / 1e6
    try:
        while not (rows.enough.wait(_LOOK_S) or job.over or time.monotonic() >= deadline):
            pass
    finally:
        if not job.over:
            job.cancel()
    if not rows.enough.is_set():
        job.wait()  # raises its failure
    return given_table(rows.table(schema), plain_schema(schema))


def printed(rows: pa.Table) -> None:
    """Print rows as a table: as text in a terminal, as HTML in a notebook."""
    table = needed("rich.table", "printing rows").Table()
    for field in rows.schema:
        table.add_column(field.name, justify="right" if pa.types.is_primitive(field.type) else "left")
    for row in rows.to_pylist():
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    needed("rich.console", "printing rows").Console(markup=False).print(table)
