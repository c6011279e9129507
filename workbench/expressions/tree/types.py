"""The types of expressions: Spark's names for Arrow types, and the common type of two operands."""

from __future__ import annotations

import re

import pyarrow as pa

INSTANT = pa.timestamp("us", "UTC")
"""What Spark calls TIMESTAMP: a point in time."""

LOCAL = pa.timestamp("us")
"""What Spark calls TIMESTAMP_NTZ; compared with an instant, it is read as UTC."""

CAST_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": INSTANT,
    "timestamp_ntz": LOCAL,
}
"""The types that CAST knows, by their Spark name."""

_NAMES = {type_: name for name, type_ in CAST_TYPES.items()}
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


WIDEST = 38
"""The digits that a decimal has at most."""

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)(?:\(([0-9]+)(?:, *([0-9]+))?\))?")


def cast_type(name: str) -> pa.DataType | None:
    """The type with a Spark name, also ``decimal(10, 2)``; None if there is none.

    Example:
        >>> cast_type("decimal(10, 2)"), cast_type("decimal"), cast_type("uuid")
        (Decimal128Type(decimal128(10, 2)), Decimal128Type(decimal128(10, 0)), None)
    """
    found = _DECIMAL.fullmatch(name)
    if found is None:
        return CAST_TYPES.get(name)
    precision, scale = int(found[1] or 10), int(found[2] or 0)
    return pa.decimal128(precision, scale) if 1 <= precision <= WIDEST and scale <= precision else None


def decimal_type(type_: pa.DataType) -> pa.DataType | None:
    """The decimal type that holds all values of a decimal or whole number; None for other types."""
    if pa.types.is_decimal(type_):
        return type_
    return pa.decimal128(_DIGITS[type_], 0) if type_ in _DIGITS else None


def wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type that holds all values of both; of more than 38 digits if need be."""
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    return pa.decimal128(precision, scale) if precision <= WIDEST else pa.decimal256(precision, scale)


def type_name(type_: pa.DataType) -> str:
    """Spark's name of an Arrow type, or Arrow's if Spark has none."""
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    return _NAMES.get(type_) or ("null" if pa.types.is_null(type_) else str(type_))


def is_number(type_: pa.DataType) -> bool:
    """Whether it is an integer, floating-point or decimal type."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def is_time(type_: pa.DataType) -> bool:
    """Whether it is a timestamp or a date."""
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_))


def operand_type(type_: pa.DataType) -> pa.DataType:
    """The type of a column of `type_` in computations: the nearest type of Spark if there is one.

    Dictionaries are decoded, unsigned integers become wider signed ones, and those of 64 bits decimals, text has one
    representation, time has microseconds.
    """
    if pa.types.is_dictionary(type_):
        return operand_type(type_.value_type)
    if type_ in (pa.large_string(), pa.string_view()):
        return pa.string()
    if pa.types.is_timestamp(type_):
        return LOCAL if type_.tz is None else INSTANT
    if pa.types.is_date(type_):
        return pa.date32()
    if pa.types.is_decimal(type_) and type_.precision <= WIDEST and type_.scale >= 0:
        return pa.decimal128(type_.precision, type_.scale)
    return _WIDER.get(type_, type_)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type to which values of both types convert without losing their meaning, or None."""
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if is_time(left) and is_time(right):
        return INSTANT if INSTANT in (left, right) else LOCAL
    return None


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        return left if left.bit_width >= right.bit_width else right
    exact = decimal_type(left), decimal_type(right)
    if exact[0] is not None and exact[1] is not None:
        return wider_decimal(exact[0], exact[1])
    if pa.types.is_decimal(left) or pa.types.is_decimal(right):
        return pa.float64()
    small = [type_ for type_ in (left, right) if type_ in (pa.float32(), pa.int16(), pa.int8())]
    return pa.float32() if len(small) == 2 else pa.float64()
