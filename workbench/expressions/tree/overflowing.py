"""Kernels that reject a batch with a value that overflows, computed with null in those rows.

Each result comes with its validity in a few kernel calls on the whole batch, so the time does not depend on how many
rows overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.expressions.tree.text_times import days_of_text, micros_of_text

Datum = Any
"""An Arrow array, or a scalar that stands for all rows."""

_LONG = pa.int64()
_HALF_TURN = 2.0**62
"""A product that wraps differs from the true one by 2**64, and the double of each by less than 2**12."""
_TEXT_MAX = 20
"""Characters of the longest bigint."""


def with_nulls(kernel: str, type_: pa.DataType, values: Sequence[Datum]) -> Datum | None:
    """The kernel's result with null where a value overflows; None: it cannot be computed so.

    Args:
        kernel: its name, such as ``divide_checked``, or ``cast``.
        type_: of the result.
        values: the operands; at least one is an array.

    Example:
        >>> with_nulls("cast", pa.int8(), [pa.array(["12", "128"])]).to_pylist()
        [12, None]
    """
    make = _MAKERS.get(kernel)
    if make is None:
        return None
    try:
        return make(type_, *values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _numbers(value: Datum) -> Any:
    """The numbers of an array, whatever those of null rows are, or that of a scalar; None: it is null."""
    kind = np.dtype(f"i{value.type.bit_width // 8}")
    if isinstance(value, pa.Scalar):
        if not value.is_valid:
            return None
        return kind.type(value.value if pa.types.is_temporal(value.type) else value.as_py())
    return np.frombuffer(value.buffers()[1], kind, len(value), value.offset * kind.itemsize)


def _array(result: Any, known: Any, type_: pa.DataType, values: Sequence[Datum]) -> pa.Array:
    """An array of numbers that is null where `known` is false, or an operand is null."""
    for value in values:
        if isinstance(value, pa.Array) and value.null_count:
            valid = value.is_valid().to_numpy(zero_copy_only=False)
            known = valid if known is None else known & valid
    validity = None if known is None else pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(type_, len(result), [validity, pa.py_buffer(result)])


def whole(kernel: str, type_: pa.DataType) -> Callable[..., Datum | None] | None:
    """A function that computes a kernel on whole numbers, with null where the result overflows; None: there is none.

    It takes at least one array, of `type_` (a cast: of any whole numbers), and returns None for other operands.
    """
    steps = _WHOLE.get(kernel)
    if steps is None or not (pa.types.is_signed_integer(type_) or pa.types.is_timestamp(type_)):
        return None
    if pa.types.is_timestamp(type_) and kernel not in ("add_checked", "subtract_checked"):
        return None
    limit = np.iinfo(f"i{type_.bit_width // 8}")

    def run(*values: Datum) -> Datum | None:
        if not any(isinstance(value, pa.Array) and len(value) for value in values):
            return None
        for value in values:
            is_whole = pa.types.is_signed_integer(value.type) if kernel == "cast" else value.type == type_
            if not is_whole and not (pa.types.is_timestamp(type_) and value.type == pa.duration(type_.unit)):
                return None
        numbers = [_numbers(value) for value in values]
        if any(each is None for each in numbers):
            return pa.nulls(max(len(value) for value in values if isinstance(value, pa.Array)), type_)
        result, known = steps(limit, *numbers)
        return _array(result, None if known is None or known.all() else known, type_, values)

    return run


def _add(limit: Any, left: Any, right: Any) -> tuple[Any, Any]:
    for one, other in ((left, right), (right, left)):
        if other.ndim == 0:
            result = one + other
            return result, (one <= limit.max - other if other >= 0 else one >= limit.min - other)
    result = left + right
    turned = left ^ result
    turned &= right ^ result  # both terms have one sign, and the result another one
    return result, None if turned.min() >= 0 else turned >= 0


def _subtract(limit: Any, left: Any, right: Any) -> tuple[Any, Any]:
    if right.ndim == 0 and right != limit.min:
        return _add(limit, left, -right)
    result = left - right
    turned = left ^ result
    turned &= left ^ right
    return result, None if turned.min() >= 0 else turned >= 0


def _multiply(limit: Any, left: Any, right: Any) -> tuple[Any, Any]:
    for one, other in ((left, right), (right, left)):
        if other.ndim == 0 and other != 0:
            size, most = abs(int(other)), [int(limit.max), -int(limit.min)]
            above, below = (bound // size for bound in (most if other > 0 else reversed(most)))
            return one * other, (one <= min(above, limit.max)) & (one >= -below)
    sizes = [max(-int(each.min()), int(each.max())) for each in (left, right)]
    result = left * right
    if sizes[0] * sizes[1] <= limit.max:
        return result, None
    if limit.bits < _LONG.bit_width:
        return result, np.multiply(left, right, dtype=np.int64) == result
    near = np.multiply(left, right, dtype=np.float64)
    near -= result
    return result, np.abs(near, out=near) < _HALF_TURN


def _negate(limit: Any, value: Any) -> tuple[Any, Any]:
    return -value, None if value.min() > limit.min else value > limit.min


def _abs(limit: Any, value: Any) -> tuple[Any, Any]:
    return np.abs(value), None if value.min() > limit.min else value > limit.min


def _narrow(limit: Any, value: Any) -> tuple[Any, Any]:
    result = value.astype(limit.dtype)
    return result, result == value


_WHOLE: dict[str, Callable[..., tuple[Any, Any]]] = {
    "add_checked": _add,
    "subtract_checked": _subtract,
    "multiply_checked": _multiply,
    "negate_checked": _negate,
    "abs_checked": _abs,
    "cast": _narrow,
}


def _quotient(type_: pa.DataType, left: Datum, right: Datum) -> Datum | None:
    if not pa.types.is_signed_integer(type_) or {left.type, right.type} != {type_}:
        return None
    least = pa.scalar(-(2 ** (type_.bit_width - 1)), type_)
    outside = pc.and_(pc.equal(left, least), pc.equal(right, pa.scalar(-1, type_)))
    return pc.divide(pc.if_else(outside, pa.scalar(None, type_), left), right)


def _cast(type_: pa.DataType, value: Datum) -> Datum | None:
    source = value.type
    if pa.types.is_decimal(source) and (pa.types.is_integer(type_) or pa.types.is_decimal(type_)):
        return _from_decimal(type_, value)
    if pa.types.is_string(source) and pa.types.is_signed_integer(type_):
        return _from_text(type_, value)
    if pa.types.is_string(source) and (pa.types.is_date(type_) or pa.types.is_timestamp(type_)):
        return _moments(type_, value)
    return None


def _from_decimal(type_: pa.DataType, value: Datum) -> Datum | None:
    """The numbers within the bounds of the type; a fraction that it cannot hold is left to the caller."""
    source = value.type
    if pa.types.is_integer(type_):
        unsigned = pa.types.is_unsigned_integer(type_)
        most = Decimal(2 ** (type_.bit_width - (not unsigned)) - 1)
        least = Decimal(0 if unsigned else -(2 ** (type_.bit_width - 1)))
    else:
        most = Decimal(1).scaleb(type_.precision - type_.scale)
        most -= Decimal(1).scaleb(-max(0, source.scale, type_.scale))
        least = -most
    inside = [
        pc.less_equal(value, pa.scalar(most, source)) if _fits(most, source) else None,
        pc.greater_equal(value, pa.scalar(least, source)) if _fits(least, source) else None,
    ]
    known = [test for test in inside if test is not None]
    if not known:
        return None
    both = known[0] if len(known) == 1 else pc.and_(*known)
    return pc.if_else(both, value, pa.scalar(None, source)).cast(type_)


def _fits(bound: Decimal, type_: pa.DataType) -> bool:
    try:
        pa.scalar(bound, type_)
    except pa.ArrowInvalid:
        return False
    return True


def _moments(type_: pa.DataType, value: Datum) -> Datum | None:
    """The moments of texts, each of which is examined once; a text may name a day that its month does not have."""
    coded = value.dictionary_encode()
    read = days_of_text if pa.types.is_date(type_) else partial(micros_of_text, zoned=False)
    known = [text is not None and read(text) is not None for text in coded.dictionary.to_pylist()]
    mask = pa.array(known, pa.bool_()).take(coded.indices)
    return pc.if_else(mask, value, pa.scalar(None, value.type)).cast(type_)


def _from_text(type_: pa.DataType, value: Datum) -> Datum | None:
    if pc.max(pc.binary_length(value)).as_py() > _TEXT_MAX:
        value = pc.replace_substring_regex(value, r"^(-?)[+]?0+(\d)", r"\1\2")
        value = pc.if_else(pc.less_equal(pc.binary_length(value), _TEXT_MAX), value, pa.scalar(None, value.type))
    return _from_decimal(type_, value.cast(pa.decimal128(_TEXT_MAX, 0)))


_MAKERS: dict[str, Callable[..., Datum | None]] = {"divide_checked": _quotient, "cast": _cast}
