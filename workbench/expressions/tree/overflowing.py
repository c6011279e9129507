"""Kernels that reject a batch with a value that overflows, computed with null in those rows.

Each result comes with its validity in a few kernel calls on the whole batch, so the time does not depend on how many
rows overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Datum = Any
"""An Arrow array, or a scalar that stands for all rows."""

_LONG = np.dtype(np.int64)
_HALF_TURN = 2.0**62
"""A product that wraps differs from the true one by 2**64, and the double of each by less than 2**12."""
_TEXT_MAX = 20
"""Characters of the longest bigint."""
_MOMENT = (
    r"^(?:[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
    r"(?:$|[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])"
)
"""Texts such as ``2024-02-29``, or ``2024-02-29 23:59:59`` and a fraction, whose day and time of the day exist."""


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


def whole(kernel: str, type_: pa.DataType) -> Callable[..., Datum | None] | None:
    """A function that computes a kernel on whole numbers, with null where the result overflows; None: there is none.

    It takes at least one array, of `type_` (a cast: of any whole numbers), and returns None for other operands.
    """
    steps = _WHOLE.get(kernel)
    is_moment = pa.types.is_timestamp(type_)
    if steps is None or not (pa.types.is_signed_integer(type_) or is_moment):
        return None
    if is_moment and kernel not in ("add_checked", "subtract_checked"):
        return None
    limits = _LIMITS[type_.bit_width]
    accepted = (type_, pa.duration(type_.unit)) if is_moment else None if kernel == "cast" else (type_,)

    def run(*values: Datum) -> Datum | None:
        numbers, arrays, is_known = [], [], True
        for value in values:
            of = value.type
            if of not in accepted if accepted else not pa.types.is_signed_integer(of):
                return None
            kind = _LIMITS[of.bit_width].kind
            if isinstance(value, pa.Array):
                if not len(value):
                    return None
                arrays.append(value)
                numbers.append(_numbers(value, kind))
            elif value.is_valid:
                numbers.append(kind.type(value.value if is_moment else value.as_py()))
            else:
                is_known = False
        if not arrays:
            return None
        return _array(*steps(limits, *numbers), type_, arrays) if is_known else pa.nulls(len(arrays[0]), type_)

    return run


@dataclass(frozen=True, slots=True)
class _Limits:
    """Of whole numbers of one width."""

    kind: np.dtype[Any]
    least: int
    most: int


_LIMITS = {
    8 * width: _Limits(np.dtype(f"i{width}"), -(2 ** (8 * width - 1)), 2 ** (8 * width - 1) - 1)
    for width in (1, 2, 4, 8)
}
"""By the number of bits."""


def _numbers(array: pa.Array, kind: np.dtype[Any]) -> Any:
    """The numbers of an array of this width, whatever those of null rows are; shape (n,)."""
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize)


def _array(result: Any, known: Any, type_: pa.DataType, operands: Sequence[pa.Array]) -> pa.Array:
    """An array of numbers, or of a buffer with them, that is null where `known` is false, or an operand is null."""
    for operand in operands:
        if operand.null_count:
            known &= operand.is_valid().to_numpy(zero_copy_only=False)
    bits = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(type_, len(known), [bits, pa.py_buffer(result)])


def _add(limits: _Limits, left: Any, right: Any) -> tuple[Any, Any]:
    if left.ndim == 0:
        left, right = right, left
    result = left + right
    if right.ndim:
        turned = left ^ result
        turned &= right ^ result  # both terms have one sign, and the result another one
        return result, turned >= 0
    return result, left <= limits.most - int(right) if right >= 0 else left >= limits.least - int(right)


def _subtract(limits: _Limits, left: Any, right: Any) -> tuple[Any, Any]:
    if right.ndim == 0 and right != limits.least:
        return _add(limits, left, -right)
    result = left - right
    turned = left ^ result
    turned &= left ^ right
    return result, turned >= 0


def _multiply(limits: _Limits, left: Any, right: Any) -> tuple[Any, Any]:
    if left.ndim == 0:
        left, right = right, left
    result = left * right
    if right.ndim == 0:
        size = abs(int(right))
        if size <= 1:
            return result, _all(left) if right >= 0 else left != limits.least
        above, below = limits.most // size, limits.least // -size
        if right < 0:
            above, below = below, above
        known = left <= above
        known &= left >= -below
        return result, known
    if limits.kind.itemsize < _LONG.itemsize:
        exact = left.astype(_LONG)
        exact *= right
        return result, exact == result.astype(_LONG)
    near = left.astype(np.float64)
    near *= near if right is left else right.astype(np.float64)
    near -= result.astype(np.float64)
    return result, np.abs(near, out=near) < _HALF_TURN


def _negate(limits: _Limits, value: Any) -> tuple[Any, Any]:
    return -value, value != limits.least


def _abs(limits: _Limits, value: Any) -> tuple[Any, Any]:
    return np.abs(value), value != limits.least


def _narrow(limits: _Limits, value: Any) -> tuple[Any, Any]:
    result = value.astype(limits.kind)
    return result, result.astype(value.dtype) == value if limits.kind.itemsize < value.itemsize else _all(value)


def _all(values: Any) -> Any:
    return np.ones(len(values), np.bool_)


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
    result = pc.divide(left, right)
    if isinstance(result, pa.Scalar) or not len(result):
        return None
    limits = _LIMITS[type_.bit_width]
    known = np.zeros(len(result), np.bool_)  # only the smallest number over -1 overflows
    for value, outside in ((left, limits.least), (right, -1)):
        known |= (_numbers(value, limits.kind) if isinstance(value, pa.Array) else value.as_py()) != outside
    return _array(result.buffers()[1], known, type_, [result])


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
        if pa.types.is_decimal128(source) and pa.types.is_decimal128(type_) and type_.scale >= source.scale:
            found = _rescaled(type_, value, int(most.scaleb(source.scale)))
            if found is not None:
                return found
    inside = [
        pc.less_equal(value, pa.scalar(most, source)) if _fits(most, source) else None,
        pc.greater_equal(value, pa.scalar(least, source)) if _fits(least, source) else None,
    ]
    known = [test for test in inside if test is not None]
    if not known:
        return None
    both = known[0] if len(known) == 1 else pc.and_(*known)
    return pc.if_else(both, value, pa.scalar(None, source)).cast(type_)


def _rescaled(type_: pa.DataType, value: Datum, most: int) -> Datum | None:
    """Decimals with no fewer digits after the point, of at most `most` units; None: `most` has more than 64 bits."""
    if most >= 2**63 or isinstance(value, pa.Scalar) or not len(value):
        return None
    words = np.frombuffer(value.buffers()[1], _LONG, 2 * len(value), 16 * value.offset).reshape(-1, 2)
    units = np.ascontiguousarray(words[:, 0])
    known = words[:, 1] == units >> 63
    known &= units <= most
    known &= units >= -most
    return _array(value.cast(type_, safe=False).buffers()[1], known, type_, [value])


def _fits(bound: Decimal, type_: pa.DataType) -> bool:
    try:
        pa.scalar(bound, type_)
    except pa.ArrowInvalid:
        return False
    return True


def _from_text(type_: pa.DataType, value: Datum) -> Datum | None:
    long = pc.greater(pc.binary_length(value), _TEXT_MAX)
    if long.true_count:
        if pc.and_(long, pc.match_substring_regex(value, "^-?0")).true_count:
            value = pc.replace_substring_regex(value, r"^(-?)0+(\d)", r"\1\2")
            long = pc.greater(pc.binary_length(value), _TEXT_MAX)
        value = pc.if_else(long, pa.scalar(None, value.type), value)
    return _from_decimal(type_, value.cast(pa.decimal128(_TEXT_MAX, 0)))


def _moments(type_: pa.DataType, value: Datum) -> Datum | None:
    exists = pc.match_substring_regex(value, _MOMENT)
    return pc.if_else(exists, value, pa.scalar(None, value.type)).cast(type_)


_MAKERS: dict[str, Callable[..., Datum | None]] = {"divide_checked": _quotient, "cast": _cast}
