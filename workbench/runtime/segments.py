"""Where a hash exchange writes: for each channel a piece of memory that its records are moved to, once and for good.

Records of a batch go straight to their places in the buffers that will leave, in one call of a kernel for all channels
and columns. What has left is never written again; a segment that has room left goes on behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s, Records
from workbench.kernels import spread, warm_up
from workbench.state.key_columns import is_text, to_ints
from workbench.state.key_groups import KeyPartitioner, fixed_width, hash_keys

_ALIGNMENT = 64  # bytes; where Arrow likes buffers to begin
_SMALLEST = 64  # rows; buffers of single records share a segment


class Segment:
    """Memory for the rows of one channel.

    Attributes:
        begin: rows before it have left.
        end: behind the last row.
        capacity: rows that fit.
        offsets: where each column begins, in bytes; the event times come last.
    """

    __slots__ = ("begin", "capacity", "end", "memory", "offsets")

    def __init__(self, widths: Sequence[int], capacity: int) -> None:
        self.begin = 0
        self.end = 0
        self.capacity = capacity
        self.offsets = [0]
        for width in widths:
            self.offsets.append(self.offsets[-1] + -(-capacity * width // _ALIGNMENT) * _ALIGNMENT)
        self.memory = pa.allocate_buffer(self.offsets[-1])


class Spreader:
    """Writes batches into the segments of a hash exchange's channels.

    Args:
        keys: names of the key columns.
        schema: of what travels; batches may have further columns.
        targets: number of channels.
        groups: number of key groups, a power of two.
    """

    __slots__ = (
        "_destinations",
        "_ends",
        "_flat_destinations",
        "_groups",
        "_keys",
        "_kinds",
        "_limits",
        "_names",
        "_number_key",
        "_rows",
        "_schema",
        "_segments",
        "_sources",
        "_taken",
        "_timed",
        "_widths",
    )

    def __init__(self, keys: Sequence[str], schema: pa.Schema, targets: int, groups: int) -> None:
        warm_up()
        self._keys = tuple(keys)
        self._schema = schema
        self._groups = groups
        self._number_key = None if len(keys) > 1 or is_text(schema.field(keys[0]).type) else keys[0]
        self._names = [(field.name, fixed_width(field.type)) for field in schema]
        self._kinds = list(schema.types)
        self._taken: object = None
        self._ends = np.zeros(targets, np.int64)
        self._limits = np.zeros(targets, np.int64)
        self._begin(timed=True)

    @staticmethod
    def of(partitioner: KeyPartitioner) -> Spreader | None:
        """One that sends each record where the partitioner would; None where a value has no fixed number of bytes.

        With a single target there is nothing to spread: batches are passed on as they are.
        """
        groups = partitioner.max_parallelism
        flat = all(fixed_width(field.type) for field in partitioner.schema)
        if not flat or groups & (groups - 1) or partitioner.parallelism == 1:
            return None
        return Spreader(partitioner.keys, partitioner.schema, partitioner.parallelism, groups)

    def take(self, records: Records) -> bool:
        """Look at a batch; whether it can be spread (a null has no place in a segment)."""
        batch, times = records.batch, records.timestamps
        if (times is not None) != self._timed:
            if any(segment is not None and segment.begin < segment.end for segment in self._segments):
                return False  # a buffer has event times or it has none
            self._begin(timed=times is not None)
        sources = self._sources
        for at, (name, width) in enumerate(self._names):
            column = batch.column(name)
            if column.null_count:
                return False
            sources[at] = column.buffers()[1].address + column.offset * width
        if times is not None:
            if not times.flags.c_contiguous:
                times = np.ascontiguousarray(times)
            sources[-1] = times.__array_interface__["data"][0]
        self._taken = batch, times  # keeps the memory that the kernel reads
        if self._number_key is not None:
            self._rows: Int64s = to_ints(batch.column(self._number_key))
        else:
            self._rows = hash_keys(batch, self._keys).view(np.int64)
        return True

    def _begin(self, *, timed: bool) -> None:
        """Go on with new segments, with or without event times."""
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
        """Write the rows from `row` on until a channel's room is used up.

        Returns:
            The first row that was not written, and how many rows each channel was given.
        """
        row = spread(
            self._rows,
            self._number_key is None,
            row,
            self._groups,
            self._ends,
            self._limits,
            self._sources,
            self._flat_destinations,
            self._widths,
        )
        added = []
        for segment, end in zip(self._segments, self._ends.tolist(), strict=True):
            assert segment is not None
            added.append(end - segment.end)
            segment.end = end
        return row, added

    def release(self) -> None:
        """The batch that was taken is written."""
        self._taken = None

    @property
    def full(self) -> list[bool]:
        """Which channels have no room for a further row."""
        full: list[bool] = (self._ends >= self._limits).tolist()
        return full

    def give_room(self, target: int, rows: int) -> None:
        """Let a channel's buffer have so many rows, in the segment that it has or a new one."""
        segment = self._segments[target]
        if segment is None or segment.end == segment.capacity:
            segment = Segment(self._widths.tolist(), max(rows, _SMALLEST))
            self._segments[target] = segment
            self._ends[target] = 0
            base = segment.memory.address
            self._destinations[:, target] = [base + offset for offset in segment.offsets[:-1]]
        self._limits[target] = min(segment.capacity, segment.begin + rows)

    def seal(self, target: int) -> Records | None:
        """What a channel's buffer holds, as records; the next ones go behind it."""
        segment = self._segments[target]
        if segment is None or segment.begin == segment.end:
            return None
        rows, begin, memory = segment.end - segment.begin, segment.begin, segment.memory
        columns = [
            pa.Array.from_buffers(kind, rows, [None, memory.slice(offset)], 0, begin)
            for kind, offset in zip(self._kinds, segment.offsets, strict=False)
        ]
        times = None
        if self._timed:
            times = np.frombuffer(memory, np.int64, rows, segment.offsets[-2] + 8 * begin)
        segment.begin = segment.end
        self._limits[target] = segment.end
        return Records(pa.RecordBatch.from_arrays(columns, schema=self._schema), times)
