"""DuckDB, from the package ``duckdb``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from workbench.clock import rest
from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded, family_of
from workbench.connectors.sql.database import is_path, quoted, quoted_list
from workbench.errors import PlanError, SinkError

_ROWS = "workbench_rows"
_LOOK_AGAIN_S = 0.02


class DuckDB:
    """Types: the same as Arrow's, with instants in UTC and microseconds; inserts whole Arrow tables at once."""

    name: ClassVar[str] = "duckdb"
    stores_nan: ClassVar[bool] = True

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The base class of its exceptions."""
        return (_package().Error,)

    def is_unfit(self, error: Exception) -> bool:
        """The exceptions for names that do not exist."""
        return isinstance(error, _package().ProgrammingError)

    def rounds(self, kind: pa.DataType) -> bool:
        """Types stored in microseconds: all times in nanoseconds except instants without a time zone."""
        return pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns" and kind != pa.timestamp("ns")

    def column_type(self, kind: pa.DataType) -> str | None:
        """DuckDB's name for the type."""
        kind = decoded(kind)
        if (exact := _EXACT.get(kind)) is not None:
            return exact
        if pa.types.is_decimal(kind) and kind.precision <= 38:
            return f"DECIMAL({kind.precision}, {kind.scale})"
        if pa.types.is_timestamp(kind):  # with a time zone; those without are handled above
            return "TIMESTAMPTZ"
        return family_of(kind, _FAMILIES)

    def check(self) -> None:
        """Raise an error if the package is missing.

        Raises:
            PlanError: it is not installed.
        """
        _package()

    @contextmanager
    def open(self, path: Path, wait_s: float) -> Iterator[Any]:
        """A transaction; the file is released at its end."""
        if not is_path(str(path)):
            raise SinkError(
                f"DuckDB cannot open {path}, which is not UTF-8: rename its folders, or choose another file"
            )
        connection = _connected(str(path), wait_s)
        try:
            connection.execute("BEGIN TRANSACTION")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()  # rolls back uncommitted changes

    def has_table(self, connection: Any, table: str) -> bool:
        """As its catalog says, a view named as that of SQLite."""
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
        return bool(found.fetchall())

    def insert(self, connection: Any, table: str, rows: pa.Table, conflict: str) -> None:
        """All at once, from Arrow's memory."""
        names = quoted_list(rows.column_names)
        connection.register(_ROWS, rows)
        connection.execute(f"INSERT INTO {quoted(table)} ({names}) SELECT {names} FROM {_ROWS} {conflict}")
        connection.unregister(_ROWS)


_EXACT = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.null(): "INTEGER",
    pa.timestamp("s"): "TIMESTAMP_S",
    pa.timestamp("ms"): "TIMESTAMP_MS",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("ns"): "TIMESTAMP_NS",
}
_FAMILIES = {
    "VARCHAR": TEXT,
    "BLOB": BYTES,
    "DATE": (pa.types.is_date,),
    "TIME": (pa.types.is_time,),
    "INTERVAL": (pa.types.is_duration,),
}


def _connected(path: str, wait_s: float) -> Any:
    """A connection, as soon as no other process has the file open."""
    for left in range(int(wait_s / _LOOK_AGAIN_S), -1, -1):
        try:
            return _package().connect(path)
        except _package().IOException as error:
            if "lock" not in str(error) or not left:
                raise
        rest(_LOOK_AGAIN_S)
    raise AssertionError("the last attempt raises")


def _package() -> Any:
    try:
        return import_module("duckdb")
    except ImportError:
        raise PlanError(
            "writing to DuckDB needs the package duckdb: run 'pip install \"streaming-workbench[sql]\"', "
            "or write to sqlite:///path.db"
        ) from None
