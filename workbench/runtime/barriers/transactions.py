"""Transactions for a whole run: each record, or a few, is one atomic write to a store (MillWheel, Dataflow)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.arguments import text_of
from workbench.errors import SettingError
from workbench.redaction import redacted
from workbench.runtime.barriers.fault_tolerance import FaultTolerance

if TYPE_CHECKING:
    from workbench.connectors.sql.database import DatabaseFile
    from workbench.connectors.sql.server import DatabaseServer

MEMORY = "memory"
COALESCE_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Transactional:
    """How tasks write their transactions.

    Attributes:
        coalesce: records in a transaction, at most.
        strong: productions are durable before they are sent.
        store: the database that the transactions are written to; None: memory.
    """

    coalesce: int = 1
    strong: bool = True
    store: DatabaseFile | DatabaseServer | None = None

    @property
    def place(self) -> str:
        """``"memory"``, or the URL of the database without secrets."""
        return MEMORY if self.store is None else redacted(self.store.url)


TRANSACTIONS = FaultTolerance(
    name="transactions",
    title="transactions",
    help="each record is one atomic write of state, productions and record ids; only the failed task restarts",
    tunable=False,
    live=("coalesce",),
    transactions=Transactional(),
)


def transactions(coalesce: int | str = 1, strong: bool | str = True, store: str = "memory") -> FaultTolerance:
    """Write each record's effects in one transaction, and acknowledge the record only then (MillWheel, Dataflow).

    A task checks each record's id, processes the record, writes its state, its productions and the id to a store in one
    atomic write, acknowledges the record to its sender, and then sends the productions. What is not acknowledged is
    sent again. So when a task fails, only this task restarts, and no checkpoint is needed for it. Sinks write at
    ``checkpoint_interval``.

    Source: MillWheel in A and C; D5 for what the others cost; Akidau et al., "MillWheel: Fault-Tolerant Stream
        Processing at Internet Scale", VLDB 2013.

    Args:
        coalesce: records in a transaction, at most; a task that has no more input does not wait for them. 1: each
            record costs a write. A running job can change it: ``job.tune(coalesce=1000)``.
        strong: productions are durable before they are sent. False (weak productions): they are sent first, and the
            write follows when all of them are acknowledged; each operator then needs a single sender, and functions
            that return the same for the same input.
        store: ``"memory"``: it outlives tasks, and another process resumes from the latest checkpoint. Or a database,
            from whose last transactions another process continues when this one was killed:
            ``"sqlite:///transactions.db"`` or ``"postgresql://host/database"``. Passwords are not shown.

    Returns:
        The value for ``run(..., fault_tolerance=...)``.

    Raises:
        SettingError: not such a number or truth value, or no such store.

    Example:
        >>> print(transactions(), transactions(coalesce=1000).guarantee)
        transactions:coalesce=1,strong=true,store=memory exactly-once
    """
    url = text_of(store, "store", "sqlite:///transactions.db")
    found = Transactional(_coalesce(coalesce), _truth(strong), None if url == MEMORY else store_at(url))
    knobs = (("coalesce", str(found.coalesce)), ("strong", str(found.strong).lower()), ("store", url))
    return replace(TRANSACTIONS, transactions=found, knobs=knobs)


def store_at(url: str) -> DatabaseFile | DatabaseServer:
    """The database of a URL; nothing is opened.

    Raises:
        SettingError: not a URL of SQLite or PostgreSQL; the message masks passwords.

    Example:
        >>> print(store_at("postgresql://ann:pa55@db.example/jobs").url)
        postgresql://***@db.example/jobs
    """
    from workbench.connectors.sql.database import DatabaseFile  # not imported by a program without a database
    from workbench.connectors.sql.postgresql import PostgreSQL
    from workbench.connectors.sql.server import SCHEME, DatabaseServer
    from workbench.connectors.sql.sqlite import SQLite

    if url.startswith(f"{SCHEME}://"):
        return DatabaseServer(PostgreSQL(), url)
    if ":" not in url:
        raise SettingError(
            f"store is {url!r}: write {MEMORY!r}, 'sqlite:///transactions.db' or '{SCHEME}://host/database'"
        )
    return DatabaseFile.at(url, (SQLite(),))


def _coalesce(value: int | str) -> int:
    try:
        records = int(value)
    except (TypeError, ValueError):
        records = 0
    if isinstance(value, bool | float) or not 1 <= records <= COALESCE_MAX:
        raise SettingError(f"coalesce is {value!r}: write a number of records from 1 to {COALESCE_MAX:,}")
    return records


def _truth(value: bool | str) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise SettingError(f"strong is {value!r}: write true or false")
    return text == "true"
