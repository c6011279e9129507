"""Connections to PostgreSQL whose calls end, also where the server accepts them and then never answers.

The driver waits for an answer as long as it takes, and statement time-outs and keep-alives do not help: a server that
hangs measures no time, and the kernel of its machine confirms what it is sent. So each call is made on a thread of the
connection. When it takes long, another connection is opened: a server that answers that one is only busy. Otherwise the
thread and its connection are left behind; they end when the server goes on, which undoes the transaction.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import Any, TypeVar

import pyarrow as pa

from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.secrets import hidden
from workbench.packages import needed
from workbench.raised import first_line_of
from workbench.redaction import redacted

_CONNECT_S, _PROBE_S = 3, 2
_LIMITS = {"tcp_user_timeout": 10_000}
"""Milliseconds until a connection whose other end does not confirm what it is sent is lost."""
_SILENT_S = 3.0
"""A call that takes longer may be one to a server that hangs."""
_TURN_S = 0.25
_WORDS = ("[libpq] Failed to connect:", "ERROR: ", "Invalid Input Error: ")
"""The driver's own, PostgreSQL's or DuckDB's, before what is the matter."""
_FIXES = {
    "could not translate host name": "check the host in the URL",
    "refused": "start the server, or check host and port",
    "timeout expired": "start the server, or check host and port",
    "does not answer": "find out whether the server hangs, or restart it",
    "certificate verify failed": "name the file of the authority that signed it (sslrootcert), or renew it",
    "does not match host name": "connect to a name that its certificate has",
    "password": "check the user and the password in the URL",
    "permission denied": "grant the user this permission",
    "does not exist": "check its name, or create it first",
    "no such table": "check its name, or create it first",
    'on socket "': "start the server, or check host and port",
}
"""Fixes by words of a fact, the most specific first."""
_PLACE = re.compile(r"\?")
T = TypeVar("T")


class ServerHangsError(Exception):
    """The server accepts connections and does not answer."""


class Session:
    """A connection; each statement is a transaction, unless one begins.

    Args:
        url: of the database.
        attempts: of its user, who may give up.
        connect_s: how long the server may take to accept it, unless the URL says (``connect_timeout``).
        silent_s: a call that takes longer may be one to a server that hangs; None: `_SILENT_S`.

    Attributes:
        attempts: as above.
        statement: of the user of the connection, who keeps it here; empty: none yet.
    """

    def __init__(
        self, url: str, attempts: Attempts, connect_s: int = _CONNECT_S, silent_s: float | None = None
    ) -> None:
        self.attempts = attempts
        self.statement = ""
        self._silent_s = _SILENT_S if silent_s is None else silent_s
        self._url, self._connect_s = url, connect_s
        self._raw: Any = None
        self._cursor: Any = None
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="workbench-postgresql", daemon=True)
        self._thread.start()
        try:
            self._call(self._connect, driver_s=connect_s, probes=False)
        except BaseException:
            self.close()
            raise

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> Session:
        """Execute one statement, with ``?`` for each parameter; its rows are for `fetchall`."""
        if parameters:
            self._call(lambda: self._cursor.execute(numbered(statement), tuple(parameters)))
        else:
            self._call(lambda: self._cursor.execute(statement))
        return self

    def execute_each(self, statement: str, parameters: Sequence[Sequence[object]]) -> None:
        """Execute one statement with each of these parameters."""
        self._call(lambda: self._cursor.executemany(numbered(statement), [tuple(each) for each in parameters]))

    def query(self, statement: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The rows of one statement, whose parameters are ``$1``, ``$2``, ..."""

        def rows() -> pa.Table:
            self._cursor.execute(statement, tuple(parameters) or None)
            return self._cursor.fetch_arrow_table()

        return self._call(rows)

    @property
    def description(self) -> Any:
        """Of the result's columns, as in the DB-API."""
        return self._cursor.description

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self._call(self._cursor.fetchone)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        rows: list[tuple[Any, ...]] = self._call(self._cursor.fetchall)
        return rows

    def ingest(self, table: str, rows: pa.Table, *, schema: str = "", temporary: bool = False) -> None:
        """Append rows to a table that exists, with COPY.

        Args:
            table: its name.
            rows: to append.
            schema: of the table; empty: the first one of the search path that has it.
            temporary: the table is a temporary one.
        """
        place = {"db_schema_name": schema} if schema else {}
        self._call(lambda: self._cursor.adbc_ingest(table, rows, mode="append", temporary=temporary, **place))

    def close(self) -> None:
        """Close the connection, which rolls back; never waits for a server that hangs, and never raises."""
        self._asked.put(None)
        self._thread.join(_TURN_S)

    def _connect(self) -> None:
        url = limited(self._url, connect_timeout=self._connect_s, **_LIMITS)
        self._raw = _driver().connect(url, autocommit=True)
        self._cursor = self._raw.cursor()

    def _call(self, act: Callable[[], T], *, driver_s: float = 0.0, probes: bool = True) -> T:
        """Call the driver, which itself waits for at most `driver_s`, if that is known.

        Raises:
            ServerHangsError: the server does not answer.
        """
        found: list[T] = []
        failed: list[BaseException] = []
        done = threading.Event()

        def answer() -> None:
            try:
                found.append(act())
            except BaseException as error:  # noqa: BLE001  raised by the caller
                failed.append(error)
            done.set()

        self._asked.put(answer)
        waited_s, due_s = 0.0, driver_s + self._silent_s
        while not done.wait(_TURN_S):
            waited_s += _TURN_S
            if self.attempts.is_over:
                raise ServerHangsError("the job ends before the server answers")
            if waited_s >= due_s:
                if not (probes and self._is_alive()):
                    raise ServerHangsError("the server does not answer")
                due_s = waited_s + self._silent_s
        if failed:
            raise failed[0]
        return found[0]

    def _is_alive(self) -> bool:
        try:
            Session(self._url, self.attempts, _PROBE_S, self._silent_s).close()
        except (_driver().Error, ServerHangsError) as error:
            return not may_return(error)  # it has too many connections
        return True

    def _work(self) -> None:
        while (call := self._asked.get()) is not None:
            call()
        with suppress(_driver().Error):
            for each in (self._cursor, self._raw):
                if each is not None:
                    each.close()


def connected(url: str, attempts: Attempts) -> Session:
    """A connection, as soon as the server accepts one."""
    while True:
        try:
            session = Session(url, attempts)
        except (_driver().OperationalError, ServerHangsError) as error:
            if not may_return(error) or not attempts.again(fact_of(error, url)):
                raise
        else:
            attempts.succeeded()
            return session


def may_return(error: BaseException | None) -> bool:
    """Whether a connection failed because the server is away, starts or hangs."""
    said = str(error)
    return isinstance(error, ServerHangsError) or any(
        words in said
        for words in (
            *("refused", "No such file", "starting up", "accepting connections", "in recovery mode", "shutting down"),
            *("terminat", "closed the connection", "no connection", "not open", "timeout expired", "timed out"),
        )
    )


def fact_of(error: BaseException, url: str) -> str:
    """What an error of the driver says, on one line, without its own words and without secrets.

    Args:
        error: of the driver.
        url: of the database, with references to secrets.

    Example:
        >>> fact_of(ValueError("IO: [libpq] Failed to connect: connection refused"), "postgresql://localhost/shop")
        'connection refused'
    """
    fact = redacted(hidden(first_line_of(error), url))
    for words in _WORDS:
        fact = fact.partition(words)[2].lstrip() or fact
    return fact


def fixed(fact: str, fix: str = "") -> str:
    """A fact with the likely fix.

    Args:
        fact: as of `fact_of`.
        fix: of a fact without known words; empty: none.

    Example:
        >>> fixed('relation "orders" does not exist')
        'relation "orders" does not exist; check its name, or create it first'
    """
    fix = next((each for words, each in _FIXES.items() if words in fact), fix)
    return f"{fact}; {fix}" if fix else fact


def limited(url: str, **limits: int) -> str:
    """A URL with limits that it does not have.

    Example:
        >>> limited("postgresql://localhost/shop?connect_timeout=9", connect_timeout=2, keepalives=1)
        'postgresql://localhost/shop?connect_timeout=9&keepalives=1'
    """
    for name, limit in limits.items():
        if name not in url:
            url = f"{url}{'&' if '?' in url else '?'}{name}={limit}"
    return url


def numbered(statement: str) -> str:
    """A statement with the placeholders of PostgreSQL.

    Example:
        >>> print(numbered("DELETE FROM counts WHERE k = ? AND n < ?"))
        DELETE FROM counts WHERE k = $1 AND n < $2
    """
    numbers = count(1)
    return _PLACE.sub(lambda _: f"${next(numbers)}", statement)


def driver_error() -> type[Exception]:
    """The base class of the driver's exceptions."""
    base: type[Exception] = _driver().Error
    return base


def _driver() -> Any:
    return needed("adbc_driver_postgresql.dbapi", "writing to PostgreSQL")
