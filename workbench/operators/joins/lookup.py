"""Join a stream with a constant table: enrichment, without state and without waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.compiled import order_by_code
from workbench.connectors.contract.plain_types import plain_table
from workbench.elements import Records
from workbench.errors import SettingError
from workbench.operators.contract.base import Operator, Output
from workbench.operators.joins.columns import JoinColumns, JoinRows, key_batch, pairs_of, without_null_keys
from workbench.state.key_index import KeyIndex


@dataclass(frozen=True, eq=False)
class LookupJoin:
    """Joins records with the rows of a table that have the same key; event times stay with the records.

    A record with several matching rows is emitted several times, in the order of the rows. One without any is dropped
    (``inner``) or emitted with nulls (``left``).

    Attributes:
        columns: the columns compared and emitted.
        table: the right side; part of the description, so a recovery finds the same rows.

    Raises:
        SettingError: an outer join, which would need the end of the stream.

    Example:
        >>> airports = pa.table({"origin": ["JFK"], "city": ["New York"]})
        >>> LookupJoin(JoinColumns(("origin",), ("origin",), "left"), airports).describe()
        'left join on origin, table of 1 row'
    """

    kind: ClassVar[str] = "join"
    columns: JoinColumns
    table: pa.Table

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", plain_table(self.table))
        if self.columns.how == "outer":
            raise SettingError(
                "a join with a table can be 'inner' or 'left', not 'outer': a stream has no end to wait for"
            )

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """See `JoinColumns`."""
        return self.columns.output_schema(inputs[0], self.table.schema)

    def describe(self) -> str:
        rows = self.table.num_rows
        return f"{self.columns.describe()}, table of {rows} row{'' if rows == 1 else 's'}"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _LookupJoin(self.columns, self.table, inputs[0])


class _LookupJoin(Operator):
    """The table's rows by key code."""

    def __init__(self, columns: JoinColumns, table: pa.Table, schema: pa.Schema) -> None:
        self._rows = JoinRows(columns, schema, table.schema)
        self._keys = columns.left_keys
        self._names = columns.right_keys
        self._keeps_left = columns.keeps_left
        arrays = [column.combine_chunks() for column in table.columns]
        right = pa.RecordBatch.from_arrays(arrays, schema=table.schema)
        complete = without_null_keys(right, self._names)
        if complete is not None:  # a null key equals nothing
            right = right.filter(pa.array(complete))
        self._index = KeyIndex(self._names, table.schema)
        codes = self._index.codes(right)
        self._starts = np.zeros(len(self._index) + 2, np.int64)  # an additional code without rows: that of unknown keys
        order = np.empty(len(codes), np.int64)
        order_by_code(codes, self._starts, order)
        self._table = right.take(pa.array(order))

    def process(self, records: Records, port: int, out: Output) -> None:
        batch, times = records.batch, records.timestamps
        codes = self._index.find(key_batch(batch, self._keys, self._names))
        codes[codes < 0] = len(self._index)
        firsts = self._starts[codes]
        counts = self._starts[codes + 1] - firsts
        alone = counts == 0
        if self._keeps_left:
            lefts, rights = pairs_of(firsts, np.maximum(counts, 1))
            found = self._table.take(pa.array(rights, mask=alone[lefts] if alone.any() else None))
        else:
            lefts, rights = pairs_of(firsts, counts)
            found = self._table.take(pa.array(rights))
        if len(lefts) != len(batch) or (alone.any() and not self._keeps_left):
            batch = batch.take(pa.array(lefts))
            times = None if times is None else times[lefts]
        out.emit(Records(self._rows.assemble(batch, found), times))
