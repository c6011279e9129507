"""Validated access to the pieces of snapshots that an operator is restored from.

A checkpoint's checksums detect damage, but do not tell who wrote the data. So types, nulls and ranges are checked
before a piece reaches an operator or a compiled loop. A missing piece or column is a KeyError: another operator wrote
it. A `ChangedTypeError` says that the program has changed. Anything else is a ValueError, which becomes a
`CorruptCheckpointError` (``runtime/tasks/states.py``).
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

import numpy.typing as npt
import pyarrow as pa

from workbench.elements import Int64s
from workbench.from_json import made
from workbench.operators.contract.base import Snapshot
from workbench.operators.snapshots.changed_types import ChangedTypeError, is_cell
from workbench.state.key_columns import is_text
from workbench.state.key_index import KeyIndex

_DIGITS_MAX = 18
_CELL_TYPES = {pa.int64(), pa.float64()}
Made = TypeVar("Made")


@overload
def value_in(snapshot: Snapshot, name: str, kind: type[Made]) -> Made: ...


@overload
def value_in(snapshot: Snapshot, name: str, kind: Any) -> Any: ...  # a union, or a literal


def value_in(snapshot: Snapshot, name: str, kind: Any) -> Any:
    """A piece that is a JSON value of this type; for the types see `made`.

    Raises:
        KeyError: there is no such piece.
        ValueError: the value has another type.

    Example:
        >>> value_in({"watermarks": [[0, 128, 7]]}, "watermarks", tuple[tuple[int, int, int], ...])
        ((0, 128, 7),)
    """
    value = snapshot[name]
    if isinstance(value, pa.Table):
        raise ValueError(f"{name} is a table instead of a JSON value")
    return made(kind, value, name)


def positions_in(snapshot: Snapshot, most: int) -> dict[int, int]:
    """The piece ``positions`` of a source: by split number the rows read of it; empty without such a piece.

    Args:
        snapshot: of the source.
        most: the number of rows of a split.

    Raises:
        ValueError: it has another form.

    Example:
        >>> positions_in({"positions": {"0": 7}}, 10)
        {0: 7}
    """
    found = value_in(snapshot, "positions", dict[str, int]) if "positions" in snapshot else {}
    for split, position in found.items():
        if not split.isdecimal() or len(split) > _DIGITS_MAX or not 0 <= position <= most:
            raise ValueError(f"positions has {position} for the split {split[:_DIGITS_MAX]!r}")
    return {int(split): position for split, position in found.items()}


def table_in(snapshot: Snapshot, name: str) -> pa.Table:
    """A piece that is a table.

    Raises:
        KeyError: there is no such piece.
        ValueError: it is a JSON value.
    """
    table = snapshot[name]
    if not isinstance(table, pa.Table):
        raise ValueError(f"{name} is a {type(table).__name__} instead of a table")
    return table


def column_in(table: pa.Table, name: str, kind: pa.DataType) -> npt.NDArray[Any]:
    """A column of this type, without nulls, as a writable array.

    Raises:
        KeyError: there is no such column.
        ValueError: it has another type, or a null.
        ChangedTypeError: it belongs to an aggregate of a column whose type has changed.

    Example:
        >>> column_in(pa.table({"fired": [True, False]}), "fired", pa.bool_())
        array([ True, False])
    """
    column = table.column(name)
    if is_cell(name) and {column.type, kind} == _CELL_TYPES:
        raise ChangedTypeError(name, column.type, kind)
    if column.type != kind or column.null_count:
        raise ValueError(
            f"its column {name} is of the type {column.type} with {column.null_count} nulls, instead of {kind} without "
            "nulls"
        )
    if pa.types.is_timestamp(kind):
        column = column.combine_chunks().view(pa.int64())
    values: npt.NDArray[Any] = column.to_numpy()
    return values if values.flags.writeable else values.copy()


def numbers_in(table: pa.Table, name: str, least: int | None = None, below: int | None = None) -> Int64s:
    """A column of int64 without nulls.

    Args:
        table: the table with the column.
        name: of the column.
        least, below: the minimum (inclusive) and maximum (exclusive).

    Raises:
        KeyError: there is no such column.
        ValueError: it has another type, a null, or a number out of range.

    Example:
        >>> numbers_in(pa.table({"row": [0, 4]}), "row", 0, 4)
        Traceback (most recent call last):
        ...
        ValueError: its column row has the number 4, which is not from 0 to 3
    """
    numbers: Int64s = column_in(table, name, pa.int64())
    if len(numbers):
        lowest, highest = int(numbers.min()), int(numbers.max())
        if least is not None and lowest < least:
            raise ValueError(f"its column {name} has the number {lowest}, below the minimum of {least}")
        if below is not None and highest >= below:
            raise ValueError(f"its column {name} has the number {highest}, which is not from {least} to {below - 1}")
    return numbers


def codes_in(index: KeyIndex, keys: pa.RecordBatch) -> Int64s:
    """The codes of keys from a snapshot, see `fitting_keys`."""
    return index.codes(fitting_keys(index, keys))


def fitting_keys(index: KeyIndex, keys: pa.RecordBatch) -> pa.RecordBatch:
    """The keys from a snapshot, under the names that the operator uses.

    Raises:
        ChangedTypeError: they have other types than the operator's, so their hashes differ.
    """
    for field in keys.schema:
        mine = index.kind_of(field.name)
        if not _hash_alike(field.type, mine):
            raise ChangedTypeError(f"key:{field.name}", field.type, mine)
    return keys


def _hash_alike(one: pa.DataType, other: pa.DataType) -> bool:
    texts = is_text(one) and is_text(other)
    return one == other or texts or (pa.types.is_integer(one) and pa.types.is_integer(other))
