"""The owners of a database's tables: a row per table in ``workbench_owners``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from typing import Any

from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.base import SinkContext
from workbench.connectors.epochs.owner import OwnerRecord, PlaceOwner
from workbench.connectors.sql.database import Database
from workbench.errors import SinkError

OWNERS = "workbench_owners"


@dataclass(frozen=True)
class TableOwners:
    """The record of one table.

    Attributes:
        database: the database with the table.
        table: its name.
    """

    database: Database
    table: str

    @property
    def title(self) -> str:
        """The table and its database."""
        return f"the table {self.table!r} of {self.database.url}"

    @property
    def identity(self) -> str:
        """The table and the database; SQL names are not case-sensitive."""
        return f"{self.table.lower()} {self.database.identity}"

    def exists(self) -> bool:
        """Whether the database is there."""
        return self.database.exists()

    @contextmanager
    def change(self, purpose: str, wait_s: float | None = None, attempts: Attempts | None = None) -> Iterator[OwnerRow]:
        """A transaction."""
        with self.database.transaction(f"{purpose} the table {self.table!r}", wait_s, attempts) as connection:
            create_owners(connection)
            yield OwnerRow(connection, self.table)

    def lost(self, error: SinkError) -> str:
        """As the database says."""
        return self.database.lost(error)


@dataclass(frozen=True)
class OwnerRow:
    """The row of one table.

    Attributes:
        connection: in a transaction.
        table: the name of the table.
    """

    connection: Any
    table: str

    def read(self) -> OwnerRecord | None:
        """The row, if there is one."""
        found = self.connection.execute(
            f"SELECT run, directory, holder, renewed_us FROM {OWNERS} WHERE table_name = ?", (self.table.lower(),)
        ).fetchall()
        return OwnerRecord(*found[0]) if found else None

    def write(self, record: OwnerRecord) -> None:
        """Insert or update it."""
        self.connection.execute(
            f"INSERT INTO {OWNERS} VALUES (?, ?, ?, ?, ?) ON CONFLICT (table_name) DO UPDATE SET run = excluded.run, "
            "directory = excluded.directory, holder = excluded.holder, renewed_us = excluded.renewed_us",
            (self.table.lower(), *astuple(record)),
        )

    def delete(self) -> None:
        """Delete it."""
        self.connection.execute(f"DELETE FROM {OWNERS} WHERE table_name = ?", (self.table.lower(),))


class HeldTable:
    """A table that a job owns for one of its sinks; see `Held`. Meanwhile, connections to its database are kept.

    Args:
        database: the database with the table.
        table: its name.
        context: of the sink.

    Raises:
        SinkError: another job owns it.
    """

    def __init__(self, database: Database, table: str, context: SinkContext) -> None:
        with ExitStack() as stack:
            stack.enter_context(database.kept())
            self._owner = PlaceOwner(TableOwners(database, table), context)
            self._kept = stack.pop_all()

    def keep(self) -> None:
        """Renew the record of the owner."""
        self._owner.keep()

    def release(self) -> None:
        """Let another job own it."""
        self._owner.release()
        self._kept.close()


def create_owners(connection: Any) -> None:
    """Create the table of owners if it does not exist."""
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {OWNERS} (table_name VARCHAR NOT NULL PRIMARY KEY, run VARCHAR NOT NULL, "
        "directory VARCHAR NOT NULL, holder VARCHAR NOT NULL, renewed_us BIGINT NOT NULL)"
    )
