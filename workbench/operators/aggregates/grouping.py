"""The common part of the keyed aggregate operators: their columns, and their groups in a snapshot.

In a snapshot the key columns are named ``key:origin`` and the accumulators' cells ``cell:sum(delay)``, so that names of
user columns cannot clash with others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from workbench.elements import Int64s
from workbench.errors import PlanError
from workbench.operators.aggregates.accumulators import Accumulators
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.snapshots.keyed_snapshot import check_columns, owned
from workbench.operators.snapshots.pieces import table_in
from workbench.state.key_columns import check_keys
from workbench.state.key_index import KeyIndex
from workbench.state.keyed_states import with_keys


def output_fields(keys: Sequence[str], schema: pa.Schema, added: Sequence[pa.Field]) -> list[pa.Field]:
    """The key columns' fields, then `added`.

    Raises:
        PlanError: a column that cannot be a key, nothing to aggregate, or duplicate output columns.
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
    names = [*details, *(field.name for field in accumulators.state_fields())]
    return with_keys(index.keys_table(codes), [*details.values(), *accumulators.state_columns(slots)], names)


def all_groups_table(index: KeyIndex, accumulators: Accumulators) -> pa.Table:
    """The result of ``groups_table`` for all keys, where a key's slot is its code."""
    names = [field.name for field in accumulators.state_fields()]
    return with_keys(index.keys_table(), accumulators.first_state_columns(len(index)), names)


def owned_groups(
    snapshots: Sequence[Snapshot], name: str, keys: Sequence[str], accumulators: Accumulators, context: OperatorContext
) -> pa.Table | None:
    """The groups in all snapshots' tables `name` that belong to this subtask now, in one chunk; None if there are none.

    Raises:
        CheckpointError: the state has other keys or aggregates than the operator.
    """
    columns = [f"key:{key}" for key in keys]
    expected = [*columns, *(field.name for field in accumulators.state_fields())]
    parts = []
    for snapshot in snapshots:
        table = table_in(snapshot, name)
        check_columns(table.schema.names, expected, "keys or aggregates", context)
        parts.append(owned(table, columns, context))
    groups = pa.concat_tables(parts, promote_options="none") if parts else None
    return groups.combine_chunks() if groups is not None and groups.num_rows else None


def one_key(keys: Sequence[str], schema: pa.Schema, key: Mapping[str, object]) -> pa.RecordBatch:
    """The key of a query, as a batch of one row; `schema` has the key columns."""
    if not keys:
        return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
    fields = [schema.field(name) for name in keys]
    return pa.RecordBatch.from_arrays([pa.array([key[f.name]], f.type) for f in fields], schema=pa.schema(fields))
