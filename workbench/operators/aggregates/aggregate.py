"""Rolling aggregates: each input record yields one output record with the aggregates of its key so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.compiled import roll_keys, roll_slots, running_floats, running_ints, warm_up
from workbench.elements import Records
from workbench.operators.aggregates.accumulators import Accumulators
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.aggregates.grouping import all_groups_table, one_key, output_fields, owned_groups
from workbench.operators.aggregates.window_functions import aggregate_types
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.snapshots.keyed_snapshot import key_rows
from workbench.operators.snapshots.pieces import codes_in
from workbench.state.key_index import KeyIndex


@dataclass(frozen=True)
class RollingAggregate:
    """Every record updates its key's aggregates and emits them, with its own event time.

    Attributes:
        keys: the key columns; none means one group.
        aggregates: (name, function) of each output column after the keys.
    """

    kind: ClassVar[str] = "aggregate"
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregation], ...]

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The key columns, then the aggregates.

        Raises:
            PlanError: a column that cannot be a key or be aggregated, or duplicate output columns.
            ExpressionError: an aggregate over an unknown column.
        """
        return pa.schema(output_fields(self.keys, inputs[0], aggregate_types(self.aggregates, inputs[0])))

    def columns_read(self) -> frozenset[str]:
        """The keys and the columns that are aggregated."""
        return frozenset(self.keys) | {item.column for _, item in self.aggregates if item.column is not None}

    def describe(self) -> str:
        return ", ".join(aggregation.describe() for _, aggregation in self.aggregates)

    def growing(self) -> str | None:
        """One entry for each key."""
        return f"the aggregates of each {', '.join(self.keys)}" if self.keys else None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _RollingAggregate(self, inputs[0])


class _RollingAggregate(Operator):
    """State: the accumulators of each key, at the key's code."""

    def __init__(self, spec: RollingAggregate, schema: pa.Schema) -> None:
        warm_up(roll_keys, roll_slots, running_floats, running_ints)
        self._keys = spec.keys
        self._output_schema = spec.output_schema([schema])
        self._index = KeyIndex(spec.keys, schema)
        self._accumulators = Accumulators([aggregation for _, aggregation in spec.aggregates], schema)

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def process(self, records: Records, port: int, out: Output) -> None:
        batch = records.batch
        columns = [batch.column(name) for name in self._keys]
        plain = self._index.plain_numbers(columns)
        values = None if plain is None else self._accumulators.roll(*plain, batch)
        if values is None:
            codes = self._index.codes(batch)
            self._accumulators.grow(len(self._index))
            values = self._accumulators.running(codes, batch)
        columns += values
        out.emit(Records(pa.RecordBatch.from_arrays(columns, schema=self._output_schema), records.timestamps))

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        codes = self._index.find(one_key(self._keys, self._output_schema, key))
        if codes[0] < 0:
            return None
        names = self._output_schema.names[len(self._keys) :]
        values = self._accumulators.results(codes)
        return {name: value[0].as_py() for name, value in zip(names, values, strict=True)}

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        known = len(self._index)
        return known, python_rows(self._index.keys_table(np.arange(min(limit, known))))

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        return {"groups": all_groups_table(self._index, self._accumulators)}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        groups = owned_groups(snapshots, "groups", self._keys, self._accumulators, self._context)
        if groups is not None:
            codes = codes_in(self._index, key_rows(groups, self._keys))
            self._accumulators.grow(len(self._index))
            self._accumulators.load(codes, groups)
