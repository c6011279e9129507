"""Whole records in a snapshot: those that wait for a partner or an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from workbench.errors import CheckpointError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.snapshots.changed_types import as_type, as_written
from workbench.operators.snapshots.keyed_snapshot import owned
from workbench.operators.snapshots.pieces import table_in

_COLUMN = "column:"  # prefix of column names in a snapshot, to avoid clashes with ours


def together(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """The rows of all batches, possibly none, in one batch."""
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema=schema)


def saved_rows(batch: pa.RecordBatch, details: Mapping[str, pa.Array]) -> pa.Table:
    """Rows of one side in the form of a snapshot, with additional columns."""
    names = [_COLUMN + name for name in batch.schema.names]
    return pa.Table.from_arrays([*batch.columns, *details.values()], names=[*names, *details])


def restored_rows(table: pa.Table, schema: pa.Schema, part: str, context: OperatorContext) -> pa.RecordBatch:
    """The user's columns of saved rows; `part` names them in errors.

    Raises:
        CheckpointError: the columns differ from those in the checkpoint.
        ChangedTypeError: a column has another type now.
    """
    missing = sorted({_COLUMN + name for name in schema.names} - set(table.schema.names))
    if missing:
        raise CheckpointError(
            f"the state of operator {context.uid!r} has no {', '.join(map(as_written, missing))} in its {part} rows: "
            "the columns have changed since the checkpoint; give the operator another uid to start it afresh"
        )
    arrays = [as_type(table.column(_COLUMN + field.name), _COLUMN + field.name, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def owned_rows_of(
    snapshots: Sequence[Snapshot], side: str, keys: Sequence[str], schema: pa.Schema, context: OperatorContext
) -> tuple[pa.RecordBatch, pa.Table]:
    """The rows of one side in all snapshots whose keys belong to this subtask now, and the same rows with their
    details.

    Raises:
        CheckpointError: see `restored_rows`.
    """
    names = [_COLUMN + key for key in keys]
    parts = []
    for snapshot in snapshots:
        table = table_in(snapshot, side)
        restored_rows(table.slice(0, 0), schema, side, context)  # check the columns
        parts.append(owned(table, names, context))
    table = pa.concat_tables(parts).combine_chunks()
    return restored_rows(table, schema, side, context), table
