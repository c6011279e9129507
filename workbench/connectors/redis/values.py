"""Converts values to the text that Redis stores; `entries` reads it back."""

from __future__ import annotations

import pyarrow as pa

from workbench.connectors.contract.plain_types import decoded
from workbench.errors import SinkError

Row = dict[str, bytes]
"""The fields of a row; nulls have no field."""


def check_values(schema: pa.Schema, title: str) -> None:
    """Reject columns whose values cannot be stored as text and read back.

    Raises:
        SinkError: names the column.

    Example:
        >>> check_values(pa.schema({"n": pa.int64()}), "the stream 'orders'")
    """
    for field in schema:
        if not field.name:
            raise SinkError(f"a column for {title} has no name: rename it before the sink")
        if not _is_binary(kind := decoded(field.type)) and not _is_written(kind):
            raise SinkError(
                f"Redis has no value for the column {field.name!r}, which is {kind}: convert it to text, or drop it, "
                "before the sink"
            )


def written_rows(rows: pa.Table) -> list[Row]:
    """Convert rows to fields and values: numbers and times in Arrow's format, bytes unchanged.

    Example:
        >>> written_rows(pa.table({"n": [7, None], "at": pa.array([0, 1], pa.timestamp("s", "UTC"))}))
        [{'n': b'7', 'at': b'1970-01-01 00:00:00Z'}, {'at': b'1970-01-01 00:00:01Z'}]
    """
    columns = [(name, _bytes(rows[name])) for name in rows.column_names]
    return [
        {name: value for (name, _), value in zip(columns, values, strict=True) if value is not None}
        for values in zip(*(values for _, values in columns), strict=True)
    ]


def _bytes(column: pa.ChunkedArray) -> list[bytes | None]:
    kind = decoded(column.type)
    if column.type != kind:
        column = column.cast(kind)
    if not _is_binary(kind):
        column = column.cast(pa.large_string())
    values: list[bytes | None] = column.cast(pa.large_binary()).to_pylist()
    return values


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _is_written(kind: pa.DataType) -> bool:
    try:
        pa.nulls(0, kind).cast(pa.large_string()).cast(kind)
    except pa.ArrowNotImplementedError:
        return False
    return True
