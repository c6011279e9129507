"""Partial aggregates: rows that replace the records of one key and window before they are sent.

A batch of partials has the key columns, the cells of the accumulators as in a snapshot, and then `RECORDS`. The event
time of a partial lies in its window and is not later than that of its earliest record, so watermarks have the same
meaning for it as for its records.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.elements import Int64s, Records
from workbench.operators.aggregates.accumulator_layout import layout_of
from workbench.operators.aggregates.accumulators import Accumulators
from workbench.operators.aggregates.aggregations import Aggregation, count

RECORDS = "$records"
"""The column with the number of records that a partial replaces."""


def is_preaggregated(batch: pa.RecordBatch) -> bool:
    """Whether the rows are partials; only for batches whose records have no column of that name.

    Example:
        >>> is_preaggregated(pa.record_batch({"k": [1], "$records": [5]}))
        True
    """
    return bool(batch.schema.get_field_index(RECORDS) >= 0)


def records_in(batch: pa.RecordBatch) -> int:
    """The number of records that the partials of a batch replace.

    Example:
        >>> records_in(pa.record_batch({"k": [1, 2], "$records": [5, 3]}))
        8
    """
    return pc.sum(batch.column(RECORDS)).as_py() or 0


def check_preaggregated(
    partials: Records, keys: Sequence[str], aggregations: Sequence[Aggregation], schema: pa.Schema
) -> None:
    """Reject partials from a checkpoint that do not fit these aggregates.

    Args:
        partials: in-flight rows of the checkpoint.
        keys: the key columns.
        aggregations: the functions.
        schema: of the records.

    Raises:
        ValueError: a column is missing, of another type, or has a null; or event times are missing.
    """
    cells = {field.name: field.type for field in layout_of((*aggregations, count()), schema).fields}
    cells[RECORDS] = cells.pop(_COUNTED.name)
    expected = {key: schema.field(key).type for key in keys} | cells
    found = dict(zip(partials.batch.schema.names, partials.batch.schema.types, strict=True))
    if found != expected or partials.timestamps is None:
        raise ValueError(f"partial aggregates have the columns {', '.join(found)} instead of {', '.join(expected)}")
    if any(partials.batch.column(name).null_count for name in cells):
        raise ValueError("partial aggregates have a null")


class Folding:
    """Makes partials of records.

    Args:
        aggregations: the functions.
        schema: of the records.
    """

    __slots__ = ("_accumulators", "_fields")

    def __init__(self, aggregations: Sequence[Aggregation], schema: pa.Schema) -> None:
        self._accumulators = Accumulators([*aggregations, count()], schema)
        self._fields = self._accumulators.state_fields()

    def fold(
        self, batch: pa.RecordBatch, groups: Int64s, sizes: Int64s, keys: pa.RecordBatch, times: Int64s
    ) -> Records:
        """The partials of a batch.

        Args:
            batch: n records.
            groups: shape (n,), the group of each, from 0 to ``len(times) - 1``.
            sizes, keys, times: of each group, how many records it has, its key and its event time.

        Raises:
            RecordError: an integer sum exceeds the range of int64.
        """
        accumulators = self._accumulators
        accumulators.retain(np.empty(0, np.int64))
        accumulators.grow(len(times))
        accumulators.update(groups, batch, sizes)
        cells = accumulators.first_state_columns(len(times))
        at = self._fields.index(_COUNTED)
        columns = [*keys.columns, *cells[:at], *cells[at + 1 :], cells[at]]
        schema = pa.schema([*keys.schema, *self._fields[:at], *self._fields[at + 1 :], pa.field(RECORDS, pa.int64())])
        return Records(pa.RecordBatch.from_arrays(columns, schema=schema), times)


class Merging:
    """Merges partials into accumulators (see `Folding` for the arguments)."""

    __slots__ = ("_brought",)

    def __init__(self, aggregations: Sequence[Aggregation], schema: pa.Schema) -> None:
        self._brought = Accumulators(aggregations, schema)

    def merge(self, partials: pa.RecordBatch, into: Accumulators, slots: Int64s) -> None:
        """Fold partial i into ``slots[i]``.

        Raises:
            RecordError: an integer sum exceeds the range of int64.
        """
        rows = np.arange(partials.num_rows)
        brought = self._brought
        brought.grow(len(rows))
        names = [_COUNTED.name if name == RECORDS else name for name in partials.schema.names]
        brought.load(rows, pa.Table.from_batches([partials]).rename_columns(names))
        into.merge(brought, rows, slots)


_COUNTED = pa.field("cell:count()", pa.int64())
