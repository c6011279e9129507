"""Values between a database, Arrow and Python: each is converted exactly, or refused with its column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.connectors.contract.plain_types import TEXT
from workbench.errors import SinkError, SourceError
from workbench.raised import first_line_of

_SHOWN = 200
_DAY_US = 86_400_000_000
_DAY_MIN = -2_440_588
"""PostgreSQL's first day, 4714-11-24 BC, since 1970; its driver puts an infinity before it."""


def fitted(rows: pa.Table, schema: pa.Schema, place: Callable[[int], str]) -> pa.Table:
    """The rows in the declared types.

    Args:
        rows: as the driver gives them.
        schema: the declared columns.
        place: describes row i, for messages.

    Raises:
        SourceError: a value that its type does not have; names the column and the value.
    """
    columns = []
    for field, column in zip(schema, rows.columns, strict=True):
        try:
            columns.append(_exactly(_finite(field.name, column, place), field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise SourceError(
                f"the column {field.name!r} does not fit {field.type} ({place(0)} or after it): "
                f"{first_line_of(error)}; declare other types"
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _exactly(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column as another type, where Arrow's cast rounds, has no conversion, or asks for more digits than needed.

    Raises:
        ValueError: a value would change.
    """
    given = column.type
    is_text = any(test(given) for test in TEXT)
    if pa.types.is_integer(given) and pa.types.is_decimal(kind):
        return column.cast(pa.string()).cast(kind)
    if pa.types.is_integer(given) and pa.types.is_duration(kind):
        return column.cast(pa.int64()).cast(pa.duration("us")).cast(kind)
    if is_text and pa.types.is_time(kind):
        times = pc.binary_join_element_wise("1970-01-01", column, " ")
        return times.cast(pa.timestamp(kind.unit)).cast(kind)
    found = column.cast(kind)
    if not pa.types.is_floating(kind):
        return found
    if pa.types.is_floating(given):
        same = pc.or_(pc.equal(found.cast(given), column), pc.is_nan(column))
        bad = pc.invert(same)
    elif is_text:
        bad = pc.and_(pc.is_inf(found), pc.match_substring_regex(column, "[0-9]"))
    else:
        return found
    if pc.any(bad).as_py():
        raise ValueError(f"{column[pc.index(bad, True).as_py()]} is not exactly a value of {kind}")
    return found


def _finite(name: str, column: pa.ChunkedArray, place: Callable[[int], str]) -> pa.ChunkedArray:
    """The column, unless it has a value that PostgreSQL has and Arrow has not."""
    kind = column.type
    if pa.types.is_date32(kind):
        bad = pc.less(column.cast(pa.int32()), _DAY_MIN)
    elif pa.types.is_timestamp(kind) and kind.unit == "us":
        bad = pc.less(column.cast(pa.int64()), _DAY_MIN * _DAY_US)
    elif pa.types.is_time64(kind) and kind.unit == "us":
        bad = pc.greater_equal(column.cast(pa.int64()), _DAY_US)
    else:
        return column.cast(kind.storage_type) if isinstance(kind, pa.BaseExtensionType) else column
    if pc.any(bad).as_py():
        row = pc.index(bad, True).as_py()
        value, fix = (
            ("24:00", "declare pyarrow.string()")
            if pa.types.is_time64(kind)
            else ("infinity, -infinity or a time after the year 294246", "declare pyarrow.string(), or store null")
        )
        raise SourceError(f"the column {name!r} has {value} ({place(row)}), which {kind} does not have: {fix}")
    return column


def python_row(rows: pa.Table, place: str) -> dict[str, Any]:
    """The only row of a table, as Python's values.

    Args:
        rows: a row.
        place: describes it, for messages.

    Raises:
        SourceError: a time that Python does not have, or has with less precision; names the column and the value.

    Example:
        >>> python_row(pa.table({"n": [1]}), "the row")
        {'n': 1}
    """
    found = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        try:
            [found[name]] = column.to_pylist()
            is_same = not pa.types.is_temporal(column.type) or column.equals(
                pa.chunked_array([pa.array([found[name]], column.type)])
            )
        except (ValueError, OverflowError, pa.ArrowInvalid):
            is_same = False
        if not is_same:
            raise SourceError(
                f"the column {name!r} has {shown(column[0])} ({place}), which a look-up cannot pass on as "
                f"{column.type}: Python's times end with the year 9999 and have microseconds; declare pyarrow.string()"
            )
    return found


def stored_as(name: str, column: pa.ChunkedArray, kind: pa.DataType, database: str) -> pa.ChunkedArray:
    """A column in the type that a database stores.

    Args:
        name: of the column.
        column: its values.
        kind: the type that is stored.
        database: its name, for messages.

    Raises:
        SinkError: a value would change; names the column and the value.

    Example:
        >>> stored_as("at", pa.chunked_array([pa.array([2_000], pa.duration("ns"))]), pa.duration("us"), "duckdb").type
        DurationType(duration[us])
    """
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        bad = next(value for value in column if not _casts(value, kind))
        raise refused(name, bad, f"{database} would change to {kind}", "CAST it before the sink") from error


def _casts(value: Any, kind: pa.DataType) -> bool:
    try:
        value.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def refused(name: str, value: Any, change: str, fix: str) -> SinkError:
    """The error for a value that a database would change.

    Args:
        name: of the column.
        value: an Arrow scalar.
        change: what the database does with it.
        fix: what helps.
    """
    return SinkError(f"the column {name!r} has {shown(value)} ({value.type}), which {change}: {fix}")


def changed(name: str, table: str, declared: str, value: object, given: str) -> SinkError:
    """The error for a value that a table with columns of other types would change.

    Args:
        name: of the column, in SQL.
        table: its name.
        declared: the type of the column.
        value: as text.
        given: the type of the rows.
    """
    return SinkError(
        f"the column {name} of the table {table!r} is {declared}, which would change the value "
        f"{str(value)[:_SHOWN]} ({given}): CAST it before the sink, or give the column a wider type"
    )


def shown(value: Any) -> str:
    """An Arrow scalar as text, also a time that Python does not have.

    Example:
        >>> shown(pa.scalar(253_402_300_800, pa.timestamp("s")))
        '10000-01-01 00:00:00'
    """
    if pa.types.is_duration(value.type):
        return f"{value.value} {value.type.unit}"
    try:
        text = value.cast(pa.string()).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        text = value
    return str(text)[:_SHOWN]
