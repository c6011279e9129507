"""SQLite, from the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded, family_of
from workbench.connectors.sql.database import quoted, quoted_list


class SQLite:
    """Types: dates, instants and decimals, which SQLite lacks, are text that sorts correctly and is read back
    unchanged.

    Instants with a time zone are written in UTC with a ``Z``; durations are microseconds. SQLite stores NaN as null.
    """

    name: ClassVar[str] = "sqlite"
    stores_nan: ClassVar[bool] = False
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def is_unfit(self, error: Exception) -> bool:
        """The error code of statements that are not valid; a locked file or a full disk has another."""
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR

    def rounds(self, kind: pa.DataType) -> bool:
        """Durations, which are stored in microseconds."""
        return bool(pa.types.is_duration(kind) and kind.unit == "ns")

    def column_type(self, kind: pa.DataType) -> str | None:
        """One of SQLite's storage classes."""
        kind = decoded(kind)
        if kind in (pa.uint64(), pa.float16()):  # beyond its integers; unknown to its driver
            return None
        return family_of(kind, _TYPES)

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

    def has_table(self, connection: sqlite3.Connection, table: str) -> bool:
        """As its catalog says."""
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
        return bool(found.fetchall())

    def insert(self, connection: sqlite3.Connection, table: str, rows: pa.Table, conflict: str) -> None:
        """Row by row, in C."""
        marks = ", ".join("?" * rows.num_columns)
        columns = [_plain(column).to_pylist() for column in rows.columns]
        connection.executemany(
            f"INSERT INTO {quoted(table)} ({quoted_list(rows.column_names)}) VALUES ({marks}) {conflict}",
            zip(*columns, strict=True),
        )


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


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as values that SQLite's driver accepts."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return column.cast(pa.timestamp(kind.unit, "UTC")).cast(pa.string())
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        return column.cast(pa.string())
    if pa.types.is_duration(kind):
        return column.cast(pa.duration("us"), safe=False).cast(pa.int64())
    return column.cast(pa.string()) if pa.types.is_decimal(kind) else column
