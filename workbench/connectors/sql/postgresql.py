"""PostgreSQL, from the package ``adbc-driver-postgresql``: rows go through binary COPY."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import pyarrow as pa

from workbench.connectors.columns.exact import changed, stored_as
from workbench.connectors.columns.postgresql_columns import COLUMNS
from workbench.connectors.columns.postgresql_stores import StoredColumn
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded, family_of
from workbench.connectors.sql.kept import KEPT
from workbench.connectors.sql.session import ServerHangsError, Session, connected, driver_error
from workbench.connectors.sql.table_name import TableName, quoted, quoted_list

_ROWS = "workbench_rows"
_TURN = 0x776F726B62  # the key of the advisory lock: transactions of sinks take turns, as in a file
_UNFIT = "42"
"""SQLSTATE class of statements that do not fit the tables."""


class PostgreSQL:
    """Types: as Arrow's; instants are in UTC and microseconds, and unsigned integers have the next larger type."""

    name: ClassVar[str] = "postgresql"
    schema: ClassVar[str] = "public"
    temporary: ClassVar[str] = "pg_temp"

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The base class of its driver's exceptions, and that of a server that hangs."""
        return driver_error(), ServerHangsError

    def is_unfit(self, error: Exception) -> bool:
        """Undefined tables and columns, other types, no unique index."""
        return str(getattr(error, "sqlstate", None) or "").startswith(_UNFIT)

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
        driver_error()

    @contextmanager
    def open(self, url: str, wait_s: float, attempts: Attempts | None = None) -> Iterator[Session]:
        """A transaction: the only one of the workbench's sinks in this database.

        Args:
            url: of the database.
            wait_s: how long to wait for other transactions and, without `attempts`, for the server.
            attempts: of the caller, which retries while the server is unreachable.
        """
        with self._begun(url, wait_s, attempts) as session:
            session.execute(f"SET LOCAL lock_timeout = {max(1, int(wait_s * 1_000))}")
            session.execute("SET LOCAL idle_in_transaction_session_timeout = '60s'")  # of a process that has stalled
            session.execute(f"SELECT pg_advisory_xact_lock({_TURN})")
            session.fetchall()
            yield session
            session.execute("COMMIT")

    @contextmanager
    def _begun(self, url: str, wait_s: float, attempts: Attempts | None) -> Iterator[Session]:
        """A connection at the begin of a transaction: the one that is kept, unless the server has closed it meanwhile,
        or a new one. One in which something has failed is closed, which rolls back."""
        own = Attempts(wait_s) if attempts is None else attempts
        session: Session | None = KEPT.take(url)
        try:
            if session is not None and not self._begins(session, own):
                session.close()
                session = None
            if session is None:
                session = connected(url, own) if attempts is None else Session(url, own)
                session.execute("BEGIN")
            yield session
        except BaseException:
            if session is not None:
                session.close()
            raise
        if not KEPT.give(url, session):
            session.close()

    def _begins(self, session: Session, attempts: Attempts) -> bool:
        session.attempts = attempts
        try:
            session.execute("BEGIN")
        except driver_error():
            return False
        return True

    def has_table(self, connection: Session, table: TableName) -> bool:
        """Whether there is a table of this name, without a schema in the search path."""
        connection.execute("SELECT to_regclass(?)::text", (table.sql,))
        return connection.fetchall()[0][0] is not None

    def insert(self, connection: Session, table: TableName, rows: pa.Table, conflict: str) -> None:
        """All at once: directly, or through a temporary table where rows replace others or the types differ."""
        rows = _storable(rows)
        names = quoted_list(rows.column_names)
        columns = _stored_columns(connection, table, rows.schema)
        if not conflict and all(column.is_copied for column in columns):
            connection.ingest(table.name, rows, schema=table.schema)
            return
        connection.execute(f"CREATE TEMPORARY TABLE {_ROWS} ON COMMIT DROP AS SELECT {_typed(rows.schema)} WHERE FALSE")
        connection.ingest(_ROWS, rows, temporary=True)
        if not all(column.is_copied for column in columns):
            connection.execute("SET LOCAL TimeZone = 'UTC'")
            _check_values(connection, table, columns)
        values = ", ".join(column.value for column in columns)
        connection.execute(f"INSERT INTO {table.sql} ({names}) SELECT {values} FROM {_ROWS} {conflict}")
        connection.execute(f"DROP TABLE {_ROWS}")


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
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(decoded(column.type))
        columns.append(stored_as(name, column, _stored(column.type), "PostgreSQL"))
    return pa.Table.from_arrays(columns, names=rows.column_names)


def _typed(schema: pa.Schema) -> str:
    columns = [f"NULL::{PostgreSQL().column_type(field.type)} AS {quoted(field.name)}" for field in schema]
    return ", ".join(columns)


def _stored_columns(connection: Session, table: TableName, schema: pa.Schema) -> list[StoredColumn]:
    """The columns of the table that the rows go to; one that it does not have is left to the server's own error."""
    found = {row["name"]: row for row in connection.query(COLUMNS, (table.sql,)).to_pylist()}
    columns = []
    for field in schema:
        given = PostgreSQL().column_type(field.type) or ""
        row = found.get(field.name, {"type": given, "declared": ""})
        columns.append(StoredColumn(quoted(field.name), given, row["type"], row["declared"]))
    return columns


def _check_values(connection: Session, table: TableName, columns: Sequence[StoredColumn]) -> None:
    """Reject rows with a value that the table would change.

    Raises:
        SinkError: names the column, its type and the value.
    """
    for column in columns:
        if not column.declared or not (change := column.change):
            continue
        connection.execute(f"SELECT {column.name}::text FROM {_ROWS} WHERE {change} LIMIT 1")
        for (value,) in connection.fetchall():
            raise changed(column.name, table.name, column.declared, value, column.given)
