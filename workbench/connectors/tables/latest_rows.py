"""The latest row of each key among arriving rows: the content of an upsert table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from workbench.compiled import note_rows, order_by_row, warm_up
from workbench.elements import Int64s
from workbench.state.key_index import KeyIndex

_SPARE_ROWS = 65_536
"""This many superseded rows are kept even if there are few keys."""


class LatestRows:
    """Rows as they arrive, and the latest of each key; a null is a key like any other.

    Superseded rows are dropped when they exceed two thirds of all, so the cost per row is constant.

    Args:
        keys: the key columns.
        schema: of the rows.

    Example:
        >>> schema = pa.schema({"key": pa.int64(), "value": pa.int64()})
        >>> latest = LatestRows(["key"], schema)
        >>> latest.add(pa.record_batch([[7, 8, 7], [1, 2, 3]], schema=schema))
        >>> latest.table().to_pylist()
        [{'key': 8, 'value': 2}, {'key': 7, 'value': 3}]
    """

    __slots__ = ("_batches", "_epoch_of", "_index", "_row_of", "_schema", "rows_held")

    def __init__(self, keys: Sequence[str], schema: pa.Schema) -> None:
        warm_up(note_rows, order_by_row)
        self._schema = schema
        self._index = KeyIndex(keys, schema)
        self._row_of: Int64s = np.empty(0, np.int64)
        self._epoch_of: Int64s = np.empty(0, np.int64)
        self._batches: list[pa.RecordBatch] = []
        self.rows_held = 0

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._index)

    def add(self, batch: pa.RecordBatch, epoch: int = 0) -> None:
        """Add rows; they supersede rows of their keys that belong to the same epoch or an earlier one."""
        codes = self._index.codes(batch)
        self._grow(len(self._index))
        note_rows(codes, self.rows_held, epoch, self._row_of, self._epoch_of)
        self._batches.append(batch)
        self.rows_held += batch.num_rows
        if self.rows_held > 3 * len(self._index) + _SPARE_ROWS:
            self._let_go()

    def table(self) -> pa.Table:
        """The latest rows, in the order of arrival."""
        return self._rows(self._row_of[self._order()])

    def epochs(self) -> Int64s:
        """Shape (len,): the epochs of the rows in ``table``."""
        epochs: Int64s = self._epoch_of[self._order()]
        return epochs

    def _order(self) -> Int64s:
        """Shape (len,): the codes in the order of their latest rows."""
        count = len(self._index)
        order = np.empty(count + 1, np.int64)
        order_by_row(self._row_of[:count], np.empty(self.rows_held, np.int64), order)
        return order[:count]

    def _rows(self, numbers: Int64s) -> pa.Table:
        rows = pa.Table.from_batches(self._batches, self._schema).combine_chunks()
        return rows if len(numbers) == rows.num_rows else rows.take(pa.array(numbers))

    def _let_go(self) -> None:
        order = self._order()
        self._batches = self._rows(self._row_of[order]).combine_chunks().to_batches()
        self._row_of[order] = np.arange(len(order))
        self.rows_held = len(order)

    def _grow(self, keys: int) -> None:
        held = len(self._row_of)
        if keys > held:
            more = max(keys, 2 * held) - held
            self._row_of = np.concatenate([self._row_of, np.zeros(more, np.int64)])
            self._epoch_of = np.concatenate([self._epoch_of, np.full(more, -1)])
