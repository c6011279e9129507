"""Aggregates over the rows before each row of a changelog: OVER (ORDER BY a column ROWS ... PRECEDING).

All rows are kept, because each can be taken back. The keys that a batch touches are computed again, and the rows whose
aggregates change are replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s, Records
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.changelogs.linked_rows import LinkedRows, row_hashes
from workbench.operators.changelogs.row_kinds import (
    DELETE,
    FIELD,
    kinds_of,
    net,
    plain_rows,
    plain_schema,
    weights_of,
    with_kinds,
)
from workbench.operators.changelogs.sortable import Order, check_orders, ranks
from workbench.operators.changelogs.touched_groups import TouchedGroups
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.snapshots.saved_rows import owned_rows_of
from workbench.operators.windows.over import Over, aggregated
from workbench.state.key_index import KeyIndex


@dataclass(frozen=True)
class OverRows:
    """Adds aggregates of the rows before each row to a changelog, as a changelog.

    Attributes:
        keys: the key columns; none: all rows have one key.
        aggregates: (name, function) of each column that is added.
        order: the column that orders the rows of a key; of equal rows, any can come first.
        preceding: how many rows before a row its frame has; None: all.
    """

    kind: ClassVar[str] = "over"
    takes_changes: ClassVar[bool] = True
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregation], ...]
    order: Order
    preceding: int | None = None

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The columns of the input, the aggregates, and the kind of each change.

        Raises:
            PlanError: see `Over`; or a column that cannot order rows.
        """
        check_orders((self.order,), inputs[0])
        made = Over(self.keys, self.aggregates, "rows", self.preceding).output_schema([plain_schema(inputs[0])])
        return made.append(FIELD)

    def upsert_key(self, keys: Sequence[tuple[str, ...] | None], inputs: Sequence[pa.Schema]) -> tuple[str, ...] | None:
        """None: a row is identified by its content."""
        return None

    def growing(self) -> str | None:
        """All rows."""
        return "all rows"

    def describe(self) -> str:
        return (
            f"{Over(self.keys, self.aggregates, 'rows', self.preceding).describe()} in order of {self.order.describe()}"
        )

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _OverRows(self, inputs[0])


class _OverRows(Operator):
    """State: the rows of each key."""

    def __init__(self, spec: OverRows, schema: pa.Schema) -> None:
        self._spec = spec
        self._input = plain_schema(schema)
        self._schema = plain_schema(spec.output_schema([schema]))
        self._index = KeyIndex(spec.keys, schema)
        self._rows = LinkedRows(self._input, hashed=True)
        self._touched = TouchedGroups()

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def process(self, records: Records, port: int, out: Output) -> None:
        weights, batch, times = weights_of(records.batch), plain_rows(records.batch), records.timestamps
        codes = self._index.codes(batch)
        groups, _ = self._touched.of(codes, len(self._index))
        self._rows.grow(len(self._index))
        before = self._results(groups)
        added = np.ones(len(codes), np.bool_) if weights is None else weights > 0
        self._rows.add(batch.filter(pa.array(added)), codes[added])
        self._rows.remove_equal(batch.filter(pa.array(~added)), codes[~added])
        both = pa.concat_batches([before, self._results(groups)])
        kinds = np.where(np.arange(len(both)) < len(before), DELETE, 0).astype(np.int8)
        changes = net(with_kinds(both, kinds), row_hashes(both))
        if len(changes):
            back = np.argsort(kinds_of(changes) == 0, kind="stable")  # what is taken back comes first
            latest = None if times is None else np.full(len(changes), int(times.max()))
            out.emit(Records(changes.take(pa.array(back)), latest))
        self._rows.tidy()

    def _results(self, groups: Int64s) -> pa.RecordBatch:
        """All rows of these keys with their aggregates."""
        of, rows = self._rows.follow(groups)
        content = self._rows.take(rows)
        order = self._spec.order
        sorted_by = np.lexsort((row_hashes(content), ~ranks(content.column(order.column), order), of))
        content, of = content.take(pa.array(sorted_by)), of[sorted_by]
        last = np.arange(len(of))
        begins = np.searchsorted(of, of)
        back = self._spec.preceding
        first = begins if back is None else np.maximum(begins, last - back)
        columns = [aggregated(item, content, first, last) for _, item in self._spec.aggregates]
        arrays = [
            column.cast(field.type) if column.type != field.type else column
            for column, field in zip([*content.columns, *columns], self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        return cast("Snapshot", {"rows": self._rows.saved()})

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        batch, _ = owned_rows_of(snapshots, "rows", self._spec.keys, self._input, self._context)
        if len(batch):
            self._rows.add(batch, self._index.codes(batch))
