"""Rows as Python values for display, whatever they contain.

Python's instants end with the year 9999 and its durations after 2.7 million years; Arrow's do not: windows near the end
of time end there, and data contains instants that mean "never". Displaying such a row must not fail.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from workbench.durations import format_instant

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def python_rows(rows: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """The rows as dicts.

    Args:
        rows: n rows; a value that Python cannot represent becomes text.

    Example:
        >>> far = pa.array([0, 2**61], pa.timestamp("us", "UTC"))
        >>> [str(row["end"]) for row in python_rows(pa.record_batch({"end": far}))]
        ['1970-01-01 00:00:00+00:00', '75039-04-04 19:00:13.693952']
    """
    columns = [python_values(column) for column in rows.columns]
    return [dict(zip(rows.schema.names, values, strict=True)) for values in zip(*columns, strict=True)]


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column.

    Args:
        column: n values; a value that Python cannot represent becomes text.

    Example:
        >>> python_values(pa.array([None, 2**61], pa.timestamp("us")))
        [None, '75039-04-04 19:00:13.693952']
    """
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        return [_value(scalar) for scalar in column]
    return values


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if pa.types.is_timestamp(scalar.type):
            return format_instant(scalar.cast(pa.int64()).as_py() * 10**6 // _PER_SECOND[scalar.type.unit])
        if pa.types.is_date32(scalar.type):
            return format_instant(scalar.cast(pa.int32()).as_py() * 86_400_000_000)
        if pa.types.is_date64(scalar.type):
            return format_instant(scalar.cast(pa.int64()).as_py() * 1_000)
        if isinstance(scalar, pa.StructScalar):
            return {name: _value(scalar[name]) for name in scalar}
        if isinstance(scalar, pa.ListScalar | pa.FixedSizeListScalar):
            return python_values(scalar.values)
        return str(scalar.cast(pa.string()))
