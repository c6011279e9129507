"""Databases that sinks write to, and database files: their URLs, and transactions of one subtask at a time.

A connection to a file is open for one transaction, so a subtask that dies leaves nothing behind, and other programs can
read the file between two commits (DuckDB prevents this while a process has it open). Connections to servers stay open.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol
from urllib.parse import unquote
from weakref import WeakValueDictionary

import pyarrow as pa

from workbench.arguments import is_utf8, text_of
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.secrets import cause_of
from workbench.connectors.parts.part_files import make_folder, take_folder
from workbench.connectors.sql.session import fact_of, fixed
from workbench.connectors.sql.table_name import TableName
from workbench.durable.kind import kind_of
from workbench.errors import SettingError, SinkError, UnfitTableError, told_by
from workbench.redaction import redacted

WAIT_S = 10.0
"""The maximum time that a transaction waits for transactions of other programs."""
_SHOWN = 200
_URL = re.compile(r"(?P<engine>[a-z0-9+]+):///(?P<path>[^?#]+)")


class Engine(Protocol):
    """The differences between databases: how one is opened, the types, and how many rows are inserted at once."""

    name: ClassVar[str]
    schema: ClassVar[str]
    """The schema of tables that are named without one."""
    temporary: ClassVar[str]
    """The schema of temporary tables."""

    def column_type(self, kind: pa.DataType) -> str | None:
        """The column type for an Arrow type; None: not supported."""

    def check(self) -> None:
        """Raise an error if a package is missing.

        Raises:
            PlanError: names the package to install.
        """

    def open(self, place: Any, wait_s: float) -> AbstractContextManager[Any]:
        """A transaction: a connection that has begun, commits when the block ends, and rolls back when it raises.

        It waits up to `wait_s` seconds for transactions of other programs.

        Args:
            place: the path of a file, or the URL of a server's database.
            wait_s: in seconds.
        """

    def has_table(self, connection: Any, table: TableName) -> bool:
        """Whether the database has a table or a view of this name."""

    def insert(self, connection: Any, table: TableName, rows: pa.Table, conflict: str) -> None:
        """Insert all rows as they are.

        Args:
            connection: in a transaction.
            table: its name.
            rows: to insert.
            conflict: the end of the statement, for rows whose keys exist already.

        Raises:
            SinkError: a value that the table would change; names the column and the value.
        """

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions that the database raises."""

    def is_unfit(self, error: Exception) -> bool:
        """Whether an exception says that a statement does not fit the tables, so that retrying cannot help."""


class _Lock:
    """A lock for one file; a class, because a plain lock cannot be weakly referenced."""

    def __init__(self) -> None:
        self.held = threading.Lock()


_LOCKS: WeakValueDictionary[Path, _Lock] = WeakValueDictionary()
_GUARD = threading.Lock()


def _lock_of(path: Path) -> _Lock:
    with _GUARD:
        return _LOCKS.setdefault(path, _Lock())


class Database(Protocol):
    """A database."""

    @property
    def engine(self) -> Engine:
        """Its engine."""

    @property
    def url(self) -> str:
        """Its URL, for messages."""

    @property
    def identity(self) -> str:
        """The same for all that write to this database."""

    def check(self) -> None:
        """Reject what cannot be a database; nothing is created.

        Raises:
            PlanError: a package is missing.
            SinkError: the path is a folder.
        """

    def make_ready(self) -> None:
        """Create the folder of its file."""

    def exists(self) -> bool:
        """Whether its file is there."""

    def kept(self) -> AbstractContextManager[None]:
        """Within the block, connections can stay open between transactions."""

    def lost(self, error: SinkError) -> str:
        """The error if a transaction failed because the server is unreachable, so that the same may succeed
        later; otherwise empty."""

    def transaction(
        self, purpose: str, wait_s: float | None = None, attempts: Attempts | None = None
    ) -> AbstractContextManager[Any]:
        """A connection whose statements are committed together when the block ends, or not at all.

        Args:
            purpose: the action, for errors: ``write to the table 'delays'``.
            wait_s: how long to wait for transactions of other programs; None: `WAIT_S`; 0: do not even wait for those
                of this process.
            attempts: of the caller, which retries while the server is unreachable.

        Raises:
            SinkError: the database refuses, or another program has locked it.
            UnfitTableError: a table does not exist, or does not fit a statement.
        """


_FIX = "fix this and resume"


@contextmanager
def told(engine: Engine, purpose: str, url: str, address: str = "") -> Iterator[None]:
    """Convert a database's exceptions to errors for the user.

    Args:
        engine: of the database.
        purpose: the action that fails, such as ``commit to``.
        url: for the message.
        address: the URL with references to secrets, which the message must not show.
    """
    try:
        yield
    except engine.errors as error:
        fact = fact_of(error, address)  # without the statement that DuckDB adds below it
        explained = fixed(fact, _FIX) if address else f"{fact}; {_FIX}"
        kind = UnfitTableError if engine.is_unfit(error) else SinkError
        raise kind(f"cannot {purpose} of {url}: {explained}") from cause_of(error, address)


@dataclass(frozen=True)
class DatabaseFile:
    """A database file.

    Attributes:
        engine: of the database.
        path: of the file, absolute.
        url: as it was given.
    """

    engine: Engine
    path: Path
    url: str

    @classmethod
    def at(cls, url: str, engines: Sequence[Engine]) -> DatabaseFile:
        """The file that a URL identifies.

        Raises:
            SettingError: not a valid URL, or another database; the message masks credentials.
        """
        match = _URL.fullmatch(text_of(url, "url", "sqlite:///delays.db"))
        engine = next((item for item in engines if match is not None and item.name == match["engine"]), None)
        if match is None or engine is None:
            forms = ", ".join(f"{item.name}:///path.db" for item in engines)
            raise SettingError(
                f"the database URL {redacted(url)!r} cannot be used: write {forms} or postgresql://host/database"
            )
        if not is_path(path := unquote(match["path"])):
            raise SettingError(
                f"the database URL {redacted(url)[:_SHOWN]!r} does not name a file: a path cannot have such characters"
            )
        if path == ":memory:":
            raise SettingError(
                f"the database of {url!r} would be lost with the process, and with it everything that checkpoints have "
                f"committed: name a file, such as {engine.name}:///path.db"
            )
        return cls(engine, Path(path).expanduser().absolute(), url)

    @property
    def identity(self) -> str:
        """The file, with links resolved."""
        return os.path.realpath(self.path)

    def make_ready(self) -> None:
        """Create the folder of the file."""
        take_folder(self.path.parent)

    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    def check(self) -> None:
        """Reject a path that cannot be a database file."""
        self.engine.check()
        try:
            is_folder = kind_of(self.path) == "folder"
        except OSError as error:
            shown = str(self.path)[:_SHOWN]
            raise SinkError(f"{shown} cannot be a database file ({told_by(error)}): name another file") from error
        if is_folder:
            raise SinkError(f"{self.path} is a folder, not a database file: name a file in it")

    def lost(self, error: SinkError) -> str:
        """A file has no server."""
        return ""

    def kept(self) -> AbstractContextManager[None]:
        """No connection stays open, because it would block other programs."""
        return nullcontext()

    @contextmanager
    def transaction(self, purpose: str, wait_s: float | None = None, attempts: Attempts | None = None) -> Iterator[Any]:
        """See `Database.transaction`."""
        make_folder(self.path.parent)
        lock = _lock_of(Path(self.identity))
        wait_s = WAIT_S if wait_s is None else wait_s
        if not lock.held.acquire(blocking=wait_s > 0):
            raise SinkError(f"cannot {purpose} of {self.url}: it is in use; try again")
        try:
            with told(self.engine, purpose, self.url), self.engine.open(self.path, wait_s) as connection:
                yield connection
        finally:
            lock.held.release()


def is_path(text: str) -> bool:
    """Whether the text is valid as a path: a NUL or half of a surrogate pair is not.

    Example:
        >>> is_path("delays.db"), is_path("a\\0b")
        (True, False)
    """
    return "\0" not in text and is_utf8(text)
