"""Verifies that data matches its type after a library has read it: some libraries accept any bytes as text, and any
dictionary keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def check_text(batch: pa.RecordBatch) -> None:
    """Reject text columns that are not UTF-8, on which user code would fail, and dictionary keys that do not exist. For
    plain ASCII, this takes a hundredth of the time of reading it.

    Raises:
        pa.ArrowInvalid: names the column.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if isinstance(column, pa.DictionaryArray) or _may_be_none(column):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                fact = "has keys that are not in its dictionary" if "indices" in str(error) else "is not text"
                raise pa.ArrowInvalid(f"the column {name!r} {fact}: {error}") from None


def _may_be_none(column: pa.Array) -> bool:
    """Whether its bytes have to be checked one by one."""
    if column.type.num_fields:
        return True
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return bool(pa.types.is_string_view(column.type))
    _, offsets, data = column.buffers()
    if not len(column) or data is None:
        return False
    begin, end = np.frombuffer(offsets, np.int32 if pa.types.is_string(column.type) else np.int64)[
        [column.offset, column.offset + len(column)]
    ]
    return bool(begin < end and np.frombuffer(data, np.int8)[begin:end].min() < 0)
