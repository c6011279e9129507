"""Looks up rows of a table of PostgreSQL, SQLite or DuckDB."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from workbench.arguments import text_of
from workbench.connectors.columns.postgresql_columns import COLUMNS, SETTINGS, compared, fitted, selected
from workbench.connectors.contract.calls import Calls, RemoteRows
from workbench.connectors.contract.secrets import revealed_url
from workbench.connectors.sql.database import Database, DatabaseFile, quoted, quoted_list
from workbench.connectors.sql.duckdb import DuckDB
from workbench.connectors.sql.polled_table import place_of
from workbench.connectors.sql.postgresql import PostgreSQL
from workbench.connectors.sql.session import Session, fact_of, fixed, may_return
from workbench.connectors.sql.sink import database_at
from workbench.errors import PlanError, SettingError, SourceError
from workbench.expressions import ColumnName, column_names
from workbench.operators.functions.lookup_table import LookupTable, OpenTable
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.origin import caller

_CONNECT_S = 2
_BUSY_S = 10.0
"""The maximum time to wait for a file that another program has locked."""
_SILENT_S = 2.0
"""As for every session, but with the time that a second connection takes, less than the time-out of a look-up."""


@dataclass(frozen=True, init=False)
class SqlLookup(LookupTable):
    """Looks up rows in a database table, for `Stream.lookup_async`.

    Each subtask keeps as many connections to PostgreSQL or SQLite as it has pending calls. A DuckDB file is opened for
    each call, so that other programs can write to it in between. While a server is unreachable, or does not answer, a
    call is retried for 10 s, as a sink does.

    Source: Flink's lookup join.

    Args:
        url: ``postgresql://[user[:password]@]host[:port]/database``, ``sqlite:///path.db`` or ``duckdb:///path.db``;
            ``${NAME}`` in that of a server is an environment variable.
        table: its name.
        schema: names and types of the columns to add; values are converted to these types.
        key: the columns that identify a row, in the order of the stream's key columns.

    Raises:
        SettingError: an invalid URL or name.
        PlanError: the package adbc-driver-postgresql or duckdb is not installed.
        SourceError: while running: no connection, no such table, or several rows with a key.

    Example::

        customers = wb.SqlLookup("postgresql://localhost/shop", "customers", {"name": pa.string()}, key="id")
        orders.lookup_async(customers, key="customer", cache="10min")
    """

    url: str = field(repr=False)
    table: str
    schema: pa.Schema = field(repr=False)
    key: tuple[str, ...]

    def __init__(
        self, url: str, table: str, schema: SchemaLike, *, key: ColumnName | Sequence[ColumnName] = "id"
    ) -> None:
        database_at(url)
        if not text_of(table, "table", "customers"):
            raise SettingError("table is '': write the name of a table, such as 'customers'")
        values = {
            "url": url,
            "table": table,
            "schema": declared_schema(schema, "the look-up", caller()),
            "key": column_names(key, "key"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if not self.key:
            raise SettingError("key is empty: name the columns that identify a row, such as 'id'")
        self.database.check()

    @cached_property
    def database(self) -> Database:
        """The database."""
        return database_at(self.url)

    def describe(self) -> str:
        return f"{self.table} of {self.database.url} by {', '.join(self.key)}"

    def check_keys(self, count: int) -> None:
        """Check the number of key columns.

        Args:
            count: of the key columns of the stream.

        Raises:
            PlanError: it differs from that of the table.
        """
        if count != len(self.key):
            raise PlanError(
                f"the table {self.table!r} is looked up by {', '.join(self.key)}, and {count} key columns are given"
            )

    def open(self) -> OpenTable:
        return FileRows(self, self.database) if isinstance(self.database, DatabaseFile) else SqlRows(self)


class SqlRows(RemoteRows):
    """Connections that no call uses wait in a list."""

    def __init__(self, lookup: SqlLookup) -> None:
        self._lookup = lookup
        super().__init__(Calls(lookup.database.url, PostgreSQL().errors, self._lost))
        self._idle: list[Any] = []
        self._closed = False

    def find(self, *key: Any) -> Mapping[str, Any] | None:
        try:
            found = self.calls.repeated(lambda: self._answer(key))
        except PostgreSQL().errors as error:
            raise _error(self._lookup, error) from error
        return _row(self._lookup, found, key)

    def close(self) -> None:
        self._closed = True
        self._disconnect()

    def _disconnect(self) -> None:
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()

    def _lost(self, error: Exception) -> str:
        """See `Calls`: the connections that wait are lost, too."""
        if not may_return(error):
            return ""
        self._disconnect()
        return fact_of(error, self._lookup.url)

    def _answer(self, key: Sequence[Any]) -> pa.Table:
        try:
            session = self._idle.pop()
        except IndexError:
            session = Session(revealed_url(self._lookup.url), self.calls.job, _CONNECT_S, _SILENT_S)
        try:
            session.statement = session.statement or self._statement(session)
            found = session.query(session.statement, key)
        except BaseException:
            session.close()
            raise
        self._idle.append(session)
        if self._closed:
            self._disconnect()
        return found

    def _statement(self, session: Session) -> str:
        lookup = self._lookup
        session.query(SETTINGS)
        place = place_of(session.query, lookup.table)
        if place is None:
            raise SourceError(
                f"cannot look up rows in {lookup.table!r} of {lookup.database.url}: it does not exist; check its name, "
                "or create it first"
            )
        columns = session.query(COLUMNS, (place,))
        kinds = {row["name"]: (row["type"], row["class"]) for row in columns.to_pylist()}
        where = " AND ".join(
            f"{quoted(name)} = {compared(*kinds[name], f'${at}') if name in kinds else f'${at}'}"
            for at, name in enumerate(lookup.key, 1)
        )
        return f"SELECT {selected(columns, lookup.schema, lookup.table)} FROM {place} WHERE {where} LIMIT 2"


class FileRows(OpenTable):
    """Rows of an SQLite or DuckDB file; connections to SQLite that no call uses wait in a list."""

    def __init__(self, lookup: SqlLookup, file: DatabaseFile) -> None:
        self._lookup = lookup
        self._file = file
        self._query = _query(lookup)
        self._idle: list[sqlite3.Connection] = []

    def find(self, *key: Any) -> Mapping[str, Any] | None:
        try:
            if not self._file.exists():
                raise SourceError(f"{self._file.path} does not exist: check the path of {self._file.url}")
            rows = self._of_duckdb(key) if isinstance(self._file.engine, DuckDB) else self._of_sqlite(key)
        except self._file.engine.errors as error:
            raise _error(self._lookup, error) from error
        names = self._lookup.schema.names
        columns = [pa.array([row[at] for row in rows]) for at in range(len(names))]
        return _row(self._lookup, pa.table(columns, names=names), key)

    def close(self) -> None:
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()

    def _of_duckdb(self, key: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._file.engine.open(self._file.path, _BUSY_S) as connection:
            rows: list[tuple[Any, ...]] = connection.execute(self._query, list(key)).fetchall()
            return rows

    def _of_sqlite(self, key: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            connection = self._idle.pop()
        except IndexError:
            address = f"{self._file.path.as_uri()}?mode=ro"
            connection = sqlite3.connect(address, uri=True, timeout=_BUSY_S, check_same_thread=False)
        try:
            rows = connection.execute(self._query, key).fetchall()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return rows


def _query(lookup: SqlLookup) -> str:
    where = " AND ".join(f"{quoted(name)} = ?" for name in lookup.key)
    return f"SELECT {quoted_list(lookup.schema.names)} FROM {quoted(lookup.table)} WHERE {where} LIMIT 2"


def _row(lookup: SqlLookup, found: pa.Table, key: Sequence[Any]) -> Mapping[str, Any] | None:
    if found.num_rows > 1:
        pairs = ", ".join(f"{name} = {value!r}" for name, value in zip(lookup.key, key, strict=True))
        raise SourceError(f"the table {lookup.table!r} has several rows with {pairs}: look up by a unique key")
    pairs = ", ".join(f"{name} {value!r}" for name, value in zip(lookup.key, key, strict=True))
    rows = fitted(found, lookup.schema, lambda _: f"{lookup.table}, {pairs}").to_pylist()
    return rows[0] if rows else None


def _error(lookup: SqlLookup, error: Exception) -> SourceError:
    fact = fact_of(error, lookup.url)
    return SourceError(f"cannot look up rows in {lookup.table!r} of {lookup.database.url}: {fixed(fact)}")
