"""How often each value of a column occurs in each group: for distinct counts, and for extremes of rows taken back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.compiled import count_links, count_values, follow_links, link_rows, mark_values, warm_up
from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.elements import Int64s
from workbench.operators.changelogs.sortable import Order, ranks
from workbench.state.key_columns import plain
from workbench.state.key_index import KeyIndex
from workbench.state.key_table import KeyTable
from workbench.state.keyed_states import with_keys

MOST_COLUMNS = 62
"""The number of bits of an integer that can be shifted without its sign."""


class ValueCounts:
    """The values of one column in each group, with their numbers; nulls do not count.

    Aggregates that look at the same column, each at the rows of its own condition, share the table of values. Each has
    a column of its own, which is null where its condition does not hold.

    Args:
        columns: the values for each aggregate; in a row, those that are not null are equal. Their type can be that of a
            key, and there are at most `MOST_COLUMNS`.
        schema: of the batches.
        taken_back: whether rows are taken back, so that numbers are needed and not only the values.
        extremes: whether the least and the largest value of a group are asked for.

    Example:
        >>> schema = pa.schema({"n": pa.int64(), "odd": pa.int64()})
        >>> counts = ValueCounts(["n", "odd"], schema)
        >>> rows = pa.record_batch([[5, 5, 7, 8], [5, 5, 7, None]], schema=schema)
        >>> counts.add(np.array([0, 0, 1, 1]), rows, None)
        >>> counts.distinct(np.array([0, 1]), 0).tolist(), counts.distinct(np.array([0, 1]), 1).tolist()
        ([1, 2], [1, 1])
    """

    __slots__ = ("_columns", "_counts", "_distinct", "_extremes", "_heads", "_marks", "_nexts", "_pairs", "_taken_back",
                 "_values")  # fmt: skip

    def __init__(
        self, columns: Sequence[str], schema: pa.Schema, taken_back: bool = False, extremes: bool = False
    ) -> None:
        warm_up(count_links, count_values, follow_links, link_rows, mark_values)
        self._columns = tuple(columns)
        self._values = KeyIndex(columns[:1], schema)
        self._pairs = KeyTable()
        self._taken_back = taken_back
        self._extremes = extremes
        nothing = np.empty(0, np.int64)
        self._marks: Int64s = nothing  # by pair, the bits of the columns in which it has occurred
        self._counts: Int64s = np.empty((0, len(columns)), np.int64)  # the same in numbers, if rows are taken back
        self._nexts: Int64s = nothing  # by pair, the pair of the same group before it
        self._heads: Int64s = nothing  # by group, the last of its pairs
        self._distinct: Int64s = np.empty((0, len(columns)), np.int64)  # by group and column

    def add(self, groups: Int64s, batch: pa.RecordBatch, weights: Int64s | None) -> None:
        """Count the values of a batch.

        Args:
            groups: shape (n,), the code of each row's group.
            batch: n rows.
            weights: shape (n,), 1 for rows that are added and -1 for those that are taken back; None: all are added.
        """
        columns = [batch.column(name) for name in self._columns]
        values, masks = _value_of_rows(columns), _masks(columns)
        if values.null_count:
            there = masks != 0
            values, groups, masks = values.drop_null(), groups[there], masks[there]
            weights = None if weights is None else weights[there]
        if len(values):
            self._add(groups, values, masks, weights)

    def _add(self, groups: Int64s, values: pa.Array, masks: Int64s, weights: Int64s | None) -> None:
        self._distinct = _grown(self._distinct, int(groups.max()) + 1, 0)
        known = len(self._pairs)
        pairs = self._codes(groups, values)
        if self._extremes:
            self._heads = _grown(self._heads, len(self._distinct), -1)
            self._nexts = _grown(self._nexts, len(self._pairs), -1)
            link_rows(self._pairs.keys()[known:] >> 32, known, self._heads, self._nexts)
        if self._taken_back:
            self._counts = _grown(self._counts, len(self._pairs), 0)
            weights = np.ones(len(groups), np.int64) if weights is None else weights
            count_values(pairs, groups, masks, weights, self._counts, self._distinct)
        else:
            self._marks = _grown(self._marks, len(self._pairs), 0)
            mark_values(pairs, groups, masks, self._marks, self._distinct)

    def _codes(self, groups: Int64s, values: pa.Array) -> Int64s:
        """Shape (n,): the pair of each group and value."""
        codes = self._values.codes(pa.RecordBatch.from_arrays([values], [self._columns[0]]))
        return self._pairs.codes(groups << 32 | codes)

    def _numbers(self, pairs: Int64s | slice, at: int) -> Int64s:
        """How often pairs occur in a column; if no rows are taken back, whether they do."""
        numbers: Int64s = self._counts[pairs, at] if self._taken_back else self._marks[pairs] >> at & 1
        return numbers

    def distinct(self, groups: Int64s, at: int) -> Int64s:
        """Shape (n,): how many different values each group has in a column, given by its place."""
        held = len(self._distinct)
        return np.where(groups < held, self._distinct[np.minimum(groups, held - 1), at], 0) if held else 0 * groups

    def extremes(self, groups: Int64s, at: int, largest: bool) -> pa.Array:
        """Shape (n,): the largest or the least value of each group in a column, null where it has none."""
        best = np.full(len(groups), -1)
        codes = np.where(groups < len(self._heads), groups, -1)
        counts = np.empty(len(codes), np.int64)
        total = count_links(codes, self._heads, self._nexts, counts)
        wanted, pairs = np.empty(total, np.int64), np.empty(total, np.int64)
        follow_links(codes, self._heads, self._nexts, wanted, pairs)
        there = self._numbers(pairs, at) > 0
        if not there.all():
            wanted, pairs = wanted[there], pairs[there]
        values = self._values.keys_table(self._pairs.keys()[pairs] & 0xFFFFFFFF).column(0)
        numbers = ranks(values, Order("value", descending=largest))
        order = np.lexsort((numbers, wanted))
        best[wanted[order]] = order  # of several places of a group the last one is kept
        return values.take(pa.array(best, mask=best < 0))

    def saved(self, index: KeyIndex, at: int) -> DelayedEncoding:
        """A copy of the pairs of a column: the keys of their groups, their values, and their numbers."""
        pairs = self._pairs.keys().copy()
        numbers = self._numbers(slice(len(pairs)), at).copy()
        keys, values = index.keys_table(), self._values.keys_table().column(0)

        def table() -> pa.Table:
            there = numbers > 0
            groups, codes = pairs[there] >> 32, pairs[there] & 0xFFFFFFFF
            columns = [values.take(pa.array(codes)), pa.array(numbers[there])]
            return with_keys(keys.take(pa.array(groups)), columns, ["value", "count"])

        return table

    def load(self, at: int, groups: Int64s, values: pa.Array, counts: Int64s) -> None:
        """Restore the pairs of a column."""
        if len(values):
            self._add(groups, values, np.full(len(values), 1 << at), counts)


def _value_of_rows(columns: Sequence[pa.Array]) -> pa.Array:
    """The value of each row, null where no column has one."""
    fullest = min(columns, key=lambda column: int(column.null_count))
    if len(columns) == 1 or not fullest.null_count:
        return fullest
    return pc.coalesce(*map(plain, columns))


def _masks(columns: Sequence[pa.Array]) -> Int64s:
    """Shape (n,): a bit for each column that is not null."""
    masks = np.zeros(len(columns[0]), np.int64)
    for at, column in enumerate(columns):
        if column.null_count:
            masks |= column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64) << at
        else:
            masks |= 1 << at
    return masks


def _grown(values: Int64s, length: int, start: int) -> Int64s:
    """Room for this number of entries; new ones have an initial value."""
    held = len(values)
    if length <= held:
        return values
    more = np.full((max(length, 2 * held) - held, *values.shape[1:]), start)
    return np.concatenate([values, more])
