"""Notifications of a PostgreSQL server, with the package ``psycopg``: hints that rows were possibly added."""

from __future__ import annotations

import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from workbench.connectors.contract.secrets import revealed_url
from workbench.connectors.sql.table_name import quoted
from workbench.packages import needed

_CONNECT_S = 2
_ANSWER_S = 3.0
"""For the connection and its first statement; psycopg waits for the answer to a statement as long as it takes."""


class Notices:
    """The notifications of a channel. A lost connection loses only hints: the source also polls for rows.

    Args:
        url: of the database.
        channel: as in ``NOTIFY channel``.

    Raises:
        MissingPackageError: the package psycopg is not installed.
    """

    def __init__(self, url: str, channel: str) -> None:
        self._url = url
        self._channel = channel
        self._package = needed("psycopg", "listening to PostgreSQL")
        self._connection: Any = None

    def listen(self) -> None:
        """Start listening, unless it already listens, or the server refuses or does not answer within 3 s."""
        if self._connection is not None:
            return
        found: SimpleQueue[Any] = SimpleQueue()
        gone = threading.Event()
        name = "workbench-postgresql-notices"
        threading.Thread(target=self._connect, args=(found, gone), name=name, daemon=True).start()
        try:
            self._connection = found.get(timeout=_ANSWER_S)
        except Empty:
            gone.set()
            with suppress(Empty):  # it has come just now
                self._connection = found.get_nowait()

    def _connect(self, found: SimpleQueue[Any], gone: threading.Event) -> None:
        """Put a connection that listens, or None; close the connection if no one waits for it any longer."""
        connection = None
        with suppress(self._package.Error):
            connection = self._package.connect(revealed_url(self._url), autocommit=True, connect_timeout=_CONNECT_S)
            connection.execute(f"LISTEN {quoted(self._channel)}")
        if connection is not None and (gone.is_set() or connection.broken):
            connection.close()
            connection = None
        found.put(connection)

    def arrived(self) -> bool:
        """Whether a notification has arrived, or was possibly lost, since the last call; never waits."""
        if self._connection is None:
            return False
        try:
            return any(True for _ in list(self._connection.notifies(timeout=0)))
        except self._package.Error:
            self.close()
            return True

    def close(self) -> None:
        """Close the connection; never raises."""
        if self._connection is not None:
            with suppress(self._package.Error):
                self._connection.close()
            self._connection = None
