"""Groups without a window: their results are updated with each batch of records.

A batch changes the result of a group at most once: the old row is taken back and the new one emitted. Records of a
changelog that are taken back are subtracted; a group without records is removed. For counts, sums and means that needs
a few numbers for each group. Distinct counts, and minima and maxima of changelogs, need the values of each group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa

from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.elements import Int64s, Records
from workbench.errors import PlanError
from workbench.operators.aggregates.accumulators import Accumulators
from workbench.operators.aggregates.aggregations import count
from workbench.operators.aggregates.grouping import all_groups_table, one_key, output_fields, owned_groups
from workbench.operators.aggregates.window_functions import (
    AnyAggregation,
    HolisticAggregation,
    aggregate_types,
    expression_of_values,
)
from workbench.operators.changelogs.expiring import Expiring
from workbench.operators.changelogs.row_kinds import (
    DELETE,
    FIELD,
    INSERT,
    KIND,
    equal_rows,
    is_changelog,
    replaced,
    weights_of,
    with_kinds,
)
from workbench.operators.changelogs.touched_groups import TouchedGroups
from workbench.operators.changelogs.value_counts import MOST_COLUMNS, ValueCounts
from workbench.operators.contract.base import Json, Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.snapshots.keyed_snapshot import key_rows, owned_table
from workbench.operators.snapshots.pieces import codes_in, numbers_in
from workbench.state.key_columns import check_keys
from workbench.state.key_index import KeyIndex


@dataclass(frozen=True)
class GroupAggregate:
    """The aggregates of each group, as a changelog; without aggregates, the distinct keys.

    Attributes:
        keys: the columns of the groups; none: all records are one group.
        aggregates: (name, function) of each output column after the keys.
        ttl_us: after this time without a record, in event time, a group is forgotten; None: never.
    """

    kind: ClassVar[str] = "group"
    takes_changes: ClassVar[bool] = True
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, AnyAggregation], ...] = ()
    ttl_us: int | None = None

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The keys, the aggregates, and the kind of each change; distinct keys of added rows only have no kind.

        Raises:
            PlanError: a column that cannot be a key or be aggregated, or duplicate output columns.
            ExpressionError: an aggregate over an unknown column.
        """
        schema = inputs[0]
        if not self.aggregates:
            check_keys(self.keys, schema)
            fields = [schema.field(name) for name in self.keys]
            return pa.schema([*fields, FIELD] if is_changelog(schema) else fields)
        for _, item in self.aggregates:
            if item.function not in ("count", "sum", "min", "max", "mean", "count_distinct"):
                raise PlanError(f"{item.describe()} needs a window, whose records are kept until it ends")
        return pa.schema([*output_fields(self.keys, schema, aggregate_types(self.aggregates, schema)), FIELD])

    def columns_read(self) -> frozenset[str]:
        """The keys, the columns that are aggregated, and the kinds of changes."""
        return frozenset((*self.keys, KIND)) | {item.column for _, item in self.aggregates if item.column is not None}

    def upsert_key(self, keys: Sequence[tuple[str, ...] | None], inputs: Sequence[pa.Schema]) -> tuple[str, ...]:
        """Those of the groups."""
        return self.keys

    def growing(self) -> str | None:
        """One entry for each group."""
        if self.ttl_us is not None:
            return None
        what = "a row" if not self.aggregates else "the aggregates"
        return f"{what} of each {', '.join(self.keys)}" if self.keys else None

    def describe(self) -> str:
        by = f"by {', '.join(self.keys)}" if self.keys else "all rows"
        names = ", ".join(aggregation.describe() for _, aggregation in self.aggregates)
        return f"{names or 'distinct'} {by}"

    def sees_watermarks(self) -> bool:
        """It does if a watermark makes it forget."""
        return self.ttl_us is not None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        schema = inputs[0]

        def make() -> Operator:
            return _Groups(self, schema) if self.aggregates else _DistinctKeys(self, schema)

        if self.ttl_us is None or not self.keys:
            return make()
        return Expiring(make, self.keys, schema, self.ttl_us, not self.aggregates and not is_changelog(schema))


@dataclass(frozen=True, slots=True)
class _Folded:
    """An aggregate that is folded into accumulators, at this place."""

    at: int


@dataclass(frozen=True, slots=True)
class _OfValues:
    """An aggregate of the values that each group has.

    Attributes:
        function: the function.
        values: the place of its `ValueCounts` among all.
        at: the place of its column in there.
    """

    function: str
    values: int
    at: int


def _shared(item: AnyAggregation, tables: list[tuple[str, list[AnyAggregation]]]) -> _OfValues:
    """Let an aggregate share a table of values with others that look at the same ones."""
    values = expression_of_values(item)
    sharing = [at for at, (other, items) in enumerate(tables) if other == values and len(items) < MOST_COLUMNS]
    if not sharing:
        tables.append((values, []))
    at = sharing[0] if sharing else len(tables) - 1
    items = tables[at][1]
    items.append(item)
    return _OfValues(item.function, at, len(items) - 1)


class _Groups(Operator):
    """State: the accumulators of each group, at the group's code; a group without records has a count of 0."""

    def __init__(self, spec: GroupAggregate, schema: pa.Schema) -> None:
        self._keys = spec.keys
        self._schema = pa.schema([field for field in spec.output_schema([schema]) if field.name != KIND])
        self._index = KeyIndex(spec.keys, schema)
        self._touched = TouchedGroups()
        back = is_changelog(schema)
        folded, self._columns = [count()], cast("list[_Folded | _OfValues]", [])
        tables: list[tuple[str, list[AnyAggregation]]] = []
        for _, item in spec.aggregates:
            if isinstance(item, HolisticAggregation) or (back and item.function in ("min", "max")):
                self._columns.append(_shared(item, tables))
            else:
                self._columns.append(_Folded(len(folded)))
                folded.append(item)
        self._accumulators = Accumulators(folded, schema)
        self._values: list[ValueCounts] = []
        for _, items in tables:
            extremes = any(item.function != "count_distinct" for item in items)
            self._values.append(ValueCounts([item.column or "" for item in items], schema, back, extremes))

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def process(self, records: Records, port: int, out: Output) -> None:
        batch = records.batch
        codes = self._index.codes(batch)
        self._accumulators.grow(len(self._index))
        groups, of_rows = self._touched.of(codes, len(self._index))
        keys = self._index.keys_table(groups)
        counts, before = self._results(groups, keys)
        had = counts > 0
        weights = weights_of(batch)
        self._accumulators.update(codes, batch, weights=weights)
        for values in self._values:
            values.add(codes, batch, weights)
        counts, after = self._results(groups, keys)
        has = (counts > 0) | (had & (not self._keys))
        same = had & has & equal_rows(before, after)
        before = before if had.all() else before.filter(pa.array(had))
        after = after if has.all() else after.filter(pa.array(has))
        changes, places = replaced(before, after, had, has, same)
        if changes.num_rows:
            times = records.timestamps
            last = self._touched.last_rows(of_rows, len(groups))
            out.emit(Records(changes, None if times is None else times[last[places]]))

    def _results(self, groups: Int64s, keys: pa.RecordBatch) -> tuple[Int64s, pa.RecordBatch]:
        """The number of records of each group, and its row."""
        folded = self._accumulators.results(groups)
        columns: list[pa.Array] = []
        for column in self._columns:
            if isinstance(column, _Folded):
                columns.append(folded[column.at])
                continue
            values = self._values[column.values]
            if column.function == "count_distinct":
                columns.append(pa.array(values.distinct(groups, column.at)))
            else:
                columns.append(values.extremes(groups, column.at, column.function == "max"))
        arrays = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip([*(keys.columns if self._keys else ()), *columns], self._schema, strict=True)
        ]
        return folded[0].to_numpy(), pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        codes = self._index.find(one_key(self._keys, self._schema, key))
        if codes[0] < 0:
            return None
        counts, rows = self._results(codes, self._index.keys_table(codes))
        found = rows.to_pylist()[0]
        return {name: value for name, value in found.items() if name not in self._keys} if counts[0] else None

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        known = len(self._index)
        return known, python_rows(self._index.keys_table(np.arange(min(limit, known))))

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        pieces: dict[str, pa.Table | Json | DelayedEncoding] = {
            "groups": all_groups_table(self._index, self._accumulators)
        }
        for name, column in self._pieces():
            pieces[name] = self._values[column.values].saved(self._index, column.at)
        return cast("Snapshot", pieces)

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        groups = owned_groups(snapshots, "groups", self._keys, self._accumulators, self._context)
        if groups is not None:
            codes = codes_in(self._index, key_rows(groups, self._keys))
            self._accumulators.grow(len(self._index))
            self._accumulators.load(codes, groups)
        for name, column in self._pieces():
            table = owned_table(snapshots, name, self._keys, self._context)
            if table is not None:
                codes = codes_in(self._index, key_rows(table, self._keys))
                values, counts = table.column("value").combine_chunks(), numbers_in(table, "count", 1)
                self._values[column.values].load(column.at, codes, values, counts)

    def _pieces(self) -> list[tuple[str, _OfValues]]:
        """The pieces of a snapshot that hold values, one for each aggregate that looks at them."""
        columns = [column for column in self._columns if isinstance(column, _OfValues)]
        return [(f"values-{at}", column) for at, column in enumerate(columns)]


class _DistinctKeys(Operator):
    """State: the keys; of a changelog, the number of records of each."""

    def __init__(self, spec: GroupAggregate, schema: pa.Schema) -> None:
        self._keys = spec.keys
        self._back = is_changelog(schema)
        self._index = KeyIndex(spec.keys, schema)
        self._touched = TouchedGroups()
        self._counts: Int64s = np.empty(0, np.int64)
        self._schema = pa.schema([schema.field(name) for name in spec.keys])

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def process(self, records: Records, port: int, out: Output) -> None:
        batch, times = records.batch, records.timestamps
        known = len(self._index)
        codes = self._index.codes(batch)
        if not self._back:
            if len(self._index) > known:
                fresh = np.arange(known, len(self._index))
                rows = np.empty(len(fresh), np.int64)
                new = np.flatnonzero(codes >= known)[::-1]
                rows[codes[new] - known] = new
                found = None if times is None else times[rows]
                out.emit(Records(self._rows(fresh), found))
            return
        self._grow(len(self._index))
        groups, of_rows = self._touched.of(codes, len(self._index))
        weights = weights_of(batch)
        before = self._counts[groups]
        change = np.bincount(of_rows, weights) if weights is not None else np.bincount(of_rows)
        after = before + change.astype(np.int64)
        self._counts[groups] = after
        changed = np.flatnonzero((before > 0) != (after > 0))
        if len(changed):
            kinds = np.where(after[changed] > 0, INSERT, DELETE).astype(np.int8)
            last = self._touched.last_rows(of_rows, len(groups))
            found = None if times is None else times[last[changed]]
            out.emit(Records(with_kinds(self._rows(groups[changed]), kinds), found))

    def _rows(self, codes: Int64s) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self._index.keys_table(codes).columns, schema=self._schema)

    def _grow(self, keys: int) -> None:
        held = len(self._counts)
        if keys > held:
            self._counts = np.concatenate([self._counts, np.zeros(max(keys, 2 * held) - held, np.int64)])

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        keys = self._index.keys_table()
        self._grow(len(self._index))
        counts = self._counts[: len(self._index)].copy()
        names = [f"key:{name}" for name in self._keys]
        return {"keys": pa.Table.from_arrays([*keys.columns, pa.array(counts)], [*names, "count"])}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        table = owned_table(snapshots, "keys", self._keys, self._context)
        if table is not None:
            codes = codes_in(self._index, key_rows(table, self._keys))
            self._grow(len(self._index))
            self._counts[codes] = numbers_in(table, "count")
