"""Rows by key that can be taken back: the state of operators on changelogs.

Rows are appended and never moved, the rows of a key form a linked list, and a removed row is only taken out of its
list. Removed rows are dropped from memory when they exceed half of all, so the cost per row is constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from workbench.compiled import count_links, follow_links, link_rows, take_equal, unlink_rows, warm_up
from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.durations import NO_TIME
from workbench.elements import Int64s, Mask
from workbench.operators.snapshots.saved_rows import saved_rows, together
from workbench.state.key_groups import hash_keys

_SPARE_ROWS = 16_384
"""This many removed rows are kept even if few rows are left."""
_MERGED = 4
"""The number of batches that are concatenated at once."""
_MERGED_BYTES_MAX = 2**30
"""Larger batches are not put together, because a column of text has at most two gigabytes."""


class LinkedRows:
    """Rows by the code of their key.

    Args:
        schema: of the rows.
        hashed: whether rows are looked up by their content, to be taken back.

    Attributes:
        live: the number of rows that were not removed.
        marks: by row, a number that belongs to it.
        times: by row, its event time.

    Example:
        >>> rows = LinkedRows(pa.schema({"n": pa.int64()}))
        >>> rows.add(pa.record_batch({"n": [5, 6, 7]}), np.array([0, 1, 0]))
        >>> wanted, found = rows.follow(np.array([0]))
        >>> rows.take(found).to_pydict()
        {'n': [5, 7]}
    """

    __slots__ = ("_batches", "_codes", "_hashed", "_hashes", "_heads", "_nexts", "_schema", "_starts", "count", "live",
                 "marks", "times")  # fmt: skip

    def __init__(self, schema: pa.Schema, hashed: bool = False) -> None:
        warm_up(count_links, follow_links, link_rows, take_equal, unlink_rows)
        self._schema = schema
        self._hashed = hashed
        self._heads: Int64s = np.empty(0, np.int64)
        self._empty()

    def _empty(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._starts: list[int] = []
        self.count = self.live = 0
        nothing = np.empty(0, np.int64)
        self._nexts: Int64s = nothing
        self._codes: Int64s = nothing
        self._hashes: Int64s = nothing
        self.marks: Int64s = nothing
        self.times: Int64s = nothing

    def grow(self, codes: int) -> None:
        """Make room for the codes 0 to `codes` - 1."""
        held = len(self._heads)
        if codes > held:
            self._heads = np.concatenate([self._heads, np.full(max(codes, 2 * held) - held, -1)])

    def heads(self, codes: Int64s) -> Int64s:
        """Shape (n,): the last row of each code, -1 if it has none."""
        return self._heads[codes]

    def add(
        self, batch: pa.RecordBatch, codes: Int64s, marks: Int64s | None = None, times: Int64s | None = None
    ) -> None:
        """Add rows behind those of their keys; the codes are those that there is room for."""
        n = len(codes)
        if not n:
            return
        first, end = self.count, self.count + n
        self.grow(int(codes.max()) + 1)
        self._grow_rows(end)
        link_rows(codes, first, self._heads, self._nexts)
        self._codes[first:end] = codes
        self.marks[first:end] = 0 if marks is None else marks
        self.times[first:end] = NO_TIME if times is None else times
        if self._hashed:
            self._hashes[first:end] = row_hashes(batch)
        self._starts.append(first)
        self._batches.append(batch)
        self.count, self.live = end, self.live + n
        self._merge()

    def _grow_rows(self, rows: int) -> None:
        held = len(self._nexts)
        if rows > held:
            more = np.empty(max(rows, 2 * held, 1024) - held, np.int64)
            self._nexts = np.concatenate([self._nexts, more])
            self._codes = np.concatenate([self._codes, more])
            self.marks = np.concatenate([self.marks, more])
            self.times = np.concatenate([self.times, more])
            if self._hashed:
                self._hashes = np.concatenate([self._hashes, more])

    def _merge(self) -> None:
        """Several batches of similar lengths become one: there are few, and each row is copied few times."""
        batches = self._batches
        while len(batches) >= _MERGED and batches[-_MERGED].num_rows <= _MERGED * batches[-1].num_rows:
            last = batches[-_MERGED:]
            if sum(batch.nbytes for batch in last) > _MERGED_BYTES_MAX:
                return
            del batches[-_MERGED:], self._starts[1 - _MERGED :]
            batches.append(pa.concat_batches(last))

    def follow(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Pair each of the codes with all rows of its key: positions in `codes`, and rows in the order of arrival."""
        counts = np.empty(len(codes), np.int64)
        total = count_links(codes, self._heads, self._nexts, counts)
        wanted, rows = np.empty(total, np.int64), np.empty(total, np.int64)
        follow_links(codes, self._heads, self._nexts, wanted, rows)
        return wanted, rows

    def counts(self, codes: Int64s) -> Int64s:
        """Shape (n,): the number of rows of each code's key."""
        counts = np.empty(len(codes), np.int64)
        count_links(codes, self._heads, self._nexts, counts)
        return counts

    def take(self, rows: Int64s, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """The content of rows, or some columns of it; of removed ones as well until `tidy`."""
        batches = self._batches if columns is None else [batch.select(columns) for batch in self._batches]
        if len(batches) == 1:
            return batches[0].take(pa.array(rows))
        if not len(rows):
            empty = together([], self._schema)
            return empty if columns is None else empty.select(columns)
        places = np.searchsorted(self._starts, rows, "right") - 1
        order = np.argsort(places, kind="stable")
        bounds = np.searchsorted(places[order], np.arange(len(self._batches) + 1))
        parts = []
        for at, batch in enumerate(batches):
            mine = order[bounds[at] : bounds[at + 1]]
            if len(mine):
                parts.append(batch.take(pa.array(rows[mine] - self._starts[at])))
        if len(parts) == 1:
            return parts[0]
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return pa.concat_batches(parts).take(pa.array(back))

    def remove(self, rows: Int64s) -> None:
        """Take rows out."""
        unlink_rows(self._codes[rows], rows, self._heads, self._nexts)
        self.live -= len(rows)

    def remove_equal(self, batch: pa.RecordBatch, codes: Int64s) -> Int64s:
        """Take out one row that is equal to each of these; returns the rows, -1 where there was none."""
        found = np.empty(len(codes), np.int64)
        if len(codes):
            self.grow(int(codes.max()) + 1)
            hashes = row_hashes(batch)
            self.live -= take_equal(codes, hashes, self._heads, self._nexts, self._hashes, found)
        return found

    def tidy(self) -> None:
        """Drop the content of removed rows if there are many; all rows get new numbers then."""
        if self.count <= 2 * self.live + _SPARE_ROWS:
            return
        rows = self._living()
        batch, codes = self.take(rows), self._codes[rows]
        marks, times = self.marks[rows], self.times[rows]
        self._empty()
        self._heads[:] = -1
        self.add(batch, codes, marks, times)

    def expire(self, until_us: int) -> None:
        """Remove the rows with times up to this one."""
        rows = self._living()
        times = self.times[rows]
        rows = rows[(times <= until_us) & (times != NO_TIME)]
        if len(rows):
            self.remove(rows)
            self.tidy()

    def mark_codes(self, used: Mask) -> None:
        """Set ``used[code]`` for the codes of all rows."""
        used[self._codes[self._living()]] = True

    def renumber(self, new_codes: Int64s) -> None:
        """Code c becomes ``new_codes[c]``; all rows get new numbers."""
        rows = self._living()
        batch, codes = self.take(rows), new_codes[self._codes[rows]]
        marks, times = self.marks[rows], self.times[rows]
        self._empty()
        self._heads = np.empty(0, np.int64)
        self.add(batch, codes, marks, times)

    def _living(self) -> Int64s:
        return np.sort(self.follow(np.arange(len(self._heads)))[1])

    def saved(self, **details: Int64s) -> DelayedEncoding:
        """All rows with their marks and times, to be copied off the data path."""
        rows = self._living()
        marks, times = self.marks[rows], self.times[rows]
        batches, starts, schema = list(self._batches), list(self._starts), self._schema

        def table() -> pa.Table:
            parts = []
            bounds = [*np.searchsorted(rows, starts).tolist(), len(rows)]
            for at, batch in enumerate(batches):
                mine = rows[bounds[at] : bounds[at + 1]] - starts[at]
                parts.append(batch if len(mine) == batch.num_rows else batch.take(pa.array(mine)))
            columns: Mapping[str, pa.Array] = {"mark": pa.array(marks), "time": pa.array(times)}
            return saved_rows(together(parts, schema), columns)

        return table


def row_hashes(batch: pa.RecordBatch) -> Int64s:
    """Shape (n,): equal for equal rows; 64 bits, so that different rows of one key practically never share one."""
    flat = batch
    for at, field in enumerate(batch.schema):
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type) or pa.types.is_decimal(field.type):
            texts = pa.array([None if value is None else repr(value) for value in batch.column(at).to_pylist()])
            flat = flat.set_column(at, field.name, texts.cast(pa.string()))
    return hash_keys(flat, flat.schema.names).view(np.int64)
