"""The columns of text files whose types are inferred: a guessed type holds the values that it was guessed from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from workbench.errors import SourceError

_EXACT = 2**53
"""Up to this number, every integer is a double."""


def guessed_schema(rows: pa.RecordBatch | pa.Table) -> pa.Schema:
    """The columns of a text file, from its first rows: text if all values were null, and times in microseconds unless
    one of them has more digits."""
    return pa.schema([pa.field(name, _guessed(rows[at])) for at, name in enumerate(rows.schema.names)])


def _guessed(column: pa.Array | pa.ChunkedArray) -> pa.DataType:
    kind = column.type
    if pa.types.is_null(kind):
        return pa.string()
    if not pa.types.is_timestamp(kind):
        return kind
    micros = pa.timestamp("us", kind.tz)
    if kind.unit == "ns":
        try:
            column.cast(micros)
        except pa.ArrowInvalid:
            return kind
    return micros


def has_wide(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column of doubles has a number that may have been another integer.

    Example:
        >>> has_wide(pa.array([2.0**53, 0.5])), has_wide(pa.array([2**60]))
        (True, False)
    """
    if not pa.types.is_floating(column.type):
        return False
    numbers = np.abs(column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy())
    return bool(((numbers >= _EXACT) & np.isfinite(numbers)).any())


def check_exact(path: Path, name: str, integers: Iterable[int]) -> None:
    """Refuse to read integers as doubles that would change them.

    Args:
        path: of the file.
        name: of the column.
        integers: its values.

    Raises:
        SourceError: names the column and the first such integer.
    """
    for value in integers:
        if not _is_double(value):
            fits = "pa.uint64()" if 2**63 <= value < 2**64 else "pa.decimal128(38, 9)"
            raise SourceError(
                f"{path} has {value} in the column {name!r}, whose values would be read as doubles, and no double "
                f"equals it: declare the column with schema={{{name!r}: {fits}, ...}}, or as pa.float64() to round it"
            )


def _is_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False
