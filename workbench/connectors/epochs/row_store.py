"""The operations of a row store that append and upsert need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from workbench.arguments import option
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.runs import Runs
from workbench.errors import CommittedRowsError


@dataclass(frozen=True, slots=True)
class Epoch:
    """The rows that one subtask received between two barriers.

    Attributes:
        number: the number of the checkpoint that ends it.
        subtask: the subtask that received them.
        rows: the rows, in order of arrival.
    """

    number: int
    subtask: int
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Undo:
    """The name of a note about what keys had before a changelog changed their rows.

    Attributes:
        writer: of the rows.
        run: the run that noted it.
        subtask: its subtask.
        checkpoint: the number of the latest checkpoint before the changes.
        number: counts the notes of the subtask.
    """

    writer: str
    run: str
    subtask: int
    checkpoint: int
    number: int


class RowStore(Protocol):
    """A table, a stream, or another container of rows; every operation is atomic."""

    @property
    def name(self) -> str:
        """Its name, such as ``delays``."""

    @property
    def title(self) -> str:
        """A description, such as ``the table 'delays' of sqlite:///out.db``."""

    @property
    def keys(self) -> Sequence[str]:
        """The columns that identify a row to replace; empty: rows are only added."""

    @property
    def attempts(self) -> Attempts:
        """The attempts of its operations while its server is unreachable."""

    def prepare(self, schema: pa.Schema, *, create: bool) -> None:
        """Create missing objects, and check that rows of `schema` can be written.

        Args:
            schema: of the rows.
            create: also create the table.

        Raises:
            UnfitTableError: the table does not exist, or cannot hold these rows.
            SinkError: the store refuses for another reason.
        """

    def commit(self, writer: str, runs: Runs, epochs: Iterable[Epoch], run: str) -> Runs:
        """Add the rows of these epochs that are not committed yet, and record them.

        Args:
            writer: the writer of the rows.
            runs: the run that wrote them, and its predecessors.
            epochs: the epochs of any subtasks, in ascending order for each subtask.
            run: the run that commits them.

        Returns:
            `runs`, without earlier runs that have no rows here.

        Raises:
            SinkError: the store refuses, or a run that is not a predecessor has written to it or taken it.
        """

    def upsert(self, rows: pa.Table, run: str) -> None:
        """Write rows; each replaces the row with the same keys.

        Args:
            rows: rows with distinct keys.
            run: the run that writes them.

        Raises:
            SinkError: the store refuses, or another run has taken it.
        """

    def remove(self, keys: pa.Table, run: str) -> None:
        """Delete the rows with these keys; a key without a row is not an error.

        Args:
            keys: the key columns.
            run: the run that removes them.

        Raises:
            SinkError: the store refuses, or another run has taken it.
        """

    def prepare_undo(self) -> None:
        """Create what notes need.

        Raises:
            SinkError: the store refuses.
        """

    def keep_undo(self, note: Undo, changes: bytes) -> None:
        """Add a note, unless it is there.

        Raises:
            SinkError: the store refuses, or another run has taken it.
        """

    def undo(self) -> Mapping[Undo, bytes]:
        """The notes of all writers.

        Raises:
            SinkError: the store cannot be read.
        """

    def forget_undo(self, notes: Sequence[Undo]) -> None:
        """Remove notes; one that is not there is not an error.

        Raises:
            SinkError: the store refuses.
        """

    def committed(self, writer: str) -> int:
        """The last committed epoch of this writer, or 0.

        Raises:
            SinkError: the store cannot be read.
        """


Notes = Mapping[int, tuple[int, str]]
"""The last committed epoch of each subtask of a writer, and the run that committed it."""


def due_epochs(store: RowStore, notes: Notes, writer: str, runs: Runs, epochs: Iterable[Epoch]) -> list[Epoch]:
    """The epochs that are not committed yet.

    Raises:
        CommittedRowsError: the same writer has committed rows in a run that this one does not continue.
    """
    for number, run in notes.values():
        if not runs.include(run, number):
            raise CommittedRowsError(
                f"{store.title} has rows of epoch {number} by another run of "
                f"{writer!r}, which this run does not continue, and their rows would be mixed: stop one of the runs, "
                f"and start it again (from its savepoint, if it had one) with another {store.title.split()[1]}"
            )
    due: list[Epoch] = []
    last = {subtask: number for subtask, (number, _) in notes.items()}
    for epoch in epochs:
        if epoch.number > last.get(epoch.subtask, 0):
            due.append(epoch)
            last[epoch.subtask] = epoch.number
    return due


def check_fresh(store: RowStore, writer: str) -> None:
    """Reject a start without a checkpoint if this writer has committed rows.

    Raises:
        CommittedRowsError: it has committed rows.
        SinkError: the store cannot be read.
    """
    if (epoch := store.committed(writer)) > 0:
        raise CommittedRowsError(
            f"{store.title} already holds rows of {writer!r} up to epoch {epoch}: resume the job that wrote them "
            f"({option('resume')}), or choose another {store.title.split()[1]} or another name for the job; a run "
            "that starts over never removes them"
        )
