"""The changes in a table of state since an earlier version of it.

A version consists of the rows of the earlier one without those that are gone, and with new or different rows inserted.
It is written as these new rows and as *runs*, which list in order where the new table's rows come from. Rows are
matched by position where the keys are unchanged, as in most operators, and otherwise by a hash of their keys. A wrong
match only costs bytes, because every value of matched rows is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.elements import Int64s, Mask
from workbench.from_arrow import Unfolding, largest_value
from workbench.state.key_columns import can_be_key
from workbench.state.key_groups import hash_keys

_COLUMN_BYTES_MAX = 1 << 30
"""Arrow's strings have 32-bit offsets; a larger column might not fit into one array together with its changes."""
_IDENTITY = ("window_start", "start", "time")
"""Columns that distinguish the rows of a key, by their names in the snapshots of windows and joins."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between a table and an earlier version.

    Attributes:
        runs: columns ``source`` and ``length``: this many rows from this position of the earlier table followed by
            `rows`; the new table is their concatenation.
        rows: that are new or different.
    """

    runs: pa.Table
    rows: pa.Table

    @property
    def nbytes(self) -> int:
        """Bytes of both."""
        return int(self.runs.nbytes + self.rows.nbytes)


def can_change(table: pa.Table) -> bool:
    """Whether changes of such a table can be computed: every column is one array of a comparable type."""
    return table.num_rows > 0 and all(
        column.num_chunks == 1 and column.nbytes <= _COLUMN_BYTES_MAX and _is_comparable(column.type)
        for column in table.columns
    )


def changes_between(earlier: pa.Table, table: pa.Table) -> Changes | None:
    """The changes, or None if they affect more than half of the rows; `can_change` must hold for both tables.

    Example:
        >>> before = pa.table({"key:k": ["a", "b", "c"], "n": [1, 2, 3]})
        >>> changes = changes_between(before, pa.table({"key:k": ["a", "c", "d", "e"], "n": [1, 3, 8, 9]}))
        >>> changes.rows.to_pylist()
        [{'key:k': 'd', 'n': 8}, {'key:k': 'e', 'n': 9}]
        >>> changes.runs.to_pylist()  # the rows without b, then the new ones
        [{'source': 0, 'length': 1}, {'source': 2, 'length': 3}]
    """
    if not table.schema.equals(earlier.schema, check_metadata=True):
        return None
    origin = _origins(earlier, table)
    known = origin >= 0
    if 2 * int(known.sum()) < table.num_rows:
        return None
    same = known.copy()
    same[known] = ~_any_differs(*_matched(earlier, table, origin, known))
    fresh = np.flatnonzero(~same)
    if 2 * len(fresh) > table.num_rows:
        return None
    origin[fresh] = earlier.num_rows + np.arange(len(fresh))
    begins = np.concatenate([[0], np.flatnonzero(np.diff(origin) != 1) + 1])
    lengths = np.diff(np.append(begins, len(origin)))
    width = np.uint32 if earlier.num_rows + len(fresh) < 2**32 else np.int64
    runs = pa.table({"source": origin[begins].astype(width), "length": lengths.astype(width)})
    return Changes(runs, table.take(pa.array(fresh)))


def apply_changes(base: pa.Table, changes: Sequence[Changes], unfolding: Unfolding | None = None) -> pa.Table:
    """Apply changes to `base`, one after the other; its rows are copied once.

    Args:
        base: the table.
        changes: to the table.
        unfolding: the limit on expanded memory of the table's file; None: the tables hold all of it.

    Raises:
        ValueError: the changes do not belong to this table, or repeat its rows too often.
    """
    if not changes:
        return base
    if any(not change.rows.schema.equals(base.schema) for change in changes):
        raise ValueError("its changes have other columns")
    unfolding = unfolding or Unfolding(base.nbytes + sum(change.nbytes for change in changes))
    place: Int64s = np.arange(base.num_rows)  # position of each row in the base followed by all changed rows
    end = base.num_rows
    for change in changes:
        place = np.concatenate([place, np.arange(end, end + change.rows.num_rows)])
        end += change.rows.num_rows
        source, length = (_counts(change.runs, name) for name in ("source", "length"))
        if len(source) and (
            min(int(source.min()), int(length.min())) < 0
            or max(int(source.max()), int(length.max())) > len(place)
            or int((source + length).max()) > len(place)
        ):
            raise ValueError("its changes are of another table")
        ends = np.cumsum(length)
        unfolding.add(8 * max(0, int(ends[-1]) - len(place)) if len(ends) else 0)
        place = place[np.repeat(source - (ends - length), length) + np.arange(ends[-1] if len(ends) else 0)]
    together = pa.concat_tables([base, *(change.rows for change in changes)])
    if repeated := len(place) - int(np.count_nonzero(np.bincount(place, minlength=1))):
        unfolding.add(repeated * sum(largest_value(chunk) for column in together.columns for chunk in column.chunks))
    return together.combine_chunks().take(pa.array(place)).replace_schema_metadata(base.schema.metadata)


def _counts(runs: pa.Table, name: str) -> Int64s:
    """A column of whole numbers from a file."""
    column = runs.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise ValueError(f"its changes have a column {name!r} of the type {column.type}")
    return column.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _origins(earlier: pa.Table, table: pa.Table) -> Int64s:
    """Shape (rows of `table`,): the row of `earlier` that each may be equal to, -1 if none."""
    identity = [name for name in table.schema.names if name.startswith("key:")]
    identity = identity or [name for name in table.schema.names if name.startswith("column:")]
    identity += [name for name in _IDENTITY if name in table.schema.names]
    identity = [name for name in identity if can_be_key(table.schema.field(name).type)]
    common = min(earlier.num_rows, table.num_rows)
    before, now = earlier.select(identity), table.select(identity)
    origin: Int64s = np.full(table.num_rows, -1, np.int64)
    if not identity or not _any_differs(before.slice(0, common), now.slice(0, common)).any():
        origin[:common] = np.arange(common)
        return origin
    hashes = hash_keys(before, identity)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    wanted = hash_keys(now, identity)
    queries = np.argsort(wanted, kind="stable")  # sorted, so that the search passes through memory once
    found = np.minimum(np.searchsorted(hashes, wanted[queries]), earlier.num_rows - 1)
    hit = hashes[found] == wanted[queries]
    origin[queries[hit]] = order[found[hit]]
    return origin


def _matched(earlier: pa.Table, table: pa.Table, origin: Int64s, known: Mask) -> tuple[pa.Table, pa.Table]:
    """The rows that have an origin, before and after; without a copy where positions are unchanged."""
    count = int(known.sum())
    if known[:count].all() and (count == 0 or (origin[0] == 0 and (np.diff(origin[:count]) == 1).all())):
        return earlier.slice(0, count), table.slice(0, count)
    return earlier.take(pa.array(origin[known])), table.filter(pa.array(known))


def _any_differs(before: pa.Table, now: pa.Table) -> Mask:
    """Shape (rows,): which rows differ in any column."""
    mask = np.zeros(now.num_rows, np.bool_)
    for old, new in zip(before.columns, now.columns, strict=True):
        mask |= _differs(_one_array(old), _one_array(new))
    return mask


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _differs(old: pa.Array, new: pa.Array) -> Mask:
    """Shape (len(new),): where two arrays of one type hold different values; nulls are values too, and numbers are
    compared bit by bit."""
    kind = new.type
    if pa.types.is_null(kind) or len(new) == 0:
        return np.zeros(len(new), np.bool_)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        mask = _lists_differ(old, new)
    elif pa.types.is_struct(kind):
        mask = np.zeros(len(new), np.bool_)
        for before, now in zip(old.flatten(), new.flatten(), strict=True):
            mask |= _differs(before, now)
    elif _width(kind):
        mask = (_raw(old) != _raw(new)).any(axis=1)
    else:
        mask = pc.fill_null(pc.not_equal(old, new), False).to_numpy(zero_copy_only=False)
    if old.null_count or new.null_count:
        had, has = (array.is_valid().to_numpy(zero_copy_only=False) for array in (old, new))
        mask = np.where(had & has, mask, had != has)
    return mask


def _lists_differ(old: pa.Array, new: pa.Array) -> Mask:
    """Lists differ when their lengths do, or any element."""
    bounds = [_bounds(array) for array in (old, new)]
    lengths = [np.diff(bound) for bound in bounds]
    mask: Mask = lengths[0] != lengths[1]
    length = np.where(mask, 0, lengths[1])  # of the lists whose elements are compared
    items = []
    for array, bound in zip((old, new), bounds, strict=True):
        ends = np.cumsum(length)
        places = np.repeat(bound[:-1] - (ends - length), length) + np.arange(ends[-1])
        values = array.values  # all of them, even if the array is a slice
        items.append(values if len(places) == len(values) else values.take(pa.array(places)))
    owner = np.repeat(np.arange(len(mask)), length)
    mask[owner[_differs(*items)]] = True
    return mask


def _bounds(array: pa.Array) -> Int64s:
    bounds: Int64s = array.offsets.to_numpy().astype(np.int64)
    return bounds


def _width(kind: pa.DataType) -> int:
    """Bytes of a fixed-width value, else 0."""
    fixed = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
    return int(kind.bit_width) // 8 if fixed and not pa.types.is_boolean(kind) else 0


def _raw(array: pa.Array) -> npt.NDArray[np.unsignedinteger]:
    """Shape (len(array), words): the bits of each value."""
    width = _width(array.type)
    word = np.dtype(f"u{next(size for size in (8, 4, 2, 1) if width % size == 0)}")
    words = np.frombuffer(array.buffers()[1], word, len(array) * width // word.itemsize, array.offset * width)
    return words.reshape(len(array), -1)


def _is_comparable(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_is_comparable(field.type) for field in kind)
    if pa.types.is_map(kind):
        return _is_comparable(kind.key_type) and _is_comparable(kind.item_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_comparable(kind.value_type)
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return bool(_width(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind) or any(t(kind) for t in tests))
