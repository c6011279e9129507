"""Looks up rows of a PostgreSQL table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from workbench.arguments import text_of
from workbench.clock import rest
from workbench.connectors.contract.secrets import hidden, revealed_url
from workbench.connectors.sql.database import quoted, quoted_list
from workbench.connectors.sql.postgresql import PostgreSQL, connected, may_return
from workbench.connectors.sql.server import SCHEME, DatabaseServer
from workbench.errors import PlanError, SettingError, SourceError
from workbench.expressions import ColumnName, column_names
from workbench.operators.functions.lookup_table import LookupTable, OpenTable
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.origin import caller
from workbench.raised import first_line_of
from workbench.redaction import redacted

_CONNECT_S = 1.0
_PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Between attempts while the server is away."""


@dataclass(frozen=True, init=False)
class SqlLookup(LookupTable):
    """A PostgreSQL table that a stream looks rows up in, with `Stream.lookup_async`.

    Each subtask keeps as many connections as it has pending calls. While the server is away, a call tries again for
    three seconds.

    Source: Flink's lookup join.

    Args:
        url: ``postgresql://[user[:password]@]host[:port]/database``; ``${NAME}`` in it is an environment variable.
        table: its name.
        schema: names and types of the columns to add; values are converted to these types.
        key: the columns that identify a row, in the order of the stream's key columns.

    Raises:
        SettingError: an invalid URL or name.
        MissingPackageError: the package adbc-driver-postgresql is not installed.
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
        if not text_of(url, "url", "postgresql://localhost/shop").startswith(f"{SCHEME}://"):
            raise SettingError(f"url is {redacted(url)!r}: write {SCHEME}://[user[:password]@]host[:port]/database")
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
        self.server.check()

    @cached_property
    def server(self) -> DatabaseServer:
        """The database."""
        return DatabaseServer(PostgreSQL(), self.url)

    def describe(self) -> str:
        return f"{self.table} of {self.server.url} by {', '.join(self.key)}"

    def check_keys(self, count: int) -> None:
        """Reject another number of key columns.

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
        return SqlRows(self)


class SqlRows:
    """See `OpenTable`: connections that no call uses wait in a list."""

    def __init__(self, lookup: SqlLookup) -> None:
        self._lookup = lookup
        self._idle: list[Any] = []
        self._closed = False
        where = " AND ".join(f"{quoted(name)} = ${at}" for at, name in enumerate(lookup.key, 1))
        names = quoted_list(lookup.schema.names)
        self._query = f"SELECT {names} FROM {quoted(lookup.table)} WHERE {where} LIMIT 2"

    def find(self, *key: Any) -> Mapping[str, Any] | None:
        for pause_s in (*_PAUSES_S, None):
            try:
                return self._row(self._answer(key), key)
            except PostgreSQL().errors as error:
                if pause_s is None or not may_return(error):
                    raise self._error(error) from error
                rest(pause_s)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        self._closed = True
        while self._idle:
            with suppress(*PostgreSQL().errors, IndexError):
                self._idle.pop().close()

    def _answer(self, key: Sequence[Any]) -> pa.Table:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = connected(revealed_url(self._lookup.url), _CONNECT_S)
            connection.adbc_connection.set_autocommit(True)
        try:
            with connection.cursor() as cursor:
                cursor.execute(self._query, tuple(key))
                found = cursor.fetch_arrow_table()
        except BaseException:
            with suppress(*PostgreSQL().errors):
                connection.close()
            raise
        self._idle.append(connection)
        if self._closed:
            self.close()
        return found

    def _row(self, found: pa.Table, key: Sequence[Any]) -> Mapping[str, Any] | None:
        lookup = self._lookup
        if found.num_rows > 1:
            pairs = ", ".join(f"{name} = {value!r}" for name, value in zip(lookup.key, key, strict=True))
            raise SourceError(f"the table {lookup.table!r} has several rows with {pairs}: look up by a unique key")
        try:
            rows = found.cast(lookup.schema).to_pylist()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise SourceError(
                f"rows of {lookup.table!r} do not have these columns: {first_line_of(error)}; declare other types"
            ) from error
        return rows[0] if rows else None

    def _error(self, error: Exception) -> SourceError:
        lookup = self._lookup
        fact = redacted(hidden(first_line_of(error), lookup.url))
        fact = fact.partition("ERROR: ")[2].lstrip() or fact
        return SourceError(f"cannot look up rows in {lookup.table!r} of {lookup.server.url}: {fact}")
