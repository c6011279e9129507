"""PostgreSQL, from the package ``adbc-driver-postgresql``: rows go through binary COPY."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, ClassVar

import pyarrow as pa

from workbench.clock import rest
from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded, family_of
from workbench.connectors.sql.database import quoted, quoted_list
from workbench.connectors.sql.kept import KEPT
from workbench.packages import needed

_ROWS = "workbench_rows"
_TURN = 0x776F726B62  # the key of the advisory lock: transactions of sinks take turns, as in a file
_LOOK_AGAIN_S = 0.1
_LIMITS = {"connect_timeout": 5, "tcp_user_timeout": 10_000}
"""Seconds to connect, and milliseconds until a connection whose other end does not answer any more is lost."""
_UNFIT = "42"
"""SQLSTATE class of statements that do not fit the tables."""
_PLACE = re.compile(r"\?")


class PostgreSQL:
    """Types: as Arrow's; instants are in UTC and microseconds, and unsigned integers have the next larger type."""

    name: ClassVar[str] = "postgresql"
    stores_nan: ClassVar[bool] = True

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The base class of its exceptions."""
        return (_driver().Error,)

    def is_unfit(self, error: Exception) -> bool:
        """Undefined tables and columns, other types, no unique index."""
        return str(getattr(error, "sqlstate", None) or "").startswith(_UNFIT)

    def rounds(self, kind: pa.DataType) -> bool:
        """Times in nanoseconds, which are stored in microseconds."""
        return pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns"

    def column_type(self, kind: pa.DataType) -> str | None:
        """PostgreSQL's name for the type."""
        kind = _stored(decoded(kind))
        if (exact := _EXACT.get(kind)) is not None:
            return exact
        if pa.types.is_decimal(kind):
            return f"NUMERIC({kind.precision}, {max(kind.scale, 0)})" if 0 <= kind.scale <= kind.precision else None
        if pa.types.is_timestamp(kind):  # with a time zone; those without are handled above
            return "TIMESTAMPTZ"
        return family_of(kind, _FAMILIES)

    def check(self) -> None:
        """Raise an error if the package is missing.

        Raises:
            MissingPackageError: it is not installed.
        """
        _driver()

    @contextmanager
    def open(self, url: str, wait_s: float) -> Iterator[Connection]:
        """A transaction: the only one of the workbench's sinks in this database."""
        with self._begun(url, wait_s) as connection, connection.cursor() as cursor:
            own = Connection(cursor)
            own.execute(f"SET LOCAL lock_timeout = {max(1, int(wait_s * 1_000))}")
            own.execute("SET LOCAL idle_in_transaction_session_timeout = '60s'")  # of a process that has stalled
            own.execute(f"SELECT pg_advisory_xact_lock({_TURN})")
            own.fetchall()
            yield own
            own.execute("COMMIT")

    @contextmanager
    def _begun(self, url: str, wait_s: float) -> Iterator[Any]:
        """A connection at the begin of a transaction: the one that is kept, unless the server has closed it meanwhile,
        or a new one. One in which something has failed is closed, which rolls back."""
        connection = KEPT.take(url)
        try:
            if connection is not None and not self._begins(connection):
                self._close(connection)
                connection = None
            if connection is None:
                connection = connected(url, wait_s)
                _statement(connection, "BEGIN")
            yield connection
        except BaseException:
            if connection is not None:
                self._close(connection)
            raise
        if not KEPT.give(url, connection):
            self._close(connection)

    def _begins(self, connection: Any) -> bool:
        try:
            _statement(connection, "BEGIN")
        except self.errors:
            return False
        return True

    def _close(self, connection: Any) -> None:
        with suppress(*self.errors):
            connection.close()

    def has_table(self, connection: Any, table: str) -> bool:
        """Whether there is a table of this name in the search path."""
        connection.execute("SELECT to_regclass(?)::text", (quoted(table),))
        return connection.fetchall()[0][0] is not None

    def insert(self, connection: Connection, table: str, rows: pa.Table, conflict: str) -> None:
        """All at once: directly, or through a temporary table where rows replace others or the types differ."""
        rows = _storable(rows)
        names = quoted_list(rows.column_names)
        if not conflict and _has_types(connection, table, rows.schema):
            connection.cursor.adbc_ingest(table, rows, mode="append")
            return
        connection.execute(f"CREATE TEMPORARY TABLE {_ROWS} ON COMMIT DROP AS SELECT {_typed(rows.schema)} WHERE FALSE")
        connection.cursor.adbc_ingest(_ROWS, rows, mode="append", temporary=True)
        connection.execute(f"INSERT INTO {quoted(table)} ({names}) SELECT {names} FROM {_ROWS} {conflict}")
        connection.execute(f"DROP TABLE {_ROWS}")


class Connection:
    """A cursor that takes ``?`` for a parameter, as the other databases do.

    Args:
        cursor: in a transaction.
    """

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> Connection:
        """Execute one statement; its rows are for `fetchall`."""
        if parameters:
            self.cursor.execute(numbered(statement), tuple(parameters))
        else:
            self.cursor.execute(statement)
        return self

    @property
    def description(self) -> Any:
        """Of the result's columns, as in the DB-API."""
        return self.cursor.description

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self.cursor.fetchone()

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        rows: list[tuple[Any, ...]] = self.cursor.fetchall()
        return rows


def numbered(statement: str) -> str:
    """A statement with the placeholders of PostgreSQL.

    Example:
        >>> print(numbered("DELETE FROM counts WHERE k = ? AND n < ?"))
        DELETE FROM counts WHERE k = $1 AND n < $2
    """
    numbers = count(1)
    return _PLACE.sub(lambda _: f"${next(numbers)}", statement)


_EXACT = {
    pa.bool_(): "BOOLEAN",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE PRECISION",
    pa.timestamp("us"): "TIMESTAMP",
}
_FAMILIES = {
    "TEXT": TEXT,
    "BYTEA": BYTES,
    "DATE": (pa.types.is_date,),
    "TIME": (pa.types.is_time,),
    "INTERVAL": (pa.types.is_duration,),
}
_STORED = {
    pa.int8(): pa.int16(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.float16(): pa.float32(),
    pa.null(): pa.int32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
}


def _stored(kind: pa.DataType) -> pa.DataType:
    """The Arrow type whose values COPY takes."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return _STORED.get(kind, kind)


def _storable(rows: pa.Table) -> pa.Table:
    columns = []
    for column in rows.columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(decoded(column.type))
        columns.append(column.cast(_stored(column.type), safe=not pa.types.is_temporal(column.type)))
    return pa.Table.from_arrays(columns, names=rows.column_names)


def _typed(schema: pa.Schema) -> str:
    columns = [f"NULL::{PostgreSQL().column_type(field.type)} AS {quoted(field.name)}" for field in schema]
    return ", ".join(columns)


def _has_types(connection: Connection, table: str, schema: pa.Schema) -> bool:
    """Whether the columns of the table have the types that COPY sends; it converts nothing."""
    names = quoted_list(schema.names)
    connection.execute(f"SELECT {names} FROM {quoted(table)} WHERE FALSE")
    found = connection.cursor.fetch_arrow_table().schema
    kinds = zip(found.types, schema.types, strict=True)
    return all(PostgreSQL().column_type(theirs) == PostgreSQL().column_type(ours) for theirs, ours in kinds)


def connected(url: str, wait_s: float) -> Any:
    """A connection, as soon as the server accepts one; each statement is a transaction, unless one begins."""
    limits = "&".join(f"{name}={limit}" for name, limit in _LIMITS.items() if name not in url)
    limited = f"{url}{'&' if '?' in url else '?'}{limits}"
    for left in range(int(wait_s / _LOOK_AGAIN_S), -1, -1):
        try:
            return _driver().connect(limited, autocommit=True)
        except _driver().OperationalError as error:
            if not left or not may_return(error):
                raise
        rest(_LOOK_AGAIN_S)
    raise AssertionError("the last attempt raises")


def may_return(error: Exception) -> bool:
    """Whether a connection failed because the server is away or starts."""
    said = str(error)
    return any(
        words in said
        for words in (
            *("refused", "No such file", "starting up", "shutting down", "terminat", "closed the connection"),
            *("no connection", "not open"),
        )
    )


def _statement(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _driver() -> Any:
    return needed("adbc_driver_postgresql.dbapi", "writing to PostgreSQL")
