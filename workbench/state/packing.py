"""Columns of state in the form that msgpack can store, value by value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa


class Packing:
    """The packing of values of one Arrow type: plain ones unchanged, all others as Arrow's own bytes.

    Dictionaries are removed, at any depth: a value's bytes contain the value and not its dictionary.

    Example:
        >>> import datetime
        >>> packing = Packing(pa.date32())
        >>> packing.unpack(packing.pack(pa.array([datetime.date(2013, 7, 1), None])))
        [datetime.date(2013, 7, 1), None]
    """

    __slots__ = ("_decoded", "_plain", "_schema")

    def __init__(self, kind: pa.DataType) -> None:
        decoded = _without_dictionaries(kind)
        self._decoded = decoded if decoded != kind else None
        self._schema = pa.schema([("value", decoded)])
        self._plain = _is_plain(decoded)

    def pack(self, column: pa.Array) -> list[Any]:
        """Each value as numbers, strings, bytes or lists of them."""
        if self._decoded is not None:
            column = column.cast(self._decoded)
        if self._plain:
            values: list[Any] = column.to_pylist()
            return values
        return [self._bytes(column.slice(at, 1)) if column[at].is_valid else None for at in range(len(column))]

    def unpack(self, packed: list[Any]) -> list[Any]:
        """The values as Python objects, as Arrow returns them; pairs of a map may be lists."""
        return packed if self._plain else [None if each is None else self._value(each) for each in packed]

    def _bytes(self, value: pa.Array) -> bytes:
        batch = pa.RecordBatch.from_arrays([value], schema=self._schema)
        return batch.serialize().to_pybytes()  # type: ignore[no-any-return]

    def _value(self, packed: bytes) -> Any:
        return pa.ipc.read_record_batch(pa.py_buffer(packed), self._schema).column(0)[0].as_py()


def _without_dictionaries(kind: pa.DataType) -> pa.DataType:
    """The type with dictionaries replaced by the types of their values."""
    if pa.types.is_dictionary(kind):
        return _without_dictionaries(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_dictionaries(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(_without_dictionaries(kind.key_type)),
            kind.item_field.with_type(_without_dictionaries(kind.item_type)),
            keys_sorted=kind.keys_sorted,
        )
    for is_list, made in _LISTS:
        if is_list(kind):
            return made(kind, kind.value_field.with_type(_without_dictionaries(kind.value_type)))
    return kind


_LISTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, pa.Field], pa.DataType]], ...] = (
    (pa.types.is_list, lambda kind, item: pa.list_(item)),
    (pa.types.is_large_list, lambda kind, item: pa.large_list(item)),
    (pa.types.is_fixed_size_list, lambda kind, item: pa.list_(item, kind.list_size)),
)


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return _is_plain(kind.value_type)
    if pa.types.is_map(kind):
        return _is_plain(kind.key_type) and _is_plain(kind.item_type)
    tests = (
        pa.types.is_null,
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    return any(test(kind) for test in tests)
