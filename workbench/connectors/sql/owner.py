"""Ownership of a database table: one job at a time writes to it, recorded in the same database.

The record is a row per table in ``workbench_owners``. It is inserted in one transaction when a job starts, renewed
while the job runs and deleted when it ends. A row is void when

- its process has died, which is detected for processes on this machine;
- it was not renewed for `LEASE_US`, because a job on another machine has died;
- its checkpoint directory is owned by the requesting job, which continues it.

An owner that stalls for longer than the lease may lose the table although it lives. So every commit checks the row in
its own transaction, and an owner that has lost the table commits nothing any more.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from typing import Any

from workbench.clock import Clock, SystemClock
from workbench.connectors.contract.base import SinkContext
from workbench.connectors.sql.database import Database
from workbench.durable.holder import Holder, is_alive
from workbench.errors import CommittedRowsError, SinkError

OWNERS = "workbench_owners"
LEASE_US = 60_000_000
RENEW_US = 15_000_000

_RUNS: set[tuple[str, str, str]] = set()
"""For each table that this process owns: the run, the table and the database file."""


class TableOwner:
    """A table that a job owns for one of its sinks, from its start to its end.

    Args:
        database: the database with the table.
        table: its name.
        context: the job.
        clock: the clock of the renewals.

    Raises:
        SinkError: another job writes to the table, or the database refuses.
    """

    def __init__(self, database: Database, table: str, context: SinkContext, clock: Clock | None = None) -> None:
        self._database = database
        self._table = table.lower()
        self._run = context.run
        local = context.data_dir
        self._directory = context.directory if local is None else f"{platform.node()}:{os.path.realpath(local)}"
        self._clock = clock or SystemClock()
        self._holder = Holder.this_process(context.job, context.lease)
        self._renewed_us = 0
        self._taking = f"take the table {table!r}"
        with database.transaction(self._taking) as connection:
            create_owners(connection)
            if (holder := self._other(connection)) is not None:
                raise SinkError(
                    f"the table {table!r} of {database.url} is written to by {holder}: end that job, or choose another "
                    "table"
                )
            self._renew(connection)
        _RUNS.add(self._key_of(self._run))

    def keep(self) -> None:
        """Renew the row, unless it was renewed recently or the database is busy.

        Raises:
            SinkError: another job has taken the table.
        """
        if self._clock.now_us() - self._renewed_us < RENEW_US or not self._database.path.exists():
            return
        try:
            with self._database.transaction(self._taking, wait_s=0.0) as connection:
                create_owners(connection)
                check_owner(connection, self._database, self._table, self._run)
                self._renew(connection)
        except CommittedRowsError:
            raise
        except SinkError:
            pass  # the database is busy: the next beat tries again

    def release(self) -> None:
        """Let another job own it; if the database is busy, the row becomes void anyway."""
        _RUNS.discard(self._key_of(self._run))
        with suppress(SinkError):
            if self._database.path.exists():
                with self._database.transaction(f"release the table {self._table!r}") as connection:
                    connection.execute(
                        f"DELETE FROM {OWNERS} WHERE table_name = ? AND run = ?", (self._table, self._run)
                    )

    def _key_of(self, run: str) -> tuple[str, str, str]:
        return run, self._table, os.path.realpath(self._database.path)

    def _other(self, connection: Any) -> Holder | str | None:
        """The other owner of the table; None: there is none."""
        found = connection.execute(
            f"SELECT run, directory, holder, renewed_us FROM {OWNERS} WHERE table_name = ?", (self._table,)
        ).fetchall()
        if not found:
            return None
        run, directory, text, renewed_us = found[0]
        holder = Holder.read(text)
        continued = run == self._run or (directory and directory == self._directory)
        expired = renewed_us < self._clock.now_us() - LEASE_US
        if continued or expired or (holder is not None and self._is_dead(holder, run)):
            return None
        return holder or "another job"

    def _is_dead(self, holder: Holder, run: str) -> bool:
        """Whether the owner is a process on this machine that has ended, or this one, which no longer owns the
        table."""
        if holder.host != platform.node():
            return False
        if holder.pid == os.getpid():
            return self._key_of(run) not in _RUNS
        return not is_alive(holder.pid)

    def _renew(self, connection: Any) -> None:
        now_us = self._clock.now_us()
        connection.execute(
            f"INSERT INTO {OWNERS} VALUES (?, ?, ?, ?, ?) ON CONFLICT (table_name) DO UPDATE SET run = excluded.run, "
            "directory = excluded.directory, holder = excluded.holder, renewed_us = excluded.renewed_us",
            (self._table, self._run, self._directory, self._holder.write(), now_us),
        )
        self._renewed_us = now_us


def create_owners(connection: Any) -> None:
    """Create the table of owners if it does not exist."""
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {OWNERS} (table_name VARCHAR NOT NULL PRIMARY KEY, run VARCHAR NOT NULL, "
        "directory VARCHAR NOT NULL, holder VARCHAR NOT NULL, renewed_us BIGINT NOT NULL)"
    )


def check_owner(connection: Any, database: Database, table: str, run: str) -> None:
    """Raise an error if another run has taken the table.

    Raises:
        CommittedRowsError: it has; retrying does not help.
    """
    found = connection.execute(f"SELECT run, holder FROM {OWNERS} WHERE table_name = ?", (table.lower(),)).fetchall()
    if found and found[0][0] != run:
        raise CommittedRowsError(
            f"the table {table!r} of {database.url} was taken by {Holder.read(found[0][1]) or 'another job'} while "
            "this job did not renew its lease: this job must not continue alongside it"
        )
