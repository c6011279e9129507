"""Tables in snapshots whose rows belong to keys: their key columns are called ``key:NAME``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from workbench.errors import CheckpointError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.snapshots.pieces import table_in
from workbench.state.key_groups import owned_rows


def owned_table(
    snapshots: Sequence[Snapshot], name: str, keys: Sequence[str], context: OperatorContext
) -> pa.Table | None:
    """The rows of all snapshots' tables `name` whose keys this subtask owns now; None without any.

    Raises:
        CheckpointError: the tables are of other keys.
    """
    owned = list(owned_parts(snapshots, name, keys, context))
    rows = pa.concat_tables(owned, promote_options="none").combine_chunks() if owned else None
    return rows if rows is not None and rows.num_rows else None


def owned_parts(
    snapshots: Sequence[Snapshot], name: str, keys: Sequence[str], context: OperatorContext
) -> Iterator[pa.Table]:
    """These rows batch by batch, as they were written, so that all of them need not be in memory at once.

    Raises:
        CheckpointError: the tables are of other keys.
    """
    columns = [f"key:{key}" for key in keys]
    for snapshot in snapshots:
        if name not in snapshot:
            continue
        table = table_in(snapshot, name)
        found = [column for column in table.schema.names if column.startswith("key:")]
        if found != columns:
            raise CheckpointError(
                f"the state of operator {context.uid!r} is by {', '.join(found)}, and its keys are "
                f"{', '.join(columns)} now: give the operator another uid to start it afresh"
            )
        for batch in table.to_batches():
            part = pa.Table.from_batches([batch])
            yield owned_rows(part, columns, context.subtask, context.parallelism, context.max_parallelism)


def key_rows(table: pa.Table, keys: Sequence[str]) -> pa.RecordBatch:
    """The key columns of `table`, which is in one chunk, under their own names."""
    arrays = [table.column(f"key:{key}").combine_chunks() for key in keys]
    return pa.RecordBatch.from_arrays(arrays, names=list(keys))
