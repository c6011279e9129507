"""Values in PostgreSQL's notation as Arrow columns: exactly, or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from workbench.connectors.contract.plain_types import BYTES, TEXT, TypeTests, family_of
from workbench.errors import SourceError
from workbench.raised import first_line_of

SETTINGS = {
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "iso_8601",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
}
"""Settings of a session on which the notation of values depends."""
_BOOL, _BYTEA, _BIGINT, _SMALLINT, _INTEGER, _OID = 16, 17, 20, 21, 23, 26
_REAL, _DOUBLE, _DATE, _TIME, _TIMESTAMP, _TIMESTAMPTZ, _NUMERIC = 700, 701, 1082, 1083, 1114, 1184, 1700
_INTEGERS = (_SMALLINT, _INTEGER, _BIGINT, _OID)
_TIMES = re.compile(r"(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?")
_FAMILIES: TypeTests = {
    "text": TEXT,
    "bytes": BYTES,
    "boolean": (pa.types.is_boolean,),
    "integer": (pa.types.is_integer,),
    "float": (pa.types.is_float32, pa.types.is_float64),
    "decimal": (pa.types.is_decimal128, pa.types.is_decimal256),
    "date": (pa.types.is_date32,),
    "time": (pa.types.is_time64,),
    "instant": (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,),
    "timestamp": (pa.types.is_timestamp,),
}
_FROM = {
    "bytes": (_BYTEA,),
    "boolean": (_BOOL,),
    "integer": _INTEGERS,
    "float": (_REAL, _DOUBLE),
    "decimal": (_NUMERIC, *_INTEGERS),
    "date": (_DATE,),
    "time": (_TIME,),
    "instant": (_TIMESTAMPTZ,),
    "timestamp": (_TIMESTAMP,),
}
"""By family of types, the ids of the types in PostgreSQL from which values are exact; text is made from all."""


def fits(kind: int, target: pa.DataType) -> bool:
    """Whether values of a type in PostgreSQL, by its id, can be exact in an Arrow type.

    Example:
        >>> fits(1700, pa.decimal128(9, 2)), fits(1700, pa.float64()), fits(790, pa.string())
        (True, False, True)
    """
    family = family_of(target, _FAMILIES)
    if family == "float" and kind == _DOUBLE:
        return bool(pa.types.is_float64(target))
    return family == "text" or (family is not None and kind in _FROM[family])


def column_of(texts: Sequence[str | None], kind: int, field: pa.Field) -> pa.Array:
    """Values as an Arrow column.

    Args:
        texts: the values, in the notation of `SETTINGS`.
        kind: the id of their type, for which `fits` holds.
        field: the column.

    Raises:
        SourceError: a value that the type does not have, such as ``infinity`` or one that is too large.

    Example:
        >>> column_of(["t", None], 16, pa.field("late", pa.bool_())).to_pylist()
        [True, None]
    """
    family = family_of(field.type, _FAMILIES)
    assert family is not None
    try:
        return _MAKERS.get(family, _cast)(texts, kind, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        value = next((each for each in texts if each is not None and not _is_good(each, kind, field, family)), None)
        what = first_line_of(error) if value is None else f"{value[:60]!r} is no {field.type}"
        raise SourceError(f"the column {field.name!r}: {what}; declare it as pa.string(), and cast it") from error


def _is_good(text: str, kind: int, field: pa.Field, family: str) -> bool:
    try:
        _MAKERS.get(family, _cast)([text], kind, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return False
    return True


def _cast(texts: Sequence[str | None], kind: int, target: pa.DataType) -> pa.Array:
    return pa.array(texts, pa.string()).cast(target)


def _text(texts: Sequence[str | None], kind: int, target: pa.DataType) -> pa.Array:
    return pa.array(texts, target)


def _bytes(texts: Sequence[str | None], kind: int, target: pa.DataType) -> pa.Array:
    return pa.array([None if text is None else _of_hex(text) for text in texts], target)


def _of_hex(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise ValueError("bytes are not in hex")
    return bytes.fromhex(text[2:])


def _boolean(texts: Sequence[str | None], kind: int, target: pa.DataType) -> pa.Array:
    if not {*texts} <= {"t", "f", None}:
        raise ValueError("a boolean is neither t nor f")
    return pc.equal(pa.array(texts, pa.string()), "t")


def _float(texts: Sequence[str | None], kind: int, target: pa.DataType) -> pa.Array:
    floats = pa.array(texts, pa.string()).cast(pa.float32() if kind == _REAL else pa.float64())
    return floats.cast(target)


def _time(texts: Sequence[str | None], kind: int, target: pa.DataType) -> pa.Array:
    return pa.array([None if text is None else _microseconds(text) for text in texts], pa.time64("us")).cast(target)


def _microseconds(text: str) -> int:
    if (found := _TIMES.fullmatch(text)) is None or found[1] == "24":
        raise ValueError(f"{text[:40]!r} is no time of a day")
    hours, minutes, seconds = (int(found[at]) for at in (1, 2, 3))
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int((found[4] or "").ljust(6, "0"))


def _timestamp(texts: Sequence[str | None], kind: int, target: pa.DataType) -> pa.Array:
    return pa.array(texts, pa.string()).cast(pa.timestamp("us", target.tz)).cast(target)


_MAKERS: dict[str, Callable[[Sequence[str | None], int, pa.DataType], pa.Array]] = {
    "text": _text,
    "bytes": _bytes,
    "boolean": _boolean,
    "float": _float,
    "time": _time,
    "instant": _timestamp,
    "timestamp": _timestamp,
}
