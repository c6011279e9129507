"""Appends rows to a store in two phases, exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from workbench.connectors.contract.runs import Runs
from workbench.connectors.contract.saved_files import impossible, saved_as, shown
from workbench.connectors.epochs.pending import PendingRows, saved_epochs
from workbench.connectors.epochs.row_store import Epoch, RowStore, check_fresh
from workbench.connectors.epochs.waiting import WaitingOperator
from workbench.elements import Records
from workbench.errors import CommittedRowsError
from workbench.operators.contract.base import OperatorContext, Output, Snapshot


class AppendLogic(WaitingOperator):
    """State: the rows of epochs that are possibly not committed; their writer; its runs.

    The writer is the job that first wrote the rows, so a job that resumes from its checkpoint under another name does
    not commit rows again. Its runs distinguish it from other jobs that resume from the same checkpoint.
    """

    def __init__(self, table: RowStore, schema: pa.Schema, *, creates_table: bool) -> None:
        super().__init__(table.attempts)
        self._table = table
        self._schema = schema
        self._creates_table = creates_table
        self._pending = PendingRows(schema)
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
        self._pending.add(records)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        self._begin()
        pieces = {"checkpoint": checkpoint_id, "writer": self._writer, "runs": self._runs.to_json()}
        return cast("Snapshot", pieces | self._pending.cut(checkpoint_id, self._subtask))

    def notify_complete(self, checkpoint_id: int) -> None:
        if due := self._pending.due(checkpoint_id):
            self._runs = self._table.commit(self._writer, self._runs, due, self._run)
            self._pending.forget(checkpoint_id)

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """The first subtask commits the pending rows of all former subtasks."""
        if not any(snapshots):
            return  # the checkpoint has no state of this sink: start empty
        saved = _Saved.of(snapshots, self._table, self._schema)
        self._begun = True
        self._writer = saved.writer
        self._runs = saved.runs.gone_on(self._run, saved.checkpoint)
        if self._subtask != 0:
            return
        _check_none_later(self._table, saved)
        # Committed as the run that took the checkpoint, so another run that resumes from it finds them committed.
        self._table.commit(self._writer, saved.runs, saved.epochs, self._run)

    def _begin(self) -> None:
        """Called before the first row of a job that was not restored, also after a recovery without a checkpoint."""
        if not self._begun:
            if self._subtask == 0:
                check_fresh(self._table, self._writer)
            self._begun = True


def check_restore(table: RowStore, snapshots: Sequence[Snapshot], schema: pa.Schema, checkpoint: str) -> None:
    """Reject a checkpoint that is older than committed rows, or that no such sink has saved.

    Args:
        table: the table.
        snapshots: the snapshots of all subtasks in one checkpoint; at least one is not empty.
        schema: the schema of the rows.
        checkpoint: its description.

    Raises:
        CommittedRowsError: the table has rows of later epochs.
        CorruptCheckpointError: no sink of this kind saves such a state.
        CheckpointError: the saved rows have other columns.
    """
    _check_none_later(table, _Saved.of(snapshots, table, schema), checkpoint)


def _check_none_later(table: RowStore, saved: _Saved, checkpoint: str = "") -> None:
    if (committed := table.committed(saved.writer)) > saved.checkpoint:
        raise CommittedRowsError(
            f"{table.title} has rows of epoch {committed}, later than "
            f"{checkpoint or f'checkpoint {saved.checkpoint}'} to restore, which would be duplicated: restore a "
            f"later checkpoint, or choose another {table.title.split()[1]}"
        )


@dataclass(frozen=True, slots=True)
class _SavedPieces:
    """The saved state of one subtask without rows; earlier versions save no runs."""

    checkpoint: int
    writer: str
    runs: Runs | None = None


@dataclass(frozen=True, slots=True)
class _Saved:
    """The combined saved state of the subtasks of one checkpoint."""

    checkpoint: int
    writer: str
    runs: Runs
    epochs: tuple[Epoch, ...]

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], table: RowStore, schema: pa.Schema) -> _Saved:
        name = f"the state of the sink to {table.title.partition(' of ')[0]}"
        taken = [snapshot for snapshot in snapshots if snapshot]
        pieces = [saved_as(_SavedPieces, snapshot, name) for snapshot in taken]
        writer = pieces[0].writer
        if others := {each.writer for each in pieces} - {writer}:
            raise impossible(f"the subtasks write as {shown(writer)} and as {shown(min(others))}")
        epochs = saved_epochs(taken, [each.checkpoint for each in pieces], table.name, schema)
        runs = Runs.together([each.runs for each in pieces])
        checkpoint = max(each.checkpoint for each in pieces)
        return cls(checkpoint, writer, runs, epochs)
