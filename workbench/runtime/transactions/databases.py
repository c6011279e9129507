"""The databases of a store: one connection that stays open, and transactions on it.

A sink opens a connection for each of its few commits (`workbench.connectors.sql`). A store writes for each record, so
its connection stays open until a transaction fails; the next one opens another.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.sql.database import WAIT_S, DatabaseFile, told
from workbench.connectors.sql.server import DatabaseServer
from workbench.connectors.sql.session import connected

Place = DatabaseFile | DatabaseServer
Rows = list[tuple[Any, ...]]


class Statements(Protocol):
    """Executes statements in a transaction; ``?`` stands for a parameter."""

    def run(self, statement: str, parameters: Sequence[object] = ()) -> Rows:
        """One statement, and its rows."""

    def run_each(self, statement: str, parameters: Sequence[Sequence[object]]) -> None:
        """One statement for each of these, not empty."""


class Database:
    """A database with one connection, which threads share in turns.

    Args:
        place: of the database.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._lock = threading.Lock()
        self._open: Any = None

    @contextmanager
    def transaction(self, purpose: str) -> Iterator[Statements]:
        """Statements that are committed together when the block ends, or not at all.

        Args:
            purpose: the action, for errors.

        Raises:
            SinkError: the database refuses or does not answer.
            UnfitTableError: a table of that name has other columns.
        """
        engine, place = self.place.engine, self.place
        with self._lock, told(engine, purpose, place.url):
            try:
                if self._open is None:
                    self._open = _Sqlite(place) if isinstance(place, DatabaseFile) else _Postgresql(place)
                self._open.begin()
                yield self._open
                self._open.commit()
            except BaseException:
                self._close()
                raise

    def close(self) -> None:
        """Close the connection; another transaction opens one again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            with suppress(*self.place.engine.errors):
                opened.close()  # rolls back what is not committed


class _Sqlite:
    """A file in WAL mode: each commit is one append to its log, and is on disk then."""

    def __init__(self, file: DatabaseFile) -> None:
        self._connection = sqlite3.connect(file.path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error:
            self._connection.close()
            raise

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def run(self, statement: str, parameters: Sequence[object] = ()) -> Rows:
        return self._connection.execute(statement, parameters).fetchall()

    def run_each(self, statement: str, parameters: Sequence[Sequence[object]]) -> None:
        self._connection.executemany(statement, parameters)

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class _Postgresql:
    """A session of a server."""

    def __init__(self, server: DatabaseServer) -> None:
        self._session = connected(server.address, Attempts(WAIT_S))

    def begin(self) -> None:
        self._session.execute("BEGIN")

    def run(self, statement: str, parameters: Sequence[object] = ()) -> Rows:
        self._session.execute(statement, parameters)
        return self._session.fetchall() if self._session.description else []

    def run_each(self, statement: str, parameters: Sequence[Sequence[object]]) -> None:
        self._session.execute_each(statement, parameters)

    def commit(self) -> None:
        self._session.execute("COMMIT")

    def close(self) -> None:
        self._session.close()
