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
from workbench.connectors.columns.exact import fitted, python_row
from workbench.connectors.columns.postgresql_columns import COLUMNS, SETTINGS, compared, selected
from workbench.connectors.columns.sqlite_values import sqlite_forms, sqlite_row
from workbench.connectors.contract.calls import Calls, RemoteRows
from workbench.connectors.contract.secrets import cause_of, revealed_url
from workbench.connectors.sql.database import Database, DatabaseFile
from workbench.connectors.sql.duckdb import DuckDB, duckdb_key, duckdb_selected
from workbench.connectors.sql.polled_table import place_of
from workbench.connectors.sql.postgresql import PostgreSQL
from workbench.connectors.sql.session import Session, fact_of, fixed, may_return
from workbench.connectors.sql.sink import database_at
from workbench.connectors.sql.table_name import places_of, quoted, quoted_list
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
            raise _error(self._lookup, error) from cause_of(error, self._lookup.url)
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
        self._places = places_of(lookup.table)
        self._idle: list[sqlite3.Connection] = []

    def find(self, *key: Any) -> Mapping[str, Any] | None:
        try:
            if not self._file.exists():
                raise SourceError(f"{self._file.path} does not exist: check the path of {self._file.url}")
            if isinstance(self._file.engine, DuckDB):
                return _row(self._lookup, self._of_duckdb(key), key)
            return self._of_sqlite(key)
        except self._file.engine.errors as error:
            raise _error(self._lookup, error) from cause_of(error, self._lookup.url)

    def close(self) -> None:
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()

    def _of_duckdb(self, key: Sequence[Any]) -> pa.Table:
        lookup = self._lookup
        for name, value in zip(lookup.key, key, strict=True):
            if getattr(value, "nanosecond", 0):  # which DuckDB's driver cuts off
                raise _no_key(lookup, name, value, "convert it to microseconds")
        with self._file.engine.open(self._file.path, _BUSY_S) as connection:
            place = self._place(connection)
            columns = duckdb_selected(connection, place, lookup.schema, lookup.table)
            forms, params = zip(*map(duckdb_key, key), strict=True)
            where = " AND ".join(f"{quoted(name)} = {form}" for name, form in zip(lookup.key, forms, strict=True))
            statement = f"SELECT {columns} FROM {place} WHERE {where} LIMIT 2"
            found: pa.Table = connection.sql(statement, params=list(params)).to_arrow_table()
            return found

    def _of_sqlite(self, key: Sequence[Any]) -> Mapping[str, Any] | None:
        lookup, tests, values = self._lookup, [], []
        for name, value in zip(lookup.key, key, strict=True):
            if (forms := sqlite_forms(value)) is None:
                raise _no_key(lookup, name, value, "CAST it to the text or number that the column has")
            tests.append(f"{quoted(name)} IN ({', '.join('?' * len(forms))})")
            values += forms
        try:
            connection = self._idle.pop()
        except IndexError:
            address = f"{self._file.path.as_uri()}?mode=ro"
            connection = sqlite3.connect(address, uri=True, timeout=_BUSY_S, check_same_thread=False)
        try:
            place = self._place(connection)
            statement = f"SELECT {quoted_list(lookup.schema.names)} FROM {place} WHERE {' AND '.join(tests)} LIMIT 2"
            rows = connection.execute(statement, values).fetchall()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        _check_unique(lookup, len(rows), key)
        place = f"{lookup.table}, {_pairs(lookup, key)}"
        return python_row(sqlite_row(rows[0], lookup.schema, place), place) if rows else None

    def _place(self, connection: Any) -> str:
        """The first of the names that is one of a table, in SQL; the only one from then on."""
        for place in self._places[:-1]:
            if self._file.engine.has_table(connection, place):
                self._places = [place]
        return self._places[-1].sql


def _row(lookup: SqlLookup, found: pa.Table, key: Sequence[Any]) -> Mapping[str, Any] | None:
    _check_unique(lookup, found.num_rows, key)
    place = f"{lookup.table}, {_pairs(lookup, key)}"
    return python_row(fitted(found, lookup.schema, lambda _: place), place) if found.num_rows else None


def _check_unique(lookup: SqlLookup, count: int, key: Sequence[Any]) -> None:
    if count > 1:
        pairs = _pairs(lookup, key, " = ")
        raise SourceError(f"the table {lookup.table!r} has several rows with {pairs}: look up by a unique key")


def _pairs(lookup: SqlLookup, key: Sequence[Any], equals: str = " ") -> str:
    return ", ".join(f"{name}{equals}{value!r}" for name, value in zip(lookup.key, key, strict=True))


def _no_key(lookup: SqlLookup, name: str, value: Any, fix: str) -> SourceError:
    return SourceError(
        f"the key {name!r} of {lookup.table!r} cannot be compared with {value!r} ({type(value).__name__}): {fix}"
    )


def _error(lookup: SqlLookup, error: Exception) -> SourceError:
    fact = fact_of(error, lookup.url)
    return SourceError(f"cannot look up rows in {lookup.table!r} of {lookup.database.url}: {fixed(fact)}")
