"""Decimals: the types of Spark's results, conversions that round half up, and arithmetic that is exact."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.expressions.tree.node import Datum, Node, apply, apply_or_null, call, constant
from workbench.expressions.tree.types import WIDEST, decimal_type

_EXACT = decimal.Context(prec=120, rounding=decimal.ROUND_DOWN, Emax=9999, Emin=-9999, traps=[])
"""More digits than a product or the integer part and 38 decimals of a quotient have."""
_HALF_UP = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP, Emax=9999, Emin=-9999, traps=[])
_WIDE = 76
"""The digits of a decimal256."""
_LEAST_SCALE = 6
_LONG = pa.int64()
_WHOLE = pa.decimal128(WIDEST, 0)
_TEXT = re.compile(r"[ \t\n\r\f\v]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?)[ \t\n\r\f\v]*")

Rows = Callable[..., decimal.Decimal | None]


# types --------------------------------------------------------------------------------------------------------------


def counted_type(node: Node) -> pa.DataType:
    """The decimal type of an operand in arithmetic: a constant whole number counts its digits."""
    if node.exact is not None:
        return node.exact.type
    kind = decimal_type(node.type)
    assert kind is not None, "floats are handled before"
    return kind


def _capped(precision: int, scale: int) -> pa.DataType:
    """Spark's type for a result: of more than 38 digits, it keeps those before the point and at least 6 after it."""
    if precision <= WIDEST:
        return pa.decimal128(precision, scale)
    return pa.decimal128(WIDEST, max(WIDEST - (precision - scale), min(scale, _LEAST_SCALE)))


def _sum_type(a: pa.DataType, b: pa.DataType) -> tuple[int, int]:
    scale = max(a.scale, b.scale)
    return max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale


def _product_type(a: pa.DataType, b: pa.DataType) -> tuple[int, int]:
    return a.precision + b.precision + 1, a.scale + b.scale


def _quotient_type(a: pa.DataType, b: pa.DataType) -> tuple[int, int]:
    scale = max(_LEAST_SCALE, a.scale + b.precision + 1)
    return a.precision - a.scale + b.scale + scale, scale


def _remainder_type(a: pa.DataType, b: pa.DataType) -> tuple[int, int]:
    scale = max(a.scale, b.scale)
    return min(a.precision - a.scale, b.precision - b.scale) + scale, scale


# arithmetic ---------------------------------------------------------------------------------------------------------


def add(left: Node, right: Node, text: str) -> Node:
    """The sum of a decimal and a decimal or whole number; null if it has more than 38 digits."""
    return _computed(left, right, text, _sum_type, "add", lambda a, b: _EXACT.add(a, b))


def subtract(left: Node, right: Node, text: str) -> Node:
    """The difference; null if it has more than 38 digits."""
    return _computed(left, right, text, _sum_type, "subtract", lambda a, b: _EXACT.subtract(a, b))


def multiply(left: Node, right: Node, text: str) -> Node:
    """The product; null if it has more than 38 digits."""
    return _computed(left, right, text, _product_type, "multiply", lambda a, b: _EXACT.multiply(a, b))


def divide(left: Node, right: Node, text: str) -> Node:
    """The quotient, rounded half up to the scale of Spark's type; null for a division by zero."""
    return _computed(left, right, text, _quotient_type, None, lambda a, b: _EXACT.divide(a, b) if b else None)


def remainder(left: Node, right: Node, text: str) -> Node:
    """The remainder, with the sign of the dividend; null for a division by zero."""
    return _computed(left, right, text, _remainder_type, None, lambda a, b: _EXACT.remainder(a, b) if b else None)


def whole_divide(left: Node, right: Node, text: str) -> Node:
    """The whole part of the quotient as a bigint; null for a division by zero."""
    a, b = counted_type(left), counted_type(right)
    function = _by_rows(lambda x, y: _EXACT.divide_int(x, y) if y else None, _WHOLE)
    whole = call(function, [as_decimal(left, a), as_decimal(right, b)], _WHOLE, text)
    return apply_or_null("cast", [whole], _LONG, text, pc.CastOptions.safe(_LONG))


def _computed(
    left: Node,
    right: Node,
    text: str,
    result: Callable[[pa.DataType, pa.DataType], tuple[int, int]],
    kernel: str | None,
    function: Rows,
) -> Node:
    a, b = counted_type(left), counted_type(right)
    precision, scale = result(a, b)
    operands, kind = [as_decimal(left, a), as_decimal(right, b)], _capped(precision, scale)
    if kernel is not None and precision <= WIDEST:  # no sum or product of these types overflows
        return apply(kernel, operands, kind, text)
    return call(_by_rows(function, kind), operands, kind, text)


def _by_rows(function: Rows, kind: pa.DataType) -> Callable[..., Datum]:
    """Computes exactly in Python and rounds to `kind`: Arrow has no kernel for results that are rounded or too wide."""

    def run(*values: Datum) -> Datum:
        rows = max((len(value) for value in values if isinstance(value, pa.Array)), default=None)
        columns = [
            value.to_pylist() if isinstance(value, pa.Array) else [value.as_py()] * (1 if rows is None else rows)
            for value in values
        ]
        made = [
            None if any(part is None for part in row) else rounded(function(*row), kind)
            for row in zip(*columns, strict=True)
        ]
        return pa.scalar(made[0], kind) if rows is None else pa.array(made, kind)

    return run


def rounded(value: decimal.Decimal | None, kind: pa.DataType) -> decimal.Decimal | None:
    """The value half up with the scale of `kind`; None if it is not finite or has too many digits.

    Example:
        >>> rounded(decimal.Decimal("0.355"), pa.decimal128(10, 2))
        Decimal('0.36')
    """
    if value is None or not value.is_finite():
        return None
    if value and value.adjusted() >= kind.precision - kind.scale:
        return None
    made = value.quantize(decimal.Decimal(1).scaleb(-kind.scale), context=_HALF_UP)
    return None if made and made.adjusted() >= kind.precision - kind.scale else made


# conversions --------------------------------------------------------------------------------------------------------


def as_decimal(node: Node, kind: pa.DataType) -> Node:
    """A decimal or whole number in a decimal type that can hold it."""
    if node.exact is not None:
        node = constant(node.exact, node.text)
    if node.type == kind:
        return node
    if node.constant is not None:
        return constant(pa.scalar(node.constant.as_py(), kind), node.text)
    if pa.types.is_integer(node.type):
        node = apply("cast", [node], pa.decimal128(20, 0), node.text, pc.CastOptions.safe(pa.decimal128(20, 0)))
    return apply("cast", [node], kind, node.text, pc.CastOptions.safe(kind))


def rescale(node: Node, kind: pa.DataType, text: str, decimals: int | None = None) -> Node:
    """A decimal rounded half up to the scale of `kind`, or to `decimals` digits; null where it has too many digits."""
    decimals = kind.scale if decimals is None else decimals
    if decimals < node.type.scale:
        wide = pa.decimal256(_WIDE, node.type.scale)
        options = pc.RoundOptions(decimals, round_mode="half_towards_infinity")
        node = apply("cast", [node], wide, text, pc.CastOptions.safe(wide))
        node = apply("round", [node], wide, text, options)
    return apply_or_null("cast", [node], kind, text, pc.CastOptions.safe(kind))


def round_decimal(node: Node, decimals: int, text: str) -> Node:
    """ROUND of a decimal, half up: a decimal with at most `decimals` digits after the point."""
    precision, scale = node.type.precision, node.type.scale
    whole = precision - scale + 1
    if decimals >= 0:
        kept = min(scale, decimals)
        return rescale(node, _capped(whole + kept, kept), text)
    return rescale(node, _capped(max(whole, 1 - decimals), 0), text, max(decimals, -_WIDE))


def whole_decimal(kernel: str, node: Node, text: str) -> Node:
    """FLOOR or CEIL of a decimal: a decimal without digits after the point."""
    wide, kind = pa.decimal256(_WIDE, node.type.scale), _capped(node.type.precision - node.type.scale + 1, 0)
    widened = apply("cast", [node], wide, text, pc.CastOptions.safe(wide))
    whole = apply(kernel, [widened], wide, text)
    return apply_or_null("cast", [whole], kind, text, pc.CastOptions.safe(kind))


def to_double(node: Node, kind: pa.DataType | None = None) -> Node:
    """The double (or float) that is nearest to a decimal; Arrow's cast is off by one unit for some values."""
    kind = kind or pa.float64()
    return call(lambda value: _nearest(value, kind), [node], kind, node.text)


def _nearest(value: Datum, kind: pa.DataType) -> Datum:
    if isinstance(value, pa.Scalar):
        return pa.scalar(float(value.as_py()), kind) if value.is_valid else pa.scalar(None, kind)
    scale = value.type.scale
    if kind == pa.float64() and pa.types.is_decimal128(value.type) and 0 <= scale <= 22 and len(value):
        words = np.frombuffer(value.buffers()[1], np.int64)[2 * value.offset :][: 2 * len(value)]
        low, high = words[::2], words[1::2]
        mask = value.is_null().to_numpy(zero_copy_only=False) if value.null_count else None
        small = ((high == low >> 63) & (low <= 2**53) & (low >= -(2**53))) | (False if mask is None else mask)
        if small.all():  # both operands are exact doubles, so the quotient is correctly rounded
            return pa.array(low / 10.0**scale, kind, mask=mask)
    return value.cast(pa.string()).cast(kind)


def from_decimal(node: Node, kind: pa.DataType, text: str) -> Node | None:
    """A decimal cast to another type; None if there is no such cast."""
    if pa.types.is_decimal(kind):
        return rescale(node, kind, text)
    if pa.types.is_floating(kind):
        return to_double(node, kind)
    if pa.types.is_boolean(kind):
        return apply("not_equal", [node, constant(pa.scalar(0, node.type), "0")], kind, text)
    if pa.types.is_integer(kind):
        cut = call(_without_fraction, [node], _WHOLE, text)
        return apply_or_null("cast", [cut], kind, text, pc.CastOptions.safe(kind))
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        micros = call(_by_rows(_micros, _WHOLE), [node], _WHOLE, text)
        count = apply_or_null("cast", [micros], _LONG, text, pc.CastOptions.safe(_LONG))
        return apply("cast", [count], kind, text, pc.CastOptions.unsafe(kind))
    return None


def _micros(seconds: decimal.Decimal) -> decimal.Decimal:
    return seconds.scaleb(6, _EXACT).to_integral_value(decimal.ROUND_DOWN)


def _without_fraction(value: Datum) -> Datum:
    return pc.cast(value, options=pc.CastOptions(target_type=_WHOLE, allow_decimal_truncate=True))


def to_decimal(node: Node, kind: pa.DataType, text: str) -> Node | None:
    """A number, boolean or text cast to a decimal; None if there is no such cast."""
    source = node.type
    if pa.types.is_decimal(source):
        return rescale(node, kind, text)
    if pa.types.is_boolean(source):
        node = apply("cast", [node], _LONG, text, pc.CastOptions.safe(_LONG))
        source = _LONG
    if pa.types.is_integer(source):
        return apply_or_null("cast", [as_decimal(node, pa.decimal128(20, 0))], kind, text, pc.CastOptions.safe(kind))
    if pa.types.is_floating(source):
        return call(_read(lambda value: decimal.Decimal(repr(value)), kind), [node], kind, text)
    if pa.types.is_string(source):
        return call(_read(_number, kind), [node], kind, text)
    return None


def _read(parse: Callable[[Any], decimal.Decimal | None], kind: pa.DataType) -> Callable[[Datum], Datum]:
    def run(value: Datum) -> Datum:
        if isinstance(value, pa.Scalar):
            return pa.scalar(rounded(parse(value.as_py()), kind) if value.is_valid else None, kind)
        distinct = value.dictionary_encode()
        made = [rounded(parse(item), kind) for item in distinct.dictionary.to_pylist()]
        return pa.array(made, kind).take(distinct.indices)

    return run


def _number(text: str) -> decimal.Decimal | None:
    found = _TEXT.fullmatch(text)
    return None if found is None else decimal.Decimal(found[1])
