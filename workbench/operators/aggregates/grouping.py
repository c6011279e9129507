"""What the keyed aggregate operators share: their columns, and their groups in a snapshot.

In a snapshot the key columns are named ``key:origin`` and the accumulators' cells ``cell:sum(delay)``, so that no
user's column name can clash with another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from workbench.elements import Int64s
from workbench.errors import CheckpointError, PlanError
from workbench.operators.aggregates.accumulators import Accumulators
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.snapshots.pieces import table_in
from workbench.state.key_columns import check_keys
from workbench.state.key_groups import owned_rows
from workbench.state.key_index import KeyIndex


def output_fields(keys: Sequence[str], schema: pa.Schema, added: Sequence[pa.Field]) -> list[pa.Field]:
    """The key columns' fields, then `added`.

    Raises:
        PlanError: a column that cannot be a key, nothing to aggregate, or two output columns of one name.
    """
    check_keys(keys, schema)
    if not added:
        raise PlanError("aggregate() has no aggregates: name at least one, for example flights=count()")
    seen = set(keys)
    for field in added:
        if field.name in seen:
            raise PlanError(f"two output columns are named {field.name!r}: give the aggregate another name")
        seen.add(field.name)
    return [schema.field(name) for name in keys] + list(added)


def groups_table(
    index: KeyIndex, codes: Int64s, details: Mapping[str, pa.Array], accumulators: Accumulators, slots: Int64s
) -> pa.Table:
    """A copy of groups: their keys (by `codes`), details, and the cells of their accumulators (by `slots`)."""
    keys = index.keys_table(codes)
    names = [f"key:{name}" for name in keys.schema.names] + list(details)
    names += [field.name for field in accumulators.state_fields()]
    columns = [*keys.columns, *details.values(), *accumulators.state_columns(slots)]
    return pa.Table.from_arrays(columns, names=names)


def all_groups_table(index: KeyIndex, accumulators: Accumulators) -> pa.Table:
    """What ``groups_table`` gives for all keys, where a key's slot is its code."""
    keys = index.keys_table()
    names = [f"key:{name}" for name in keys.schema.names] + [field.name for field in accumulators.state_fields()]
    return pa.Table.from_arrays([*keys.columns, *accumulators.first_state_columns(len(index))], names=names)


def owned_groups(
    snapshots: Sequence[Snapshot], name: str, keys: Sequence[str], accumulators: Accumulators, context: OperatorContext
) -> pa.Table | None:
    """The groups in all snapshots' tables `name` that this subtask owns now, in one chunk; None without any.

    Raises:
        CheckpointError: the state is of other keys or aggregates than the operator has now.
    """
    expected = {f"key:{key}" for key in keys} | {field.name for field in accumulators.state_fields()}
    owned = []
    for snapshot in snapshots:
        table = table_in(snapshot, name)
        missing = sorted(expected - set(table.schema.names))
        if missing:
            raise CheckpointError(
                f"the state of operator {context.uid!r} has no column {', '.join(missing)}: its keys or aggregates "
                "have changed since the checkpoint; give the operator another uid to start it afresh"
            )
        owned.append(
            owned_rows(
                table, [f"key:{key}" for key in keys], context.subtask, context.parallelism, context.max_parallelism
            )
        )
    groups = pa.concat_tables(owned, promote_options="none") if owned else None
    return groups.combine_chunks() if groups is not None and groups.num_rows else None


def one_key(keys: Sequence[str], schema: pa.Schema, key: Mapping[str, object]) -> pa.RecordBatch:
    """A key that is asked for, as a batch of one row; `schema` has the key columns."""
    if not keys:
        return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
    fields = [schema.field(name) for name in keys]
    return pa.RecordBatch.from_arrays([pa.array([key[f.name]], f.type) for f in fields], schema=pa.schema(fields))


def keys_of(groups: pa.Table, keys: Sequence[str]) -> pa.RecordBatch:
    """The key columns of `groups` under their own names."""
    if not keys:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * groups.num_rows, pa.struct([])))
    arrays = [groups.column(f"key:{key}").combine_chunks() for key in keys]
    return pa.RecordBatch.from_arrays(arrays, names=list(keys))
