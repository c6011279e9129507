"""Copies selected rows of a batch: the needed columns, and the event times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.compiled import choose_rows, warm_up
from workbench.compiled.machinery.codes import BITS, ROWS
from workbench.elements import Int64s, Records
from workbench.expressions.evaluation.choice import Choice, Codes

if TYPE_CHECKING:
    from workbench.compiled.keys.selection import Bytes

_EVERY_CODE = np.empty(0, np.uint8)  # where the selection is not given by codes
_TIME_BYTES = 8


class Gather:
    """Makes records of the selected rows; fixed-width columns are copied in one kernel call, others by Arrow.

    Args:
        schema: of the batches.
        columns: positions of the output columns, in their order.

    Attributes:
        schema: of the output.

    Example:
        >>> schema = pa.schema({"n": pa.int64(), "m": pa.int64()})
        >>> batch = pa.record_batch([[1, 2, 3], [4, 5, 6]], schema=schema)
        >>> Gather(schema, [1])(Records(batch), pa.array([True, False, True])).batch.to_pydict()
        {'m': [4, 6]}
    """

    def __init__(self, schema: pa.Schema, columns: Iterable[int]) -> None:
        warm_up(choose_rows)
        self._columns = tuple(columns)
        self._all = self._columns == tuple(range(len(schema)))
        self.schema = pa.schema([schema.field(column) for column in self._columns], schema.metadata)
        widths = [_width(field.type) for field in self.schema]
        self._flat = [(at, width) for at, width in enumerate(widths) if width is not None]
        self._others = [at for at, width in enumerate(widths) if width is None]
        self._rows: npt.NDArray[np.int32] = np.empty(0, np.int32)

    def __call__(self, records: Records, choice: Choice) -> Records | None:
        """The selected rows, or None if there are none; if all rows are selected, nothing is copied."""
        n = len(records)
        if n == 0:
            return None
        columns = [records.batch.column(column) for column in self._columns]
        places = [_place(columns[at], width) for at, width in self._flat]
        times, times_at = records.timestamps, 0
        if times is not None:
            times = np.ascontiguousarray(times)
            place = (pa.py_buffer(times).address, _TIME_BYTES, 0, 0, 0)
            if place not in places:  # event times often are one of the columns
                places.append(place)
            times_at = places.index(place)
        found, memory, layout = self._choose(n, choice, np.array(places, np.int64).ravel())
        if found == 0:
            return None
        if found == n:
            return records if self._all else Records(self._batch(columns), times)
        copied, begins = pa.py_buffer(memory), layout.tolist()
        for number, (at, _) in enumerate(self._flat):
            values_at, validity_at, nulls = begins[3 * number : 3 * number + 3]
            validity = copied.slice(validity_at) if nulls else None
            columns[at] = _like(columns[at], found, [validity, copied.slice(values_at)], nulls)
        if self._others:
            rows = pa.array(self._rows[:found])
            for at in self._others:
                columns[at] = columns[at].take(rows)
        if times is not None:
            begin = begins[3 * times_at]
            times = memory[begin : begin + _TIME_BYTES * found].view(np.int64)
        return Records(self._batch(columns), times)

    def parent_of(self, row: int) -> int:
        """The row of the batch that output row `row` came from, in the last selection."""
        return int(self._rows[row])

    def _choose(self, n: int, choice: Choice, places: Int64s) -> tuple[int, Bytes, Int64s]:
        """See ``choose_rows``; afterwards ``self._rows`` begins with the chosen rows."""
        if isinstance(choice, np.ndarray):
            self._rows = choice
            return choose_rows(len(choice), ROWS, 0, 0, 0, 0, _EVERY_CODE, choice, places)
        if len(self._rows) < n:
            self._rows = np.empty(n, np.int32)
        if isinstance(choice, Codes):
            codes = choice.column
            width = codes.type.index_type.bit_width // 8
            address = codes.buffers()[1].address
            return choose_rows(n, width, address, codes.offset, 0, 0, choice.accepted, self._rows, places)
        validity, bits = choice.buffers()
        known, known_from = (validity.address, choice.offset) if choice.null_count else (0, 0)
        return choose_rows(n, BITS, bits.address, choice.offset, known, known_from, _EVERY_CODE, self._rows, places)

    def _batch(self, columns: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _width(kind: pa.DataType) -> int | None:
    """Bytes per value of a flat type, 0 for bits; None for any other."""
    if pa.types.is_dictionary(kind):
        kind = kind.index_type
    if pa.types.is_boolean(kind):
        return 0
    if not pa.types.is_primitive(kind):
        return None
    width = int(kind.bit_width) // 8
    return width if width in (1, 2, 4, 8) else None


def _place(column: pa.Array, width: int) -> tuple[int, int, int, int, int]:
    """The memory of a flat column, as ``choose_rows`` takes it; its values begin at offset 0 unless they are bits."""
    validity, values = column.buffers()
    offset = column.offset
    nulls = (validity.address, offset) if column.null_count else (0, 0)
    return (values.address + offset * width, width, 0 if width else offset, *nulls)


def _like(column: pa.Array, rows: int, buffers: list[pa.Buffer | None], nulls: int) -> pa.Array:
    """A flat column of the same type with other values."""
    if isinstance(column, pa.DictionaryArray):
        return pa.DictionaryArray.from_buffers(column.type, rows, buffers, column.dictionary, nulls)
    return pa.Array.from_buffers(column.type, rows, buffers, nulls)
