"""A sink that writes to a table of a database."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from workbench.arguments import text_of, true_or_false
from workbench.connectors.contract.base import Guarantee, Place, Sink, SinkContext
from workbench.connectors.contract.upsert_key import check_upsert_key, upsert_key_of
from workbench.connectors.sql.append import AppendLogic, check_restore
from workbench.connectors.sql.database import Database, Engine
from workbench.connectors.sql.duckdb import DuckDB
from workbench.connectors.sql.owner import OWNERS, TableOwner
from workbench.connectors.sql.sqlite import SQLite
from workbench.connectors.sql.table import COMMITS, SqlTable
from workbench.connectors.sql.upsert import UpsertLogic
from workbench.errors import SettingError, SinkError
from workbench.expressions import ColumnName
from workbench.operators.contract.base import Operator, Snapshot

ENGINES: tuple[Engine, ...] = (SQLite(), DuckDB())

_OWN = (COMMITS, OWNERS)
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


@dataclass(frozen=True, init=False)
class SqlSink(Sink):
    """Writes to a table of an SQLite or DuckDB file.

    Appending is exactly once: the rows since the last barrier travel in the checkpoint, and when it is complete they
    are committed in one transaction together with its number (table ``workbench_commits``). What was committed is not
    committed again, and a checkpoint that lies behind it is not restored. Rows are kept in memory until the barrier.

    One job at a time writes to a table (table ``workbench_owners``): another one that starts meanwhile is refused. Jobs
    of different names may append to one table one after the other; of two that continue one savepoint, or that have one
    name, the second one is refused also then, because their rows would be mixed.

    Upserting writes as rows come, at least once a second, and before each checkpoint: readers need not wait for
    checkpoints. After a failure rows are written again, so a reader may see a key go back for a while; then every key
    has the row that it would have had. The input must be partitioned by the keys.

    Source: D1: exactly once by a transaction together with its number; upserts are idempotent operations, as those of
    E6.

    Args:
        url: ``sqlite:///path.db`` or ``duckdb:///path.db`` (package ``duckdb``); four slashes before an absolute path.
        table: letters, digits and ``_``.
        upsert_key: columns, as ``"origin"`` or ``col("origin")``; with them a row takes the place of the one with the
            same key. None of them may be null, nor NaN in SQLite, which takes that for null. Without them rows are
            appended.
        create: create the table where there is none; otherwise it must exist, with a column for each of the stream's
            and, for upserts, a unique index on the key.

    Raises:
        SettingError: a URL, name or key that cannot be used.
        ExpressionError: the key computes something.

    Example:
        >>> SqlSink("sqlite:///delays.db", "delays", upsert_key="origin").describe()
        'sqlite:///delays.db delays by origin'
    """

    url: str
    table: str
    upsert_key: tuple[str, ...]
    creates_table: bool

    def __init__(
        self, url: str, table: str, *, upsert_key: ColumnName | Sequence[ColumnName] = (), create: bool = True
    ) -> None:
        Database.at(url, ENGINES)
        if _TABLE.fullmatch(text_of(table, "the table name", "delays")) is None or table in _OWN:
            raise SettingError(
                f"the table name {table!r} cannot be used: write letters, digits and '_', not starting with a digit, "
                f"at most 63, and not {' or '.join(map(repr, _OWN))}"
            )
        key, creates_table = upsert_key_of(upsert_key), true_or_false(create, "create")
        values = {"url": url, "table": table, "upsert_key": key, "creates_table": creates_table}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """Of the sink in graphs: its table's."""
        return self.table

    @property
    def guarantee(self) -> Guarantee:
        """What it can keep: upserts are written again after a failure, to the same effect."""
        return "at-least-once" if self.upsert_key else "exactly-once"

    @property
    def guarantee_reason(self) -> str:
        """Why it is no more."""
        if not self.upsert_key:
            return ""
        return (
            "writes the rows since the last checkpoint again after a failure: every key converges to the row of a run "
            "without failures, but a reader may see it go back for a while"
        )

    @cached_property
    def target(self) -> SqlTable:
        """The table in its database, which stays when the working directory changes."""
        return SqlTable(Database.at(self.url, ENGINES), self.table, self.upsert_key)

    def check(self, schema: pa.Schema) -> None:
        """Refuse columns that the database cannot hold; nothing is created.

        Raises:
            PlanError: unknown or unfit key columns, or a package is missing.
            SinkError: a column's name or type, or the file's path, cannot be used.
        """
        database = self.target.database
        database.check()
        seen: dict[str, str] = {}
        for field in schema:
            if field.name.lower() in seen or not field.name or "\0" in field.name:
                raise SinkError(
                    f"{database.engine.name} cannot tell the column {field.name!r} from "
                    f"{seen.get(field.name.lower(), 'no name')!r}: rename it before the sink"
                )
            seen[field.name.lower()] = field.name
            if database.engine.column_type(field.type) is None:
                raise SinkError(
                    f"{database.engine.name} has no column type for {field.name!r}, which is {field.type}: "
                    "convert or drop it before the sink"
                )
        check_upsert_key(self.upsert_key, schema, self.table)
        for key in self.upsert_key:
            if database.engine.rounds(kind := schema.field(key).type):
                raise SinkError(
                    f"{database.engine.name} rounds the key {key!r}, which is {kind}, so that two keys may become one: "
                    "convert it to microseconds before the sink"
                )

    def place(self) -> Place:
        """The table in the file; SQL takes letters of both cases for the same."""
        return Place(os.path.realpath(self.target.database.path), self.table.lower())

    def hold(self, context: SinkContext) -> TableOwner:
        """Take the table for the job."""
        return TableOwner(self.target.database, self.table, context)

    def check_fresh(self, context: SinkContext) -> None:
        """Refuse to start afresh behind the rows that this job has appended to the table."""
        if not self.upsert_key:
            self.target.check_fresh(f"{context.job}/{context.uid}")

    def check_restore(self, context: SinkContext, snapshots: Sequence[Snapshot]) -> None:
        """Refuse to go back behind appended rows, and what no sink saves."""
        if not self.upsert_key:
            check_restore(self.target, snapshots, context.schema, context.checkpoint)

    def committed(self) -> Iterable[object]:
        """The rows of the table."""
        return self.target.rows()

    def describe(self) -> str:
        return f"{self.url} {self.table}" + (f" by {', '.join(self.upsert_key)}" if self.upsert_key else "")

    def create(self, schema: pa.Schema) -> Operator:
        logic = UpsertLogic if self.upsert_key else AppendLogic
        return logic(self.target, schema, creates_table=self.creates_table)
