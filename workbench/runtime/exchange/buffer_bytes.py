"""The size of a buffer of records in bytes (Flink: numBytesIn, numBytesOut).

Bytes are Arrow's: the values of the columns that travel, text with its offsets, and eight for each event time. The
validity bitmaps, an eighth of a byte per value, are left out. So where all columns have a fixed width, the size is the
number of rows times a constant, and no buffer is read. Of text, only the first and the last offset are read.
"""

from __future__ import annotations

from struct import Struct

import pyarrow as pa

from workbench.elements import Records
from workbench.operators.aggregates.preaggregated import is_preaggregated

EVENT_TIME_BITS = 64

_OFFSETS = {4: Struct("=i").unpack_from, 8: Struct("=q").unpack_from}


class BufferBytes:
    """Computes the size of what travels on one edge.

    Args:
        schema: of the columns that travel.
        preaggregates: batches may be aggregated before they are sent, and then have other columns.

    Attributes:
        preaggregates: as given.
        row_bits: bits of each record in all columns of a fixed width and in the offsets of the others.
        is_flat: every record has the same size, so `of` need not be called.
    """

    __slots__ = ("_nested", "_texts", "is_flat", "preaggregates", "row_bits")

    def __init__(self, schema: pa.Schema, *, preaggregates: bool = False) -> None:
        self.row_bits = 0
        self.preaggregates = preaggregates
        texts: list[tuple[int, int]] = []
        nested: list[int] = []
        for at, kind in enumerate(schema.types):
            if isinstance(kind, pa.BaseExtensionType):
                kind = kind.storage_type
            if offset := _offset_bytes(kind):
                texts.append((at, offset))
                self.row_bits += 8 * offset
            elif pa.types.is_dictionary(kind) or pa.types.is_nested(kind) or _is_view(kind):
                nested.append(at)
            elif not pa.types.is_null(kind):
                self.row_bits += int(kind.bit_width)
        self._texts = tuple(texts)
        self._nested = tuple(nested)
        self.is_flat = not (texts or nested or preaggregates)

    def of(self, records: Records) -> int:
        """The bytes of a buffer, in time that depends on the number of its columns and not of its records."""
        batch = records.batch
        rows: int = batch.num_rows
        if not rows:
            return 0
        times = 0 if records.timestamps is None else EVENT_TIME_BITS
        if self.preaggregates and is_preaggregated(batch):
            return int(batch.nbytes) + rows * times // 8
        weight: int = (rows * (self.row_bits + times) + 7) // 8
        for at, width in self._texts:
            column = batch.column(at)
            offsets, unpack = column.buffers()[1], _OFFSETS[width]
            begin = column.offset * width
            weight += unpack(offsets, begin + rows * width)[0] - unpack(offsets, begin)[0]
        for at in self._nested:
            weight += int(batch.column(at).nbytes)
        return int(weight)


FREE = BufferBytes(pa.schema([]))
"""For elements without columns."""


def _offset_bytes(kind: pa.DataType) -> int:
    """Bytes of one offset into the values of text or binary data; 0 of any other type."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return 4
    return 8 if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) else 0


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))
