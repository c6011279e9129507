"""Conversion of Python values to Arrow columns of a declared type, strictly: a value that does not fit is an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import pack
from typing import Any

import pyarrow as pa

_PACKED_AS = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.uint8(): "B",
    pa.uint16(): "H",
    pa.uint32(): "I",
    pa.uint64(): "Q",
}


class UnfitError(Exception):
    """A value does not fit its column's type.

    Attributes:
        value: the value.
        at: its index.
    """

    def __init__(self, value: object, at: int) -> None:
        super().__init__(value, at)
        self.value = value
        self.at = at


def to_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """The values as a column; None is null, and for integer types a float must be whole.

    Raises:
        UnfitError: names the first value that does not fit.

    Example:
        >>> to_array([1, None, 3.0], pa.int64()).to_pylist()
        [1, None, 3]
    """
    code = _PACKED_AS.get(kind)
    if code is None:
        return _by_arrow(values, kind)
    try:
        # Rejects values that are not integers while it reads the list, in half the time that Arrow takes.
        numbers = pack(f"={len(values)}{code}", *values)
    except Exception:  # noqa: BLE001  a value of a class of the user's may raise anything when it is read as a number
        return _by_arrow(values, kind, _whole)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(numbers)], 0)


def _whole(value: Any) -> Any:
    # Arrow truncates floats that are converted to integers.
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(value)
    return int(value) if isinstance(value, bool | float) else value


def _as_is(value: Any) -> Any:
    return value


def _by_arrow(values: Sequence[Any], kind: pa.DataType, prepared: Callable[[Any], Any] = _as_is) -> pa.Array:
    try:
        return pa.array(values if prepared is _as_is else list(map(prepared, values)), kind)
    except Exception:  # as above
        for at, value in enumerate(values):
            try:
                pa.array([prepared(value)], kind)
            except Exception:  # noqa: BLE001  as above
                raise UnfitError(value, at) from None
        raise


def as_python(value: Any, kind: pa.DataType) -> Any:
    """The value from Arrow, with maps as dicts, at every depth."""
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_map(kind):
        return {as_python(k, kind.key_type): as_python(v, kind.item_type) for k, v in value}
    if pa.types.is_struct(kind):
        return {field.name: as_python(value[field.name], field.type) for field in kind}
    return [as_python(each, kind.value_type) for each in value]
