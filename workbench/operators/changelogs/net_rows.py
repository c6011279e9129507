"""The table that a changelog describes, with as many equal rows as it has."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from workbench.operators.changelogs.linked_rows import row_hashes
from workbench.operators.changelogs.row_kinds import INSERT, KIND, net, plain_rows, plain_schema
from workbench.operators.snapshots.saved_rows import together


class NetRows:
    """Adds up the changes of a changelog, in any order.

    Args:
        schema: of the changes.

    Example:
        >>> from workbench.operators.changelogs.row_kinds import FIELD
        >>> schema = pa.schema([pa.field("n", pa.int64()), FIELD])
        >>> rows = NetRows(schema)
        >>> rows.add(pa.record_batch([[5, 5, 6, 5], pa.array([0, 0, 0, 3], pa.int8())], schema=schema))
        >>> rows.table().to_pydict()
        {'n': [5, 6]}
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take changes in."""
        self._batches.append(batch)

    def table(self) -> pa.Table:
        """The remaining rows; rows that were retracted before they arrived do not count."""
        rows = together(self._batches, self._schema)
        rows = net(rows, row_hashes(plain_rows(rows)))
        self._batches = [rows.select(self._schema.names)]
        there = rows.filter(pc.equal(rows.column(KIND), pa.scalar(INSERT, pa.int8())))
        return pa.Table.from_batches([plain_rows(there)], plain_schema(self._schema))
