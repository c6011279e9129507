"""Memory that a hash exchange writes to: for each channel a segment into which its records are copied once.

A kernel writes the records of a batch directly to their places in the buffers that will be shipped, in one call for all
channels and columns. What has been shipped is never overwritten; a segment with room left continues behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from workbench.compiled import packs_at_once, spread, warm_up
from workbench.elements import Int64s, Records
from workbench.state.key_columns import is_text, to_ints
from workbench.state.key_groups import KeyPartitioner, fixed_width, hash_keys

_ALIGNMENT = 64  # bytes; Arrow's preferred alignment
_SMALLEST = 64  # rows; buffers of single records share a segment


class Segment:
    """Memory for the rows of one channel.

    A buffer that is shipped is a slice of all rows, which takes a fraction of the time that new columns take.

    Args:
        widths: bytes per value of each column, and 8 for the event times.
        schema: of the columns.
        capacity: rows that fit.

    Attributes:
        begin: rows before it have been shipped.
        end: index behind the last row.
        limit: rows at which the buffer has to be shipped.
        addresses: of each column, and of the event times.
    """

    __slots__ = ("_rows", "_times", "addresses", "begin", "capacity", "end", "limit")

    def __init__(self, widths: Sequence[int], schema: pa.Schema, capacity: int) -> None:
        self.begin = self.end = self.limit = 0
        self.capacity = capacity
        offsets = [0]
        for width in widths:
            offsets.append(offsets[-1] + -(-capacity * width // _ALIGNMENT) * _ALIGNMENT)
        memory = pa.allocate_buffer(offsets[-1])
        self.addresses = [memory.address + offset for offset in offsets[:-1]]
        columns = [
            pa.Array.from_buffers(kind, capacity, [None, memory.slice(offset)], 0)
            for kind, offset in zip(schema.types, offsets, strict=False)
        ]
        self._rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        timed = len(widths) > len(columns)
        self._times = np.frombuffer(memory, np.int64, capacity, offsets[-2]) if timed else None

    def take_to(self, end: int) -> Records:
        """The rows written since the last call, at least one; the last one is before `end`."""
        begin, times = self.begin, self._times
        self.begin = self.end = self.limit = end
        return Records(self._rows.slice(begin, end - begin), None if times is None else times[begin:end])


class Spreader:
    """Writes batches into the segments of a hash exchange's channels.

    Args:
        keys: names of the key columns.
        schema: of what travels; batches may have further columns.
        targets: number of channels.
        groups: number of key groups.
    """

    __slots__ = (
        "_destinations",
        "_ends",
        "_flat_destinations",
        "_groups",
        "_key_at",
        "_keys",
        "_limits",
        "_names",
        "_packed",
        "_rows",
        "_schema",
        "_segments",
        "_sources",
        "_taken",
        "_timed",
        "_widths",
    )

    def __init__(self, keys: Sequence[str], schema: pa.Schema, targets: int, groups: int) -> None:
        warm_up(spread)
        self._packed = packs_at_once()
        self._keys = tuple(keys)
        self._schema = schema
        self._groups = groups
        number = len(keys) == 1 and not is_text(schema.field(keys[0]).type)
        self._key_at = schema.get_field_index(keys[0]) if number else None
        self._names = [(field.name, fixed_width(field.type)) for field in schema]
        self._taken: object = None
        self._ends = np.zeros(targets, np.int64)
        self._limits = np.zeros(targets, np.int64)
        self._begin(timed=True)

    @staticmethod
    def of(partitioner: KeyPartitioner) -> Spreader | None:
        """A spreader that sends each record where the partitioner would; None where a value has no fixed width.

        With a single target there is nothing to spread: batches are passed on unchanged.
        """
        flat = all(fixed_width(field.type) for field in partitioner.schema)
        if not flat or partitioner.parallelism == 1:
            return None
        return Spreader(partitioner.keys, partitioner.schema, partitioner.parallelism, partitioner.max_parallelism)

    def take(self, records: Records) -> bool:
        """Prepare a batch; returns whether it can be spread (a segment cannot hold nulls)."""
        batch, times = records.batch, records.timestamps
        if (times is not None) != self._timed:
            if any(segment is not None and segment.begin < segment.end for segment in self._segments):
                return False  # either all rows of a buffer have event times or none
            self._begin(timed=times is not None)
        sources, key = self._sources, None
        for at, (name, width) in enumerate(self._names):
            column = batch.column(name)
            if column.null_count:
                return False
            sources[at] = column.buffers()[1].address + column.offset * width
            if at == self._key_at:
                key = column
        if times is not None:
            if not times.flags.c_contiguous:
                times = np.ascontiguousarray(times)
            sources[-1] = pa.py_buffer(times).address
        self._taken = batch, times  # keeps alive the memory that the kernel reads
        if key is not None:
            self._rows: Int64s = to_ints(key)
        else:
            self._rows = hash_keys(batch, self._keys).view(np.int64)
        return True

    def _begin(self, *, timed: bool) -> None:
        """Start new segments, with or without event times."""
        widths = [width for _, width in self._names]
        self._timed = timed
        self._widths = np.array([*widths, 8] if timed else widths, np.int64)
        self._sources = np.zeros(len(self._widths), np.int64)
        self._destinations = np.zeros((len(self._widths), len(self._ends)), np.int64)
        self._flat_destinations = self._destinations.reshape(-1)
        self._segments: list[Segment | None] = [None] * len(self._ends)
        self._ends[:] = 0
        self._limits[:] = 0

    def write(self, row: int) -> tuple[int, list[int]]:
        """Write the rows from `row` on until a channel has no room left.

        Returns:
            The first row that was not written, and the number of rows written for each channel.
        """
        row = self._write(row)
        added = []
        for segment, end in zip(self._segments, self._ends.tolist(), strict=True):
            assert segment is not None
            added.append(end - segment.end)
            segment.end = end
        return row, added

    def _write(self, row: int) -> int:
        written: int = spread(
            self._rows,
            self._key_at is None,
            row,
            self._groups,
            self._ends,
            self._limits,
            self._sources,
            self._flat_destinations,
            self._widths,
            self._packed,
        )
        return written

    def write_at_once(self, rows: int, capacity: int) -> list[Records | None]:
        """Write the whole batch and release it; for each channel its part, None where it has none.

        Args:
            rows: of the batch.
            capacity: rows of a new segment, at least.
        """
        limits, segments = self._limits, []
        for target, segment in enumerate(self._segments):
            if segment is None or segment.capacity - segment.end < rows:
                segment = self._begin_segment(target, max(rows, capacity))
            limits[target] = segment.capacity
            segments.append(segment)
        self._write(0)
        self._taken = None
        ends = self._ends.tolist()
        return [
            segment.take_to(end) if end > segment.end else None for segment, end in zip(segments, ends, strict=True)
        ]

    def _begin_segment(self, target: int, rows: int) -> Segment:
        segment = Segment(self._widths.tolist(), self._schema, max(rows, _SMALLEST))
        self._segments[target] = segment
        self._ends[target] = 0
        self._destinations[:, target] = segment.addresses
        return segment

    def is_full(self, target: int) -> bool:
        """Whether a channel has no room for another row."""
        segment = self._segments[target]
        return segment is None or segment.end >= segment.limit

    def release(self) -> None:
        """Release the batch: it is written."""
        self._taken = None

    def give_room(self, target: int, rows: int) -> None:
        """Give a channel's buffer room for `rows` rows, in its present segment or a new one."""
        segment = self._segments[target]
        if segment is None or segment.end == segment.capacity:
            segment = self._begin_segment(target, rows)
        self._limits[target] = segment.limit = min(segment.capacity, segment.begin + rows)

    def seal(self, target: int) -> Records | None:
        """The content of a channel's buffer as records; the next rows go behind it."""
        segment = self._segments[target]
        if segment is None or segment.begin == segment.end:
            return None
        part = segment.take_to(segment.end)
        self._limits[target] = segment.limit
        return part
