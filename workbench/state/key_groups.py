"""Key groups: they determine which subtask owns a key.

A key's stable hash determines its group, ``group = hash % max_parallelism``; each subtask owns a range of groups,
``subtask = group * parallelism // max_parallelism``. State is restored by the hash of its keys, so a job can resume at
another parallelism, or with another number of groups. Two key columns hash alike if their types and values are equal;
integers of all widths hash alike, and so do strings of all encodings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from workbench.compiled import hash_bytes, hash_ints, mix_hashes, route, scatter, warm_up
from workbench.elements import Int64s, Records
from workbench.errors import PlanError
from workbench.state.key_columns import check_keys, is_text, plain, to_ints

if TYPE_CHECKING:
    from workbench.compiled.keys.hashing import Bytes, Hashes

KEY_GROUPS_LEAST = 128
"""The default number of key groups of a job, at the usual parallelism."""
KEY_GROUPS_MOST = 32_768
"""Flink's upper bound."""
_ALIGNMENT = 64  # bytes; Arrow's preferred alignment

NULL_HASH = np.uint64(0x6E756C6C6B657921)
"""The hash of a null key of any type."""


class KeyPartitioner:
    """The hash exchange: splits batches by the owner of each row's key.

    Args:
        keys: names of the key columns, one or more.
        schema: of the batches.
        parallelism: number of targets, at most `max_parallelism`.
        max_parallelism: number of key groups.

    Raises:
        PlanError: a column that cannot be a key, or more targets than key groups.

    Example:
        >>> schema = pa.schema({"origin": pa.string(), "delay": pa.int64()})
        >>> batch = pa.record_batch([["JFK", "LGA", "JFK"], [5, 7, 9]], schema=schema)
        >>> parts = KeyPartitioner(["origin"], schema, parallelism=2).split(Records(batch))
        >>> [None if part is None else part.batch.num_rows for part in parts]
        [3, None]
    """

    __slots__ = ("_other", "_target_of_group", "_widths", "keys", "max_parallelism", "parallelism", "schema")

    def __init__(
        self, keys: Sequence[str], schema: pa.Schema, parallelism: int, max_parallelism: int = KEY_GROUPS_LEAST
    ) -> None:
        if not 1 <= parallelism <= max_parallelism:
            raise PlanError(f"parallelism is {parallelism}: it must be from 1 to max_parallelism, {max_parallelism}")
        if not keys:
            raise PlanError("a hash exchange needs at least one key column: name one in key_by")
        check_keys(keys, schema)
        warm_up(hash_bytes, hash_ints, mix_hashes, route, scatter)
        self.keys = tuple(keys)
        self.schema = schema
        self.parallelism = parallelism
        self.max_parallelism = max_parallelism
        self._target_of_group = subtask_of_group(parallelism, max_parallelism)
        self._other: KeyPartitioner | None = None
        self._widths = [fixed_width(field.type) for field in schema]

    def of(self, schema: pa.Schema) -> KeyPartitioner:
        """A partitioner that sends other records with the same keys to the same targets."""
        if self._other is None or not self._other.schema.equals(schema):
            self._other = KeyPartitioner(self.keys, schema, self.parallelism, self.max_parallelism)
        return self._other

    def split(self, records: Records) -> list[Records | None]:
        """The rows for each target, in their order; None if there are none. Columns are copied at most once."""
        n = len(records)
        if self.parallelism == 1 or n == 0:
            return [records if n else None] + [None] * (self.parallelism - 1)
        starts = np.empty(self.parallelism + 1, np.int64)
        positions = np.empty(n, np.int64)
        route(hash_keys(records.batch, self.keys), self._target_of_group, starts, positions)
        bounds: list[int] = starts.tolist()
        for target in range(self.parallelism):
            if bounds[target + 1] - bounds[target] == n:
                return [records if other == target else None for other in range(self.parallelism)]
        ordered = self._reorder(records, positions)
        return [ordered.slice(begin, end - begin) if end > begin else None for begin, end in pairwise(bounds)]

    def _reorder(self, records: Records, positions: Int64s) -> Records:
        """The rows by target: flat columns are scattered in one kernel, others are copied by Arrow."""
        n = len(records)
        columns: list[pa.Array] = list(records.batch.columns)
        flat = [at for at, width in enumerate(self._widths) if width and columns[at].null_count == 0]
        widths = [self._widths[at] for at in flat]
        sources = [columns[at].buffers()[1].address + columns[at].offset * self._widths[at] for at in flat]
        times = records.timestamps
        if times is not None:
            times = np.ascontiguousarray(times)
            widths.append(8)
            sources.append(pa.py_buffer(times).address)
        offsets = [0]  # of each column in one allocation for all
        for width in widths:
            offsets.append(offsets[-1] + -(-n * width // _ALIGNMENT) * _ALIGNMENT)
        memory = pa.allocate_buffer(offsets[-1])
        base = memory.address
        destinations = [base + offset for offset in offsets[:-1]]
        scatter(positions, _ints(sources), _ints(destinations), _ints(widths))
        for at, offset in zip(flat, offsets, strict=False):
            buffers = [None, memory.slice(offset, n * self._widths[at])]
            columns[at] = pa.Array.from_buffers(columns[at].type, n, buffers, 0)
        if times is not None:
            times = np.frombuffer(memory, np.int64, n, offsets[-2])
        if len(flat) < len(columns):
            rows = np.empty(n, np.int64)
            rows[positions] = np.arange(n)
            order = pa.array(rows)
            for at in set(range(len(columns))).difference(flat):
                columns[at] = columns[at].take(order)
        return Records(pa.RecordBatch.from_arrays(columns, schema=records.batch.schema), times)


def default_max_parallelism(parallelism: int) -> int:
    """The default number of key groups: room to grow by half, a power of two, at least 128.

    Source: Flink's ``KeyGroupRangeAssignment.computeDefaultMaxParallelism``.

    Args:
        parallelism: the largest one of the job's operators.

    Example:
        >>> [default_max_parallelism(parallelism) for parallelism in (1, 85, 86, 200, 30_000)]
        [128, 128, 256, 512, 32768]
    """
    wanted = parallelism + parallelism // 2
    return min(max(1 << (wanted - 1).bit_length(), KEY_GROUPS_LEAST), KEY_GROUPS_MOST)


@lru_cache
def subtask_of_group(parallelism: int, max_parallelism: int) -> Int64s:
    """Shape (max_parallelism,), read-only: the owner of each key group among `parallelism` subtasks."""
    owners = np.arange(max_parallelism, dtype=np.int64) * parallelism // max_parallelism
    owners.flags.writeable = False
    return owners


def hash_keys(table: pa.RecordBatch | pa.Table, keys: Sequence[str]) -> Hashes:
    """Shape (n,): the stable hash of each row's key."""
    combined: Hashes | None = None
    for name in keys:
        column = table.column(name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        hashes = _hash_column(column)
        if combined is None:
            combined = hashes
        else:
            mix_hashes(hashes, combined)
    return np.zeros(table.num_rows, np.uint64) if combined is None else combined


def key_groups_of(
    table: pa.RecordBatch | pa.Table, keys: Sequence[str], max_parallelism: int = KEY_GROUPS_LEAST
) -> Int64s:
    """Shape (n,): the key group of each row, from 0 to max_parallelism - 1."""
    warm_up(hash_bytes, hash_ints, mix_hashes)
    return (hash_keys(table, keys) % np.uint64(max_parallelism)).astype(np.int64)


def owned_rows(
    table: pa.Table, keys: Sequence[str], subtask: int, parallelism: int, max_parallelism: int = KEY_GROUPS_LEAST
) -> pa.Table:
    """The rows whose keys belong to `subtask`; without key columns all rows belong to subtask 0."""
    owners = subtask_of_group(parallelism, max_parallelism)[key_groups_of(table, keys, max_parallelism)]
    return table.filter(pa.array(owners == subtask))


def _hash_column(column: pa.Array) -> Hashes:
    if pa.types.is_dictionary(column.type):
        values = _hash_column(column.dictionary)
        indices = column.indices
        hashes = np.full(len(column), NULL_HASH)
        valid = indices.is_valid().to_numpy(zero_copy_only=False)
        hashes[valid] = values[indices.drop_null().to_numpy().astype(np.int64)]
        return hashes
    if column.null_count:
        hashes = np.full(len(column), NULL_HASH)
        hashes[column.is_valid().to_numpy(zero_copy_only=False)] = _hash_column(column.drop_null())
        return hashes
    hashes = np.empty(len(column), np.uint64)
    if is_text(column.type):
        offsets, data = _text_buffers(plain(column))
        hash_bytes(offsets, data, hashes)
    else:
        hash_ints(to_ints(column), hashes)
    return hashes


def _text_buffers(column: pa.Array) -> tuple[Int64s, Bytes]:
    """Offsets and bytes of a column of strings."""
    _, offsets, data = column.buffers()
    if len(column) == 0 or offsets is None:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    width = np.dtype(np.int64 if pa.types.is_large_string(column.type) else np.int32)
    bounds = np.frombuffer(offsets, width, len(column) + 1, column.offset * width.itemsize)
    return bounds.astype(np.int64), np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)


def fixed_width(kind: pa.DataType) -> int:
    """Bytes per value of a flat type, 0 for any other."""
    if not pa.types.is_primitive(kind) or pa.types.is_boolean(kind):
        return 0
    width = int(kind.bit_width) // 8
    return width if width in (1, 2, 4, 8) else 0


def _ints(values: list[int]) -> Int64s:
    return np.array(values, np.int64)
