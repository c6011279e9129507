"""Columns of a snapshot under the names of the user's program, and those whose type the program has changed since.

A changed program is no damage: a `ChangedTypeError` becomes a `CheckpointError` that says what to do, and not a
`CorruptCheckpointError` (``runtime/tasks/states.py``).
"""

from __future__ import annotations

import pyarrow as pa

from workbench.state.key_columns import is_text

_CELL = "cell:"
_USERS = ("key:", "column:", "held:", "record:")
"""Prefixes of columns of a snapshot that hold values of the user's column."""


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


_ALIKE = (_is_number, pa.types.is_timestamp, is_text)


class ChangedTypeError(ValueError):
    """A column has another type in the program than it had when the snapshot was taken.

    Args:
        column: its name in the snapshot.
        was, now: the two types.
    """

    def __init__(self, column: str, was: pa.DataType, now: pa.DataType) -> None:
        super().__init__(f"{as_written(column)} was {was} in it and is {now} in this program")


def as_written(column: str) -> str:
    """A column of a snapshot as the user's program has it.

    Example:
        >>> as_written("cell:count(price)"), as_written("cell:count()"), as_written("key:origin")
        ('count("price")', 'count()', '"origin"')
    """
    if column.startswith(_CELL):
        function, _, rest = column.removeprefix(_CELL).partition("(")
        return f'{function}("{rest[:-1]}")' if rest != ")" else f"{function}()"
    for prefix in _USERS:
        if column.startswith(prefix):
            return f'"{column.removeprefix(prefix)}"'
    return column


def is_cell(column: str) -> bool:
    """Whether a column of a snapshot has the numbers that an aggregate is computed from."""
    return column.startswith(_CELL)


def as_type(column: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.Array:
    """A column of the user's from a snapshot, in one chunk and of the type that it has now.

    Raises:
        ChangedTypeError: it is of another kind (numbers, times, texts), or its values do not exist in that type.

    Example:
        >>> as_type(pa.chunked_array([[7]]), "column:n", pa.float64()).to_pylist()
        [7.0]
    """
    whole = column.combine_chunks()
    if whole.type == kind:
        return whole
    if not any(alike(whole.type) and alike(kind) for alike in _ALIKE):
        raise ChangedTypeError(name, column.type, kind)
    try:
        return whole.cast(kind)
    except pa.ArrowException as error:
        raise ChangedTypeError(name, column.type, kind) from error
