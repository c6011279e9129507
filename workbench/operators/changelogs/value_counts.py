"""How often each value of a column occurs in each group: for distinct counts, and for extremes of rows taken back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workbench.compiled import count_links, follow_links, link_rows, warm_up
from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.elements import Int64s
from workbench.operators.changelogs.sortable import Order, ranks
from workbench.state.key_index import KeyIndex
from workbench.state.key_table import KeyTable
from workbench.state.keyed_states import with_keys


class ValueCounts:
    """The values of one column in each group, with their numbers; nulls do not count.

    Args:
        column: of the values; its type can be that of a key.
        schema: of the batches.
        taken_back: whether rows are taken back, so that numbers are needed and not only the values.
        extremes: whether the least and the largest value of a group are asked for.

    Example:
        >>> schema = pa.schema({"n": pa.int64()})
        >>> counts = ValueCounts("n", schema)
        >>> counts.add(np.array([0, 0, 1]), pa.record_batch([[5, 5, 7]], schema=schema), None)
        >>> counts.distinct(np.array([0, 1])).tolist()
        [1, 1]
    """

    __slots__ = ("_column", "_counts", "_distinct", "_extremes", "_heads", "_nexts", "_pairs", "_taken_back",
                 "_values")  # fmt: skip

    def __init__(self, column: str, schema: pa.Schema, taken_back: bool = False, extremes: bool = False) -> None:
        warm_up(count_links, follow_links, link_rows)
        self._column = column
        self._values = KeyIndex([column], schema)
        self._pairs = KeyTable()
        self._taken_back = taken_back
        self._extremes = extremes
        nothing = np.empty(0, np.int64)
        self._counts: Int64s = nothing  # by pair
        self._nexts: Int64s = nothing  # by pair, the pair of the same group before it
        self._heads: Int64s = nothing  # by group, the last of its pairs
        self._distinct: Int64s = nothing  # by group

    def add(self, groups: Int64s, batch: pa.RecordBatch, weights: Int64s | None) -> None:
        """Count the values of a batch.

        Args:
            groups: shape (n,), the code of each row's group.
            batch: n rows.
            weights: shape (n,), 1 for rows that are added and -1 for those that are taken back; None: all are added.
        """
        column = batch.column(self._column)
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            column, groups = column.drop_null(), groups[valid]
            weights = None if weights is None else weights[valid]
        if not len(column):
            return
        self._distinct = _grown(self._distinct, int(groups.max()) + 1, 0)
        known = len(self._pairs)
        values = self._values.codes(pa.RecordBatch.from_arrays([column], [self._column]))
        pairs = self._pairs.codes(groups << 32 | values)
        fresh = self._pairs.keys()[known:] >> 32
        if self._extremes:
            self._heads = _grown(self._heads, len(self._distinct), -1)
            self._nexts = _grown(self._nexts, len(self._pairs), -1)
            link_rows(fresh, known, self._heads, self._nexts)
        if not self._taken_back:
            np.add.at(self._distinct, fresh, 1)
            return
        self._counts = _grown(self._counts, len(self._pairs), 0)
        touched, places = np.unique(pairs, return_inverse=True)
        before = self._counts[touched]
        if weights is None:
            after = before + np.bincount(places)
        else:
            after = before + np.bincount(places, weights).astype(np.int64)
        self._counts[touched] = after
        change = (after > 0).astype(np.int64) - (before > 0)
        np.add.at(self._distinct, self._pairs.keys()[touched] >> 32, change)

    def distinct(self, groups: Int64s) -> Int64s:
        """Shape (n,): how many different values each group has."""
        held = len(self._distinct)
        return np.where(groups < held, self._distinct[np.minimum(groups, held - 1)], 0) if held else 0 * groups

    def extremes(self, groups: Int64s, largest: bool) -> pa.Array:
        """Shape (n,): the largest or the least value of each group, null where it has none."""
        best = np.full(len(groups), -1)
        codes = np.where(groups < len(self._heads), groups, -1)
        counts = np.empty(len(codes), np.int64)
        total = count_links(codes, self._heads, self._nexts, counts)
        wanted, pairs = np.empty(total, np.int64), np.empty(total, np.int64)
        follow_links(codes, self._heads, self._nexts, wanted, pairs)
        if self._taken_back:
            there = self._counts[pairs] > 0
            wanted, pairs = wanted[there], pairs[there]
        values = self._values.keys_table(self._pairs.keys()[pairs] & 0xFFFFFFFF).column(0)
        numbers = ranks(values, Order("value", descending=largest))
        order = np.lexsort((numbers, wanted))
        best[wanted[order]] = order  # of several places of a group the last one is kept
        return values.take(pa.array(best, mask=best < 0))

    def saved(self, index: KeyIndex) -> DelayedEncoding:
        """A copy of all pairs: the keys of their groups, their values, and their numbers."""
        count = len(self._pairs)
        pairs = self._pairs.keys().copy()
        numbers = self._counts[:count].copy() if self._taken_back else np.ones(count, np.int64)
        there = numbers > 0
        groups, values = pairs[there] >> 32, pairs[there] & 0xFFFFFFFF
        keys, column = index.keys_table(groups), self._values.keys_table(values).column(0)
        table = with_keys(keys, [column, pa.array(numbers[there])], ["value", "count"])
        return lambda: table

    def load(self, groups: Int64s, values: pa.Array, counts: Int64s) -> None:
        """Restore pairs."""
        self.add(groups, pa.RecordBatch.from_arrays([values], [self._column]), None)
        if self._taken_back:
            codes = self._values.codes(pa.RecordBatch.from_arrays([values], [self._column]))
            self._counts[self._pairs.codes(groups << 32 | codes)] = counts


def _grown(values: Int64s, length: int, start: int) -> Int64s:
    held = len(values)
    if length <= held:
        return values
    return np.concatenate([values, np.full(max(length, 2 * held) - held, start)])
