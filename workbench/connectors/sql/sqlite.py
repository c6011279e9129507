"""SQLite, from the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from workbench.connectors.columns.exact import changed, refused, stored_as
from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded, family_of
from workbench.connectors.sql.table_name import TableName, quoted, quoted_list


class SQLite:
    """Types: dates, instants and decimals, which SQLite lacks, are text that sorts correctly and is read back
    unchanged.

    Instants with a time zone are written in UTC with a ``Z``; durations are microseconds. NaN, which SQLite stores as
    null, and times outside of the years 1 to 9999 are refused; -0.0 is stored as 0.0.
    """

    name: ClassVar[str] = "sqlite"
    schema: ClassVar[str] = "main"
    temporary: ClassVar[str] = "temp"
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def is_unfit(self, error: Exception) -> bool:
        """The error code of statements that are not valid; a locked file or a full disk has another."""
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR

    def column_type(self, kind: pa.DataType) -> str | None:
        """One of SQLite's storage classes."""
        kind = decoded(kind)
        return None if kind == pa.uint64() else family_of(kind, _TYPES)  # beyond its integers

    def check(self) -> None:
        """Always available."""

    @contextmanager
    def open(self, path: Path, wait_s: float) -> Iterator[sqlite3.Connection]:
        """A transaction that locks the database for writing from its start."""
        # Python's automatic transactions are switched off: they do not cover all statements.
        connection = sqlite3.connect(path, timeout=wait_s, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()  # rolls back uncommitted changes

    def has_table(self, connection: sqlite3.Connection, table: TableName) -> bool:
        """As its catalog says."""
        schema = table.schema or self.schema
        names = connection.execute("SELECT name FROM pragma_database_list").fetchall()
        if schema.lower() not in {name.lower() for (name,) in names}:
            return False
        catalog = f"{quoted(schema)}.sqlite_master"
        found = connection.execute(
            f"SELECT 1 FROM {catalog} WHERE type IN ('table', 'view') AND lower(name) = lower(?)", (table.name,)
        )
        return bool(found.fetchall())

    def insert(self, connection: sqlite3.Connection, table: TableName, rows: pa.Table, conflict: str) -> None:
        """Row by row, in C; through a temporary table where columns have other types, which would change values."""
        names = quoted_list(rows.column_names)
        columns = [_plain(name, column) for name, column in zip(rows.column_names, rows.columns, strict=True)]
        values = [column.to_pylist() for column in columns]
        into = f"INSERT INTO {table.sql} ({names})"
        marks = f"VALUES ({', '.join('?' * len(values))})"
        connection.execute(f"CREATE TEMPORARY TABLE {_ROWS} AS SELECT {names} FROM {table.sql} WHERE 1 = 0")
        found = connection.execute(f"SELECT type FROM pragma_table_info('{_ROWS}')").fetchall()
        kinds = [_AFFINITIES[self.column_type(kind) or ""] for kind in rows.schema.types]
        if [kind for (kind,) in found] == kinds:
            connection.executemany(f"{into} {marks} {conflict}", zip(*values, strict=True))
        else:
            connection.executemany(f"INSERT INTO temp.{_ROWS} {marks}", zip(*values, strict=True))
            stored = connection.execute(f"SELECT * FROM temp.{_ROWS} ORDER BY rowid").fetchall()
            _check(table, rows, values, list(zip(*stored, strict=True)), [kind for (kind,) in found])
            connection.execute(f"{into} SELECT * FROM temp.{_ROWS} WHERE true ORDER BY rowid {conflict}")
        connection.execute(f"DROP TABLE temp.{_ROWS}")


_ROWS = "workbench_rows"
_AFFINITIES = {"INTEGER": "INT", "REAL": "REAL", "TEXT": "TEXT", "BLOB": "", "": ""}
"""By type of a definition: what SQLite calls it in a table that copies a column."""
_TYPES = {
    "INTEGER": (pa.types.is_integer, pa.types.is_boolean, pa.types.is_duration),
    "REAL": (pa.types.is_floating,),
    "TEXT": (
        *TEXT,
        pa.types.is_date,
        pa.types.is_time,
        pa.types.is_timestamp,
        pa.types.is_decimal,
        pa.types.is_null,
    ),
    "BLOB": BYTES,
}


def _plain(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as values that SQLite's driver accepts.

    Raises:
        SinkError: a value that SQLite would change, or whose text could not be read back.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_floating(kind):
        nan = pc.is_nan(column)
        if pc.any(nan).as_py():
            raise refused(name, column[pc.index(nan, True).as_py()], "SQLite would store as null", _NO_NAN)
        return column.cast(pa.float64())
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        kind = kind if pa.types.is_date(kind) or kind.tz is None else pa.timestamp(kind.unit, "UTC")
        text = column.cast(kind).cast(pa.string())
        odd = pc.invert(pc.match_substring_regex(text, _DATED))
        if pc.any(odd).as_py():
            value = column[pc.index(odd, True).as_py()]
            raise refused(name, value, "is outside of SQLite's years, 1 to 9999", _NO_DATE)
        return text
    if pa.types.is_duration(kind):
        return stored_as(name, column, pa.duration("us"), "SQLite").cast(pa.int64())
    return column.cast(pa.string()) if pa.types.is_decimal(kind) or pa.types.is_time(kind) else column


_DATED = "^(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-"
_NO_NAN = "replace it before the sink, as with nullif or nanvl"
_NO_DATE = "replace it before the sink, or CAST it to an integer"


def _check(
    table: TableName, rows: pa.Table, given: Sequence[Sequence[Any]], stored: Sequence[Sequence[Any]], kinds: list[str]
) -> None:
    """Reject rows with a value that a column of the table has changed.

    Raises:
        SinkError: names the column, its type and the value.
    """
    for at, found in enumerate(stored):
        for value, kept in zip(given[at], found, strict=True):
            if not _is_kept(value, kept, rows.schema.types[at]):
                name = rows.column_names[at]
                raise changed(quoted(name), table.name, kinds[at] or "BLOB", value, str(rows.schema.types[at]))


def _is_kept(value: Any, kept: Any, kind: pa.DataType) -> bool:
    """Whether a value has the same meaning as it was given and as SQLite has stored it."""
    if type(value) is type(kept) or (isinstance(value, int | float) and isinstance(kept, int | float)):
        return bool(value == kept)
    if isinstance(kept, str):
        return isinstance(value, int | float) and not isinstance(value, bool) and str(value) == kept
    if isinstance(value, str) and isinstance(kept, int | float):
        return Decimal(value) == Decimal(kept) if pa.types.is_decimal(decoded(kind)) else value == str(kept)
    return False
