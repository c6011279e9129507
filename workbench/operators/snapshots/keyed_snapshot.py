"""Tables in snapshots whose rows belong to keys: the key columns are named ``key:NAME``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa

from workbench.errors import CheckpointError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.snapshots.changed_types import as_written
from workbench.operators.snapshots.pieces import table_in
from workbench.state.key_groups import owned_rows


def owned_table(
    snapshots: Sequence[Snapshot], name: str, keys: Sequence[str], context: OperatorContext
) -> pa.Table | None:
    """The rows of all snapshots' tables `name` whose keys belong to this subtask now; None if there are none.

    Raises:
        CheckpointError: the tables have other keys.
    """
    parts = list(owned_parts(snapshots, name, keys, context))
    rows = pa.concat_tables(parts, promote_options="none").combine_chunks() if parts else None
    return rows if rows is not None and rows.num_rows else None


def owned_parts(
    snapshots: Sequence[Snapshot], name: str, keys: Sequence[str], context: OperatorContext
) -> Iterator[pa.Table]:
    """These rows batch by batch, as they were written, so that not all of them need be in memory at once.

    Raises:
        CheckpointError: the tables have other keys.
    """
    columns = [f"key:{key}" for key in keys]
    for snapshot in snapshots:
        if name not in snapshot:
            continue
        table = table_in(snapshot, name)
        found = [column for column in table.schema.names if column.startswith("key:")]
        if found != columns:
            raise CheckpointError(
                f"the state of operator {context.uid!r} is keyed by {_written(found)}, but its keys are now "
                f"{_written(columns)}: give the operator another uid to start it afresh"
            )
        for batch in table.to_batches():
            part = pa.Table.from_batches([batch])
            yield owned(part, columns, context)


def owned(table: pa.Table, columns: Sequence[str], context: OperatorContext) -> pa.Table:
    """The rows of `table` whose keys, in these columns, belong to the subtask."""
    return owned_rows(table, columns, context.subtask, context.parallelism, context.max_parallelism)


def check_columns(found: Collection[str], expected: Collection[str], what: str, context: OperatorContext) -> None:
    """Reject a table of the operator's state that lacks a column.

    Raises:
        CheckpointError: a column is missing, because `what` has changed.
    """
    missing = sorted(set(expected).difference(found))
    if missing:
        raise CheckpointError(
            f"the state of operator {context.uid!r} has no column {_written(missing)}: its {what} have changed since "
            "the checkpoint; give the operator another uid to start it afresh"
        )


def _written(columns: Sequence[str]) -> str:
    return ", ".join(map(as_written, columns)) or "nothing"


def key_rows(table: pa.Table, keys: Sequence[str]) -> pa.RecordBatch:
    """The key columns of `table`, which is in one chunk, under their own names."""
    if not keys:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * table.num_rows, pa.struct([])))
    arrays = [table.column(f"key:{key}").combine_chunks() for key in keys]
    return pa.RecordBatch.from_arrays(arrays, names=list(keys))
