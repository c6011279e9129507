"""A database server that sinks write to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.secrets import check_url, hidden, revealed_url, shown
from workbench.connectors.sql.database import WAIT_S, told
from workbench.connectors.sql.kept import KEPT
from workbench.connectors.sql.postgresql import PostgreSQL
from workbench.connectors.sql.session import fact_of, may_return
from workbench.errors import SettingError, SinkError

SCHEME = "postgresql"


@dataclass(frozen=True)
class DatabaseServer:
    """A database of a server.

    Attributes:
        engine: of the database.
        address: its URL, which may hold a password; ``${NAME}`` in it is an environment variable.

    Raises:
        SettingError: not such a URL; the message masks its password.
    """

    engine: PostgreSQL
    address: str = field(repr=False)

    def __post_init__(self) -> None:
        check_url(self.address, odd="@")
        try:
            parts = urlsplit(self.address)
            port = parts.port
        except ValueError as error:
            raise SettingError(
                f"the database URL {self.url!r} cannot be used ({hidden(str(error), self.address)}): {_FORM}"
            ) from None
        if len(parts.path) < 2 or "/" in parts.path[1:] or parts.fragment or port == 0:
            raise SettingError(f"the database URL {self.url!r} names no database: {_FORM}")

    @property
    def url(self) -> str:
        """The URL without its password, for messages."""
        return shown(self.address)

    @property
    def identity(self) -> str:
        """The same for all that write to this database."""
        return self.url

    def check(self) -> None:
        """Raise an error if a package is missing."""
        self.engine.check()

    def make_ready(self) -> None:
        """A server needs no folder."""

    def exists(self) -> bool:
        """A server is not checked here: a transaction reports when it is unreachable."""
        return True

    def lost(self, error: SinkError) -> str:
        """See `Database.lost`."""
        cause = error.__cause__
        return fact_of(cause, self.address) if cause is not None and may_return(cause) else ""

    def kept(self) -> AbstractContextManager[None]:
        """See `Database.kept`."""
        return KEPT.used(revealed_url(self.address))

    @contextmanager
    def transaction(self, purpose: str, wait_s: float | None = None, attempts: Attempts | None = None) -> Iterator[Any]:
        """See `Database.transaction`; without `attempts`, it waits as long for an unreachable server."""
        wait_s = WAIT_S if wait_s is None else wait_s
        with (
            told(self.engine, purpose, self.url, self.address),
            self.engine.open(revealed_url(self.address), wait_s, attempts) as connection,
        ):
            yield connection


_FORM = f"write {SCHEME}://[user[:password]@]host[:port]/database"
