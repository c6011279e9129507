"""The rows of a sink that are possibly not committed: incoming rows, and rows in checkpoints."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa

from workbench.connectors.contract.saved_files import check_columns, impossible, own_name, shown
from workbench.connectors.epochs.row_store import Epoch
from workbench.elements import Records
from workbench.operators.contract.base import Snapshot

_PIECE = re.compile(r"rows-([0-9]{1,19})-([0-9]{1,9})")


class PendingRows:
    """The rows of one subtask, by the checkpoint that ends their epoch.

    Args:
        schema: of the rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._epochs: list[Epoch] = []

    def add(self, records: Records) -> None:
        """Keep rows for the next checkpoint."""
        self._batches.append(records.batch)

    def cut(self, checkpoint_id: int, subtask: int) -> dict[str, Callable[[], pa.Table]]:
        """End an epoch; returns the pieces of the snapshot, concatenated by the checkpoint's writer."""
        if self._batches:
            rows = pa.Table.from_batches(self._batches, self._schema)
            self._epochs.append(Epoch(checkpoint_id, subtask, rows))
            self._batches = []
        return {f"rows-{epoch.number}-{epoch.subtask}": partial(epoch.rows.combine_chunks) for epoch in self._epochs}

    def due(self, checkpoint_id: int) -> list[Epoch]:
        """The epochs up to a complete checkpoint."""
        return [epoch for epoch in self._epochs if epoch.number <= checkpoint_id]

    def forget(self, checkpoint_id: int) -> None:
        """Drop epochs that are committed."""
        self._epochs = [epoch for epoch in self._epochs if epoch.number > checkpoint_id]


def saved_epochs(
    snapshots: Sequence[Snapshot], checkpoints: Sequence[int], name: str, schema: pa.Schema
) -> tuple[Epoch, ...]:
    """The epochs in the snapshots of all subtasks, in order.

    Args:
        snapshots: the snapshots of one checkpoint.
        checkpoints: the checkpoint number in each snapshot.
        name: the name of the table or topic, for errors.
        schema: of the rows.

    Raises:
        CorruptCheckpointError: no sink saves such rows.
        CheckpointError: the rows had other columns.
    """
    epochs: dict[tuple[int, int], Epoch] = {}
    for snapshot, checkpoint in zip(snapshots, checkpoints, strict=True):
        for piece, rows in snapshot.items():
            if isinstance(rows, pa.Table):
                epoch = _epoch(piece, rows, checkpoint)
                check_columns(name, _bare(rows.schema), _bare(schema))
                if epochs.setdefault((epoch.number, epoch.subtask), epoch) is not epoch:
                    raise impossible(f"{shown(piece)} is duplicated")
    return tuple(epochs[key] for key in sorted(epochs))


def _epoch(piece: str, rows: pa.Table, checkpoint: int) -> Epoch:
    found = own_name(_PIECE, piece, "a table of rows")
    epoch = Epoch(int(found[1]), int(found[2]), rows)
    if not 1 <= epoch.number <= checkpoint:
        raise impossible(f"epoch {epoch.number} has rows, but the checkpoint is {checkpoint}")
    return epoch


def _bare(schema: pa.Schema) -> pa.Schema:
    """The names and types only: a checkpoint does not always record the nullability of repeated columns."""
    return pa.schema([(field.name, field.type) for field in schema])
