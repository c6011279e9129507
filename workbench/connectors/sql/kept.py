"""Connections to servers that stay open between transactions, because opening one takes as long as writing some 30,000
rows: while a sink owns a table, each connection that ends a transaction well waits for the next one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class KeptConnections:
    """The connections of this process that are open and in no transaction, by the URL of their database.

    There are at most as many as transactions have run at once. The lease of a table is renewed over one of them, so
    none is silent for longer than that.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._users: Counter[str] = Counter()
        self._idle: dict[str, list[Any]] = {}

    @contextmanager
    def used(self, url: str) -> Iterator[None]:
        """While a sink writes to this database; when the last one ends, the connections are closed."""
        with self._guard:
            self._users[url] += 1
        try:
            yield
        finally:
            with self._guard:
                self._users[url] -= 1
                idle = [] if self._users[url] else self._idle.pop(url, [])
            for connection in idle:
                with suppress(Exception):
                    connection.close()

    def take(self, url: str) -> Any:
        """A connection, or None: there is none."""
        with self._guard:
            return idle.pop() if (idle := self._idle.get(url)) else None

    def give(self, url: str, connection: Any) -> bool:
        """Keep a connection that is in no transaction; returns whether it is kept: otherwise, close it."""
        with self._guard:
            if not self._users[url]:
                return False
            self._idle.setdefault(url, []).append(connection)
            return True


KEPT = KeptConnections()
