"""Values of SQLite, whose columns hold values of any type: each is read exactly as the declared type, or refused.

A column of the type NUMERIC turns text such as ``1e5`` and decimals into floating-point numbers, one of the type REAL
has only those, and one of the type INTEGER keeps text that is no number. So the type of the value counts, not that of
the column. Dates, times and decimals are text, and durations are microseconds, as `SqlSink` writes them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from workbench.connectors.columns.exact import fitted
from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded
from workbench.errors import SourceError

_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_READ: Mapping[type, tuple[str, Sequence[Callable[[pa.DataType], bool]]]] = {
    str: (
        "text",
        (*TEXT, *_NUMBERS, pa.types.is_boolean, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp),
    ),
    int: ("an integer", (*_NUMBERS, *TEXT, pa.types.is_boolean, pa.types.is_duration)),
    float: ("a floating-point number", (*_NUMBERS, *TEXT)),
    bytes: ("a BLOB", BYTES),
}
"""By type of a value: its name, and the Arrow types that it is converted to."""
_FIX = "declare another type, or CAST it in a view"
_DIGITS = (0, 3, 6, 9)
"""Of the fractions of a second, by which Arrow writes times."""


def sqlite_row(values: Sequence[Any], schema: pa.Schema, place: str) -> pa.Table:
    """A row in the declared types.

    Args:
        values: as SQLite's driver gives them.
        schema: the declared columns.
        place: describes the row, for messages.

    Raises:
        SourceError: a value that is not exactly one of its type; names the column and the value.

    Example:
        >>> sqlite_row(["1.50"], pa.schema([("price", pa.decimal128(5, 2))]), "the row").to_pylist()
        [{'price': Decimal('1.50')}]
    """
    columns = []
    for field, value in zip(schema, values, strict=True):
        target = decoded(field.type)
        name, tests = _READ.get(type(value), ("", ()))
        is_flag = not pa.types.is_boolean(target) or type(value) is not int or value in (0, 1)
        if value is not None and not (is_flag and any(test(target) for test in tests)):
            raise SourceError(
                f"the column {field.name!r} has {value!r}, {name} ({place}), which is not a value of {field.type}: "
                f"{_FIX}"
            )
        columns.append(_array(value, target))
    return fitted(pa.Table.from_arrays(columns, names=schema.names), schema, lambda _: place)


def _array(value: Any, target: pa.DataType) -> pa.Array:
    if value is None:
        return pa.nulls(1, target)
    if type(value) is float and pa.types.is_decimal(target):
        return pa.array([format(Decimal(value), "f")])
    return pa.array([value])


def sqlite_forms(value: Any) -> list[Any] | None:
    """What `SqlSink` can have written for a key, which is compared with each of them.

    Returns:
        None: it has no such form.

    Example:
        >>> sqlite_forms(dt.datetime(2026, 3, 29))[:2]
        ['2026-03-29 00:00:00', '2026-03-29 00:00:00.000']
    """
    if isinstance(value, dt.datetime):
        nanoseconds = 1_000 * value.microsecond + int(getattr(value, "nanosecond", 0))
        zone = "" if value.tzinfo is None else "Z"
        local = value if value.tzinfo is None else value.astimezone(dt.UTC)
        return _timed(f"{local:%Y-%m-%d %H:%M:%S}".rjust(19, "0"), nanoseconds, zone)
    if isinstance(value, dt.date):
        return [value.isoformat()]
    if isinstance(value, dt.time):
        return _timed(f"{value:%H:%M:%S}", 1_000 * value.microsecond, "")
    if isinstance(value, dt.timedelta):
        return [value // dt.timedelta(microseconds=1)]
    is_large = isinstance(value, int) and not -(2**63) <= value < 2**63
    return None if is_large or not isinstance(value, str | int | float | bytes) else [value]


def _timed(seconds: str, nanoseconds: int, zone: str) -> list[Any]:
    fraction = f"{nanoseconds:09}"
    return [
        f"{seconds}.{fraction[:digits]}{zone}" if digits else f"{seconds}{zone}"
        for digits in _DIGITS
        if not fraction[digits:].strip("0")
    ]
