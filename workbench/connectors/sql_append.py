"""Rows that are appended to a database's table in two phases, exactly once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import pyarrow as pa

from workbench.connectors.deferred import Deferred
from workbench.connectors.runs import Runs
from workbench.connectors.sql_table import Epoch, SqlTable
from workbench.elements import Records
from workbench.errors import CommittedRowsError
from workbench.operators.base import Json, Operator, OperatorContext, Output, Snapshot

_ROWS = "rows"


class AppendLogic(Operator):
    """State: the rows of the epochs that are not known to be committed; the writer that they are of; its runs.

    The writer is the first job to write them, so that a job that goes on from its checkpoint under another name does
    not commit rows again. Its runs tell it from others that go on from the same checkpoint.
    """

    def __init__(self, table: SqlTable, schema: pa.Schema, *, creates_table: bool) -> None:
        self._table = table
        self._schema = schema
        self._creates_table = creates_table
        self._batches: list[pa.RecordBatch] = []
        self._pending: list[Epoch] = []
        self._writer = ""
        self._run = ""
        self._runs = Runs("")
        self._subtask = 0
        self._begun = False

    def open(self, context: OperatorContext) -> None:
        self._subtask = context.subtask
        self._writer = f"{context.job}/{context.uid}"
        self._run = context.run
        self._runs = Runs(context.run)
        if context.subtask == 0:
            self._table.prepare(self._schema, create=self._creates_table)

    def process(self, records: Records, port: int, out: Output) -> None:
        self._begin()
        self._batches.append(records.batch)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        self._begin()
        if self._batches:
            rows = pa.Table.from_batches(self._batches, self._schema)
            self._pending.append(Epoch(checkpoint_id, self._subtask, rows))
            self._batches = []
        pieces: dict[str, Json | Deferred] = {
            "checkpoint": checkpoint_id,
            "writer": self._writer,
            "runs": self._runs.to_json(),
        }
        return cast("Snapshot", pieces | {_piece(epoch): _rows_of(epoch) for epoch in self._pending})

    def notify_complete(self, checkpoint_id: int) -> None:
        if due := [epoch for epoch in self._pending if epoch.number <= checkpoint_id]:
            self._runs = self._table.commit(self._writer, self._runs, due)
            self._pending = [epoch for epoch in self._pending if epoch.number > checkpoint_id]

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """The first subtask commits what is pending, of all former subtasks, however many there were."""
        if not any(snapshots):
            return  # a sink that the restored job did not have: it starts afresh
        self._begun = True
        self._writer, checkpoint_id = _taken(snapshots)
        past = Runs.from_json([snapshot.get("runs") for snapshot in snapshots])
        self._runs = past.gone_on(self._run, checkpoint_id)
        if self._subtask != 0:
            return
        check_none_later(self._table, snapshots)
        epochs = [
            _epoch(name, rows)
            for snapshot in snapshots
            for name, rows in snapshot.items()
            if isinstance(rows, pa.Table)
        ]
        # In the name of the run that took the checkpoint: whoever else begins with it finds them there.
        self._table.commit(self._writer, past, sorted(epochs, key=lambda epoch: (epoch.number, epoch.subtask)))

    def _begin(self) -> None:
        """Before the first row of a job that was not restored. A recovery without a checkpoint comes here again."""
        if not self._begun:
            if self._subtask == 0:
                self._table.check_fresh(self._writer)
            self._begun = True


def check_none_later(table: SqlTable, snapshots: Sequence[Snapshot]) -> None:
    """Refuse to go back behind committed rows.

    Args:
        table: that they are in.
        snapshots: of all subtasks, of one checkpoint; at least one is not empty.

    Raises:
        SinkError: the table has rows of later epochs.
    """
    writer, checkpoint_id = _taken(snapshots)
    if (committed := table.committed(writer)) > checkpoint_id:
        raise CommittedRowsError(
            f"the table {table.name!r} of {table.database.url} has rows of epoch {committed}, later than checkpoint "
            f"{checkpoint_id} to restore, which would come twice: restore a checkpoint that is not older, or choose "
            "another table"
        )


def _taken(snapshots: Sequence[Snapshot]) -> tuple[str, int]:
    """By which writer, and with which checkpoint."""
    taken = [snapshot for snapshot in snapshots if snapshot]
    return str(taken[0]["writer"]), max(int(cast("int", snapshot["checkpoint"])) for snapshot in taken)


def _piece(epoch: Epoch) -> str:
    return f"{_ROWS}-{epoch.number}-{epoch.subtask}"


def _rows_of(epoch: Epoch) -> Callable[[], pa.Table]:
    """Put together by the checkpoint's writer, while records go on."""
    return partial(epoch.rows.combine_chunks)


def _epoch(piece: str, rows: pa.Table) -> Epoch:
    _, number, subtask = piece.split("-")
    return Epoch(int(number), int(subtask), rows)
