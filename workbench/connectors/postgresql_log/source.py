"""A source over a PostgreSQL table and its changes, from the server's log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from workbench.arguments import text_of, true_or_false, whole_number
from workbench.connectors.contract.base import Source, SourceReader
from workbench.connectors.contract.block_reader import check_event_time
from workbench.connectors.contract.secrets import shown
from workbench.connectors.postgresql_log.reader import PostgresLogReader
from workbench.connectors.postgresql_log.savepoints import is_copy
from workbench.connectors.sql.postgresql import PostgreSQL
from workbench.connectors.sql.server import SCHEME, DatabaseServer
from workbench.errors import PlanError, SettingError, unknown
from workbench.expressions import ColumnName, column_name
from workbench.operators.changelogs.keyed_upserts import KeyedUpserts, upserts_schema
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.origin import caller
from workbench.packages import needed

_SLOT = re.compile(r"[a-z0-9_]{1,50}")


@dataclass(frozen=True, init=False)
class PostgresLogSource(Source):
    """The rows of a PostgreSQL table and all of their changes, as a changelog with the table's key.

    The table is copied first, in parts by its key; then the server's log is read (logical decoding with ``pgoutput``).
    Both together are exact at every failure: the position in the log is in the checkpoint, and the server keeps its log
    until a checkpoint is complete. With a ``checkpoint_interval``, copied rows come out when a checkpoint contains
    them, which the source asks for. The transactions arrive in the order of their commits, and only those that commit.

    The server needs ``wal_level = logical``, the user the attribute REPLICATION and the right to read the table, and
    the table a publication of all operations: ``CREATE PUBLICATION shop FOR TABLE orders``. The source makes the slot,
    which belongs to it alone. As long as the slot exists, the server keeps the log that was not read: drop the slot of
    a job that is over, with ``workbench slots URL --drop NAME``. Each savepoint has a copy of the slot, which is
    dropped with it. An older position than the slot's that no copy has is refused.

    A large value that an update leaves as it is (TOAST) is taken from the row before, with every replica identity that
    has the key. A row whose key changes while the table is copied, and which is in no part therefore, is copied again.
    The source reads in one subtask.

    Source: F2-8: recovery needs sources that can be read again from a position; Flink CDC's PostgreSQL connector.

    Args:
        url: ``postgresql://[user[:password]@]host[:port]/database``; ``${NAME}`` in it is an environment variable.
        table: its name, possibly with a schema: ``sales.orders``.
        schema: names and types of the columns to read. A value is exact in its type, or refused; pa.string() takes
            every type, in PostgreSQL's notation.
        slot: the name of the replication slot: up to 50 lower-case letters, digits and underscores.
        publication: the name of the publication.
        key: the columns of the primary key, or of a unique index without nulls if the replica identity is FULL.
        event_time: the event-time column (timestamp, date, or int64 microseconds), or None.
        bounded: stop where the log ends at the start, or behind that where the copy has seen everything.
        chunk_rows: the number of rows that are copied at once.
        retries: the number of retries in a row while the server is unreachable, or the slot is in use.

    Raises:
        SettingError: an invalid URL, name or number.
        PlanError: the key or event-time column does not exist.
        MissingPackageError: the package psycopg is not installed.
        SourceError: while running: no connection, or the server, the table, the publication or the slot cannot be used;
            the sentence has the statement that helps.

    Example::

        schema = {"id": pa.int64(), "city": pa.string(), "price": pa.decimal128(9, 2)}
        orders = wb.Stream.from_source(
            wb.PostgresLogSource("postgresql://localhost/shop", "orders", schema, slot="delays", publication="shop")
        )
        job = orders.sink_to(wb.TableSink("orders")).run("orders")
    """

    url: str = field(repr=False)
    table: str
    columns: pa.Schema = field(repr=False)
    slot: str
    publication: str
    key: tuple[str, ...]
    event_time: str | None
    bounded: bool
    chunk_rows: int
    retries: int
    kind: ClassVar[str] = "postgresql-log"
    keeps_savepoints: ClassVar[bool] = True

    def __init__(
        self,
        url: str,
        table: str,
        schema: SchemaLike,
        *,
        slot: str,
        publication: str,
        key: ColumnName | Sequence[ColumnName] = "id",
        event_time: ColumnName | None = None,
        bounded: bool = False,
        chunk_rows: int = 10_000,
        retries: int = 12,
    ) -> None:
        if not text_of(url, "url", "postgresql://localhost/shop").startswith(f"{SCHEME}://"):
            raise SettingError(f"url is {shown(url)!r}: write {SCHEME}://[user[:password]@]host[:port]/database")
        if not text_of(table, "table", "orders"):
            raise SettingError("table is '': write the name of a table, such as 'orders'")
        if not _SLOT.fullmatch(text_of(slot, "slot", "orders")):
            raise SettingError(f"slot is {slot!r}: write up to 50 lower-case letters, digits and underscores")
        if is_copy(slot):
            raise SettingError(f"slot is {slot!r}, and names that end so are those of savepoints: choose another name")
        if not text_of(publication, "publication", "orders"):
            raise SettingError("publication is '': write the name of a publication, such as 'orders'")
        columns = declared_schema(schema, "the source", caller())
        names = [key] if isinstance(key, str) or not isinstance(key, Sequence) else key
        values = {
            "url": url,
            "table": table,
            "columns": columns,
            "slot": slot,
            "publication": publication,
            "key": tuple(column_name(each, "key") for each in names),
            "event_time": None if event_time is None else column_name(event_time, "event_time"),
            "bounded": true_or_false(bounded, "bounded"),
            "chunk_rows": whole_number(chunk_rows, "chunk_rows", 1),
            "retries": whole_number(retries, "retries", 0),
        }
        for attribute, value in values.items():
            object.__setattr__(self, attribute, value)
        if not self.key:
            raise PlanError("the key has no column: name those of the table's primary key")
        for name in self.key:
            if name not in columns.names:
                raise PlanError(unknown("column", name, columns.names))
        for name in columns.names:
            if name.startswith("$"):
                raise PlanError(f"the column {name!r} cannot be read: names that begin with $ are the workbench's own")
        check_event_time(columns, self.event_time)
        DatabaseServer(PostgreSQL(), url)
        needed("psycopg", "reading PostgreSQL's log")

    @property
    def schema(self) -> pa.Schema:
        """The columns and how each row changes the table, for the operator that completes the changes."""
        return upserts_schema(self.columns)

    @property
    def changelog_key(self) -> tuple[str, ...]:
        """The key: its changes arrive in their order."""
        return self.key

    @property
    def completed_by(self) -> KeyedUpserts:
        """The operator that keeps the last row of each key."""
        return KeyedUpserts(self.key, self.event_time)

    @property
    def server(self) -> str:
        """The URL without its password, for messages."""
        return shown(self.url)

    def describe(self) -> str:
        return f"{self.table} of {self.server} by the log"

    def create(self) -> SourceReader:
        return PostgresLogReader(self)
