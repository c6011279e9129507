"""DuckDB, from the package ``duckdb``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from workbench.clock import rest
from workbench.connectors.columns.duckdb_columns import duckdb_change, expression_of
from workbench.connectors.columns.exact import changed, stored_as
from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded, family_of
from workbench.connectors.sql.database import is_path
from workbench.connectors.sql.table_name import TableName, quoted, quoted_list
from workbench.errors import PlanError, SinkError, SourceError

_ROWS = "workbench_rows"
_LOOK_AGAIN_S = 0.02
_LOSES_COMMITS = 2
"""The first version of which two processes that open a new file in turn lost transactions that had been committed."""


class DuckDB:
    """Types: the same as Arrow's, with instants in UTC and microseconds; inserts whole Arrow tables at once."""

    name: ClassVar[str] = "duckdb"
    schema: ClassVar[str] = "main"
    temporary: ClassVar[str] = "temp"

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The base class of its exceptions."""
        return (_package().Error,)

    def is_unfit(self, error: Exception) -> bool:
        """The exceptions for names that do not exist."""
        return isinstance(error, _package().ProgrammingError)

    def column_type(self, kind: pa.DataType) -> str | None:
        """DuckDB's name for the type."""
        kind = _stored(decoded(kind))
        if (exact := _EXACT.get(kind)) is not None:
            return exact
        if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= _DIGITS_MAX:
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
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("BEGIN TRANSACTION")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()  # rolls back uncommitted changes

    def has_table(self, connection: Any, table: TableName) -> bool:
        """As its catalog says."""
        found = connection.execute(
            "SELECT 1 FROM information_schema.tables WHERE table_catalog = current_database() "
            "AND lower(table_schema) = lower(?) AND lower(table_name) = lower(?)",
            (table.schema or self.schema, table.name),
        )
        return bool(found.fetchall())

    def insert(self, connection: Any, table: TableName, rows: pa.Table, conflict: str) -> None:
        """All at once, from Arrow's memory; a value that the table's columns would change is looked for before."""
        names = quoted_list(rows.column_names)
        connection.register(_ROWS, _storable(rows))
        given = [self.column_type(kind) or "" for kind in rows.schema.types]
        columns = connection.sql(f"SELECT {names} FROM {table.sql} LIMIT 0").types
        same = connection.sql(f"SELECT {', '.join(f'NULL::{kind}' for kind in given)}").types
        for name, kind, its, declared in zip(rows.column_names, given, same, columns, strict=True):
            if its != declared and (change := duckdb_change(quoted(name), kind, str(declared))):
                found = connection.execute(f"SELECT {quoted(name)}::VARCHAR FROM {_ROWS} WHERE {change} LIMIT 1")
                for (value,) in found.fetchall():
                    raise changed(quoted(name), table.name, str(declared), value, kind)
        connection.execute(f"INSERT INTO {table.sql} ({names}) SELECT {names} FROM {_ROWS} {conflict}")
        connection.unregister(_ROWS)


def duckdb_selected(connection: Any, place: str, schema: pa.Schema, table: str) -> str:
    """The list of a ``SELECT`` that gives the declared columns of a table.

    Args:
        connection: to DuckDB.
        place: the table, in SQL.
        schema: the declared columns.
        table: its name, for messages.

    Raises:
        SourceError: a column cannot be read exactly as its declared type.
    """
    found = connection.sql(f"SELECT {quoted_list(schema.names)} FROM {place} LIMIT 0")
    given = found.to_arrow_table().schema.types
    expressions = []
    for field, kind, own in zip(schema, found.types, given, strict=True):
        name = quoted(field.name)
        try:
            expressions.append(f"{expression_of(field.name, str(kind), own, field.type, name)} AS {name}")
        except SourceError as error:
            raise SourceError(f"cannot read {table!r}: {error.message}") from None
    return ", ".join(expressions)


def duckdb_key(value: Any) -> tuple[str, Any]:
    """The form of a value that a column is compared with, in SQL, and its parameter.

    The driver makes days and microseconds of a duration, which may have two signs and then equal no other form.

    Example:
        >>> duckdb_key(dt.timedelta(days=-1, microseconds=1)), duckdb_key("JFK")
        (('to_microseconds(?)', -86399999999), ('?', 'JFK'))
    """
    if isinstance(value, dt.timedelta):
        return "to_microseconds(?)", value // dt.timedelta(microseconds=1)
    return "?", value


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


_DIGITS_MAX = 38
_PLAIN = {
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.time64("ns"): pa.time64("us"),
    pa.time32("s"): pa.time64("us"),
    pa.time32("ms"): pa.time64("us"),
}


def _stored(kind: pa.DataType) -> pa.DataType:
    """The Arrow type whose values DuckDB takes as they are."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("us", "UTC")
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_decimal256(kind) and kind.precision <= _DIGITS_MAX:
        return pa.decimal128(kind.precision, kind.scale)
    return _PLAIN.get(kind, kind)


def _storable(rows: pa.Table) -> pa.Table:
    columns = [
        stored_as(name, column, column.type if pa.types.is_dictionary(column.type) else _stored(column.type), "DuckDB")
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=rows.column_names)


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
        package = import_module("duckdb")
    except ImportError:
        raise PlanError(
            "writing to DuckDB needs the package duckdb: run 'pip install \"streaming-workbench[sql]\"', "
            "or write to sqlite:///path.db"
        ) from None
    if int(package.__version__.partition(".")[0]) >= _LOSES_COMMITS:
        raise PlanError(
            f"duckdb {package.__version__} can lose committed rows while two processes open one file in turn: "
            "run 'pip install \"duckdb<2\"', or use sqlite:///path.db"
        )
    return package
