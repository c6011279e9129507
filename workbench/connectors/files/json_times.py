"""Timestamps that are numbers in JSON: how much one counts has to be said, because nothing in the number shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Literal

import pyarrow as pa

from workbench.connectors.files.exact_cast import exact_cast
from workbench.connectors.files.file_format import AdvisedError
from workbench.errors import SettingError, unknown

TimeUnit = Literal["s", "ms", "us", "ns"]
UNITS: tuple[TimeUnit, ...] = ("s", "ms", "us", "ns")
SAY = "say what it counts with unit='ms' (or 's', 'us', 'ns') at the source, or declare the column as int64"
"""What to do about a number without a unit."""
_NUMBER = re.compile(r"Column\(/([^)]*)\) changed from string to number")

Parse = Callable[[pa.Schema], pa.RecordBatch]
"""Parses a block as columns of these types, and ignores others; raises pa.ArrowInvalid."""


def check_unit(unit: object, format: str = "json") -> None:
    """Reject a unit that does not exist, or one for a format other than JSON.

    Raises:
        SettingError: with the value.
    """
    if unit is None:
        return
    if not isinstance(unit, str) or unit not in UNITS:
        raise SettingError(unknown("unit of time", unit, UNITS))
    if format != "json":
        raise SettingError(f"unit={unit!r} is of numbers in JSON, and the format is {format!r}: leave it out")


def has_times(schema: pa.Schema) -> bool:
    """Whether any column is of timestamps."""
    return any(pa.types.is_timestamp(kind) for kind in schema.types)


def with_numbers(parse: Parse, schema: pa.Schema, unit: TimeUnit) -> pa.RecordBatch:
    """Parse a block some of whose columns of timestamps are numbers.

    Args:
        parse: of the block.
        schema: of the records.
        unit: what a number counts, since 1970 in UTC.

    Raises:
        pa.ArrowInvalid: a value does not fit its column, for example one that is more precise.
    """
    numbers = {field.name for field in schema if pa.types.is_timestamp(field.type) and not _is_text(parse, field)}
    batch = parse(_as_numbers(schema, numbers))
    arrays = []
    for field, column in zip(schema, batch.columns, strict=True):
        kind = pa.timestamp(unit, getattr(field.type, "tz", None))
        arrays.append(exact_cast(column.cast(kind), field) if field.name in numbers else column)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as_numbers(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    return pa.schema([field.with_type(pa.int64()) if field.name in names else field for field in schema])


def _is_text(parse: Parse, field: pa.Field) -> bool:
    try:
        parse(pa.schema([field]))
    except pa.ArrowInvalid:
        return False
    return True


def told(error: pa.ArrowInvalid, schema: pa.Schema) -> pa.ArrowInvalid:
    """The error, or the one that says what to do if a timestamp is a number."""
    found = _NUMBER.search(str(error))
    name = found[1].partition("/")[0] if found else ""
    if name not in schema.names or not pa.types.is_timestamp(schema.field(name).type):
        return error
    return AdvisedError(f"the column {name!r} is a timestamp, and its value is a number: {SAY}")
