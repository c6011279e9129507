"""A database table that a sink writes to, and the record of its committed epochs.

The record is a row per writer and subtask in the table ``workbench_commits`` of the same database, written in the same
transaction as the rows. So it shows after any crash whether an epoch's rows are committed, and committing them again
does nothing. It also names the run that committed them: jobs that start from the same savepoint write under one name
with the same numbers, and only one of them can continue in one table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.runs import Runs
from workbench.connectors.epochs.owner import check_owner
from workbench.connectors.epochs.row_store import Epoch, Undo, due_epochs
from workbench.connectors.sql.database import Database
from workbench.connectors.sql.owner import OwnerRow, create_owners
from workbench.connectors.sql.table_name import TableName, quoted, quoted_list
from workbench.errors import SinkError

COMMITS = "workbench_commits"
UNDO = "workbench_undo"
_GONE = "workbench_gone"
_UNDO_KEY = "table_name, writer, run, subtask, epoch, number"
T = TypeVar("T")


@dataclass(frozen=True)
class SqlTable:
    """A table.

    Attributes:
        database: the database with the table.
        name: of the table, as a user has written it.
        keys: its primary key, if rows replace one another; otherwise empty.
        attempts: of transactions while the server is unreachable.
    """

    database: Database
    name: str
    keys: tuple[str, ...] = ()
    attempts: Attempts = field(default_factory=Attempts, compare=False, repr=False)

    @property
    def title(self) -> str:
        """The table and its database, for messages."""
        return f"the table {self.name!r} of {self.database.url}"

    @cached_property
    def place(self) -> TableName:
        """Its name, with its schema."""
        return TableName.parsed(self.name)

    @property
    def identity(self) -> str:
        """The same for all names of the table, for records of it."""
        return self.place.identity(self.database.engine.schema)

    def prepare(self, schema: pa.Schema, *, create: bool) -> None:
        """Create what does not exist, and check that rows of `schema` can be written.

        Args:
            schema: of the rows.
            create: also create the table.

        Raises:
            UnfitTableError: the table does not exist, has other columns, or lacks a unique index on the keys.
            SinkError: the database refuses for another reason.
        """
        self.database.make_ready()

        def ready(connection: Any) -> None:
            create_owners(connection)
            if create:
                connection.execute(self._definition(schema))
            if not self.keys:
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {COMMITS} (writer VARCHAR NOT NULL, table_name VARCHAR NOT NULL, "
                    "subtask INTEGER NOT NULL, epoch BIGINT NOT NULL, run VARCHAR DEFAULT '', "
                    "PRIMARY KEY (writer, table_name, subtask))"
                )
                columns = connection.execute(f"SELECT * FROM {COMMITS} WHERE 1 = 0").description
                if "run" not in [column[0] for column in columns]:  # created by an earlier version
                    connection.execute(f"ALTER TABLE {COMMITS} ADD COLUMN run VARCHAR DEFAULT ''")
            names, table = quoted_list(schema.names), self.place.sql
            # Writes no row, but fails where rows would fail.
            connection.execute(
                f"INSERT INTO {table} ({names}) SELECT {names} FROM {table} WHERE 1 = 0 {self._conflict(schema)}"
            )

        self._atomically(f"write to the table {self.name!r}", ready)

    def commit(self, writer: str, runs: Runs, epochs: Iterable[Epoch], run: str) -> Runs:
        """Add the rows of these epochs that are not committed yet, and record them, in one transaction.

        Args:
            writer: the writer of the rows.
            runs: the run that wrote them, and its past.
            epochs: of any subtasks, those of a subtask in ascending order.
            run: the run that commits them.

        Returns:
            `runs`, without earlier runs that have no rows in the table.

        Raises:
            SinkError: the database refuses, or a run outside of this past has written to the table or taken it.
        """
        given = list(epochs)

        def add(connection: Any) -> dict[int, tuple[int, str]]:
            check_owner(OwnerRow(connection, self.identity).read(), self.title, run)
            notes = self._notes(connection, writer)
            for epoch in due_epochs(self, notes, writer, runs, given):
                self.database.engine.insert(connection, self.place, epoch.rows, "")
                connection.execute(
                    f"INSERT INTO {COMMITS} (writer, table_name, subtask, epoch, run) VALUES (?, ?, ?, ?, ?) "
                    "ON CONFLICT (writer, table_name, subtask) "
                    "DO UPDATE SET epoch = excluded.epoch, run = excluded.run",
                    (writer, self.identity, epoch.subtask, epoch.number, runs.own),
                )
            return notes

        notes = self._atomically(f"write to the table {self.name!r}", add)
        return runs.among({run for _, run in notes.values()})

    def upsert(self, rows: pa.Table, run: str) -> None:
        """Write rows, each replacing the one with its keys, in one transaction.

        Args:
            rows: with different keys.
            run: the run that writes them.

        Raises:
            SinkError: the database refuses, or another run has taken the table.
        """

        def put(connection: Any) -> None:
            check_owner(OwnerRow(connection, self.identity).read(), self.title, run)
            self.database.engine.insert(connection, self.place, rows, self._conflict(rows.schema))

        self._atomically(f"write to the table {self.name!r}", put)

    def remove(self, keys: pa.Table, run: str) -> None:
        """Delete the rows with these keys, in one transaction.

        Args:
            keys: the key columns.
            run: the run that removes them.

        Raises:
            SinkError: the database refuses, or another run has taken the table.
        """
        table, names = self.place.sql, quoted_list(self.keys)
        place = TableName(_GONE, self.database.engine.temporary)
        gone = quoted(_GONE)
        same = " AND ".join(f"{gone}.{quoted(key)} = {table}.{quoted(key)}" for key in self.keys)

        def delete(connection: Any) -> None:
            check_owner(OwnerRow(connection, self.identity).read(), self.title, run)
            connection.execute(f"CREATE TEMPORARY TABLE {gone} AS SELECT {names} FROM {table} WHERE 1 = 0")
            self.database.engine.insert(connection, place, keys, "")
            connection.execute(f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {place.sql} WHERE {same})")
            connection.execute(f"DROP TABLE {place.sql}")

        self._atomically(f"delete from the table {self.name!r}", delete)

    def prepare_undo(self) -> None:
        """Create the table of notes."""
        kind = self.database.engine.column_type(pa.binary())
        definition = (
            f"CREATE TABLE IF NOT EXISTS {UNDO} (table_name VARCHAR NOT NULL, writer VARCHAR NOT NULL, run VARCHAR NOT "
            f"NULL, subtask INTEGER NOT NULL, epoch BIGINT NOT NULL, number BIGINT NOT NULL, changes {kind} NOT NULL, "
            f"PRIMARY KEY ({_UNDO_KEY}))"
        )
        self._atomically(f"create the table {UNDO!r}", lambda connection: connection.execute(definition))

    def keep_undo(self, note: Undo, changes: bytes) -> None:
        """Add a note."""
        values = (self.identity, *astuple(note), changes)

        def keep(connection: Any) -> None:
            check_owner(OwnerRow(connection, self.identity).read(), self.title, note.run)
            connection.execute(
                f"INSERT INTO {UNDO} ({_UNDO_KEY}, changes) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", values
            )

        self._atomically(f"write to the table {UNDO!r}", keep)

    def undo(self) -> Mapping[Undo, bytes]:
        """The notes about this table."""

        def read(connection: Any) -> dict[Undo, bytes]:
            found = connection.execute(
                f"SELECT {_UNDO_KEY}, changes FROM {UNDO} WHERE table_name = ?", (self.identity,)
            )
            return {Undo(*row[1:-1]): bytes(row[-1]) for row in found.fetchall()}

        return self._atomically(f"read the table {UNDO!r}", read)

    def forget_undo(self, notes: Sequence[Undo]) -> None:
        """Remove notes."""
        same = " AND ".join(f"{name} = ?" for name in _UNDO_KEY.split(", "))

        def forget(connection: Any) -> None:
            for note in notes:
                connection.execute(f"DELETE FROM {UNDO} WHERE {same}", (self.identity, *astuple(note)))

        self._atomically(f"delete from the table {UNDO!r}", forget)

    def committed(self, writer: str) -> int:
        """The last committed epoch of this writer; 0: none.

        Raises:
            SinkError: the database cannot be read.
        """
        if not self.database.exists():
            return 0

        def last(connection: Any) -> int:
            if not self.database.engine.has_table(connection, TableName(COMMITS)):
                return 0
            found = connection.execute(
                f"SELECT max(epoch) FROM {COMMITS} WHERE writer = ? AND table_name = ?", (writer, self.identity)
            )
            return int(found.fetchone()[0] or 0)

        return self._atomically(f"read the epochs in the table {self.name!r}", last)

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows, with nested values as text; empty if the table does not exist.

        Raises:
            SinkError: the database cannot be read.
        """
        if not self.database.exists():
            return []
        with self.database.transaction(f"read the table {self.name!r}") as connection:
            if not self.database.engine.has_table(connection, self.place):
                return []
            rows = connection.execute(f"SELECT * FROM {self.place.sql}").fetchall()
        return [tuple(repr(value) if isinstance(value, list | dict) else value for value in row) for row in rows]

    def _atomically(self, purpose: str, change: Callable[[Any], T]) -> T:
        """Call `change` in a transaction, and retry while the server is unreachable; after a lost answer, the record
        says what was committed."""
        while True:
            try:
                with self.database.transaction(purpose, attempts=self.attempts) as connection:
                    found = change(connection)
            except SinkError as error:
                if not (fact := self.database.lost(error)) or not self.attempts.again(fact):
                    raise
            else:
                self.attempts.succeeded()
                return found

    def _notes(self, connection: Any, writer: str) -> dict[int, tuple[int, str]]:
        """By subtask: its last epoch, and the run that committed it."""
        rows = connection.execute(
            f"SELECT subtask, epoch, run FROM {COMMITS} WHERE writer = ? AND table_name = ?", (writer, self.identity)
        )
        return {int(subtask): (int(epoch), str(run or "")) for subtask, epoch, run in rows.fetchall()}

    def _definition(self, schema: pa.Schema) -> str:
        types = [self.database.engine.column_type(field.type) for field in schema]
        parts = [f"{quoted(field.name)} {kind}" for field, kind in zip(schema, types, strict=True)]
        if self.keys:
            parts.append(f"PRIMARY KEY ({quoted_list(self.keys)})")
        return f"CREATE TABLE IF NOT EXISTS {self.place.sql} ({', '.join(parts)})"

    def _conflict(self, schema: pa.Schema) -> str:
        """The clause for rows whose keys exist already."""
        if not self.keys:
            return ""
        others = [name for name in schema.names if name not in self.keys]
        changes = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
        return f"ON CONFLICT ({quoted_list(self.keys)}) DO " + (f"UPDATE SET {changes}" if others else "NOTHING")
