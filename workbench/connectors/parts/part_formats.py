"""The formats in which sinks write parts: Parquet, CSV and JSON lines."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as pc

from workbench.connectors.contract.plain_types import BYTES, decoded, given_table
from workbench.connectors.parts.part_sink import PartFormat
from workbench.operators.functions.dead_letters import BASE64

PartFormatName = Literal["parquet", "csv", "json"]

_JSON_CHUNK = 4_096  # rows that are Python objects at the same time
_JSON_TYPES = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_temporal,
)


def encode_parquet(rows: pa.Table, compression: str = "zstd") -> pa.Buffer:
    """The rows as the bytes of a Parquet file."""
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    # Arrow's writer cannot slice views within other values.
    pq.write_table(given_table(rows, rows.schema, nested=False), buffer, compression=compression)
    return buffer.getvalue()


def decode_parquet(data: bytes) -> list[dict[str, Any]]:
    """The rows of the bytes of a Parquet file."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).to_pylist()
    return rows


def encode_csv(rows: pa.Table) -> pa.Buffer:
    """A line with the column names, and a line per row; text is quoted, so that an empty value is a null."""
    rows = with_base64(rows)
    for item in rows.schema:
        kind = decoded(item.type)
        if any(is_bytes(kind) for is_bytes in BYTES):  # Arrow writes them unless some are not text
            raise pa.ArrowNotImplementedError(f"column {item.name!r} is {item.type}")
    buffer = pa.BufferOutputStream()
    pc.write_csv(rows, buffer)
    return buffer.getvalue()


def encode_json(rows: pa.Table) -> bytearray:
    """A JSON object for each row, one per line.

    Instants, dates, times and decimals are text, durations are counted in the unit of their column, and floats that
    JSON cannot represent (NaN and the infinities) are null. The raw bytes of dead letters are base64.
    """
    rows = with_base64(rows)
    columns = [_for_json(rows.column(at), item) for at, item in enumerate(rows.schema)]
    made = bytearray()
    for batch in pa.Table.from_arrays(columns, rows.schema.names).to_batches(_JSON_CHUNK):
        made += "".join(f"{_line(row)}\n" for row in batch.to_pylist()).encode()
    return made


def with_base64(rows: pa.Table) -> pa.Table:
    """The rows with base64 instead of the bytes of columns whose fields say so, as those of dead letters do.

    Example:
        >>> field = pa.field("raw", pa.binary(), metadata=BASE64)
        >>> with_base64(pa.table([[b"hello", None]], pa.schema([field]))).to_pydict()
        {'raw': ['aGVsbG8=', None]}
    """
    for at, item in enumerate(rows.schema):
        if (item.metadata or {}).items() >= BASE64.items():
            texts = [None if raw is None else b64encode(raw).decode() for raw in rows.column(at).to_pylist()]
            rows = rows.set_column(at, item.name, pa.array(texts, pa.large_string()))
    return rows


def _for_json(column: pa.ChunkedArray, item: pa.Field) -> pa.ChunkedArray:
    kind = decoded(item.type)
    if not _is_json(kind):
        raise pa.ArrowNotImplementedError(f"column {item.name!r} is {item.type}")
    if pa.types.is_duration(kind):
        return column.cast(pa.int64())
    return column.cast(pa.string()) if pa.types.is_temporal(kind) else column


def _is_json(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_is_json(kind.field(at).type) for at in range(kind.num_fields))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _is_json(kind.value_type)
    return any(fits(kind) for fits in _JSON_TYPES) and not pa.types.is_interval(kind)


def _line(row: dict[str, Any]) -> str:
    try:
        return _ENCODER.encode(row)
    except ValueError:  # rare, so not every value is checked
        return _ENCODER.encode(_finite(row))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


def _text(value: object) -> object:
    """The text of a value that JSON cannot represent."""
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{value!r} is not JSON")


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_text
)

PART_FORMATS: Mapping[PartFormatName, PartFormat] = {
    "parquet": PartFormat("Parquet", ".parquet", encode_parquet, decode_parquet),
    "csv": PartFormat("CSV", ".csv", encode_csv, lambda data: data.decode().splitlines()[1:]),
    "json": PartFormat("JSON", ".jsonl", encode_json, lambda data: data.decode().splitlines()),
}
