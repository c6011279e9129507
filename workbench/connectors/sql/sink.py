"""A sink that writes to a table of a database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import pyarrow as pa

from workbench.arguments import text_of, true_or_false
from workbench.connectors.contract.base import Guarantee
from workbench.connectors.sql.append import AppendLogic, check_restore
from workbench.connectors.sql.database import Database, Engine
from workbench.connectors.sql.duckdb import DuckDB
from workbench.connectors.sql.sqlite import SQLite
from workbench.connectors.sql.table import COMMITS, SqlTable
from workbench.connectors.sql.upsert import UpsertLogic
from workbench.errors import PlanError, SettingError, SinkError, unknown
from workbench.operators.contract.base import Operator, Snapshot
from workbench.state.key_columns import check_keys

ENGINES: tuple[Engine, ...] = (SQLite(), DuckDB())

Mode = Literal["append", "upsert"]
_MODES = ("append", "upsert")
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


@dataclass(frozen=True, init=False)
class SqlSink:
    """Writes to a table of an SQLite or DuckDB file.

    Appending is exactly once: the rows since the last barrier travel in the checkpoint, and when it is complete they
    are committed in one transaction together with its number (table ``workbench_commits``). What was committed is not
    committed again, and a checkpoint that lies behind it is not restored. Of two jobs that go on from one savepoint
    into the same table, or that have one name, the second one to commit fails: give it a table of its own. Jobs of
    different names may append to one table. Rows are kept in memory until the barrier.

    Upserting writes as rows come, at least once a second, and before each checkpoint: readers need not wait for
    checkpoints. After a failure rows are written again, so a reader may see a key go back for a while; then every key
    has the row that it would have had. The input must be partitioned by the keys.

    Source: D1: exactly once by a transaction together with its number; upserts are idempotent operations, as those of
    E6.

    Args:
        url: ``sqlite:///path.db`` or ``duckdb:///path.db`` (package ``duckdb``); four slashes before an absolute path.
        table: letters, digits and ``_``.
        mode: ``"append"``, or ``"upsert"``: a row takes the place of the one with the same keys.
        keys: key columns, for upserts; none of them may be null, nor NaN in SQLite, which takes that for null.
        create: create the table where there is none; otherwise it must exist, with a column for each of the stream's
            and, for upserts, a unique index on the keys.

    Raises:
        SettingError: a URL, name or mode that cannot be used, upserts without keys, or keys without upserts.

    Example:
        >>> SqlSink("sqlite:///delays.db", "delays", mode="upsert", keys=["origin"]).describe()
        'sqlite:///delays.db delays by origin'
    """

    url: str
    table: str
    mode: Mode
    keys: tuple[str, ...]
    creates_table: bool
    kind: ClassVar[str] = "sink"

    def __init__(
        self, url: str, table: str, *, mode: Mode = "append", keys: Sequence[str] | None = None, create: bool = True
    ) -> None:
        Database.at(url, ENGINES)
        if _TABLE.fullmatch(text_of(table, "the table name", "delays")) is None or table == COMMITS:
            raise SettingError(
                f"the table name {table!r} cannot be used: write letters, digits and '_', not starting with a digit, "
                f"at most 63, and not {COMMITS!r}"
            )
        if mode not in _MODES:
            raise SettingError(unknown("mode", mode, _MODES))
        columns = (keys,) if isinstance(keys, str) else tuple(keys or ())
        if mode == "upsert" and not columns:
            raise SettingError("upserts need keys: name the columns that tell rows apart, keys=['origin']")
        if mode == "append" and columns:
            raise SettingError(f"appended rows have no keys, but keys is {', '.join(columns)}: add mode='upsert'")
        creates_table = true_or_false(create, "create")
        values = {"url": url, "table": table, "mode": mode, "keys": columns, "creates_table": creates_table}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """Of the sink in graphs: its table's."""
        return self.table

    @property
    def guarantee(self) -> Guarantee:
        """What it can keep: upserts are written again after a failure, to the same effect."""
        return "exactly-once" if self.mode == "append" else "at-least-once"

    @property
    def guarantee_reason(self) -> str:
        """Why it is no more."""
        if self.mode == "append":
            return "commits with the checkpoints"
        return (
            "writes the rows since the last checkpoint again after a failure: every key converges to the row of a run "
            "without failures, but a reader may see it go back for a while"
        )

    @cached_property
    def target(self) -> SqlTable:
        """The table in its database, which stays when the working directory changes."""
        return SqlTable(Database.at(self.url, ENGINES), self.table, self.keys)

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
        try:
            check_keys(self.keys, schema)
        except PlanError as error:
            raise PlanError(f"the table {self.table!r} cannot be keyed so: {error}") from error
        for key in self.keys:
            if database.engine.rounds(kind := schema.field(key).type):
                raise SinkError(
                    f"{database.engine.name} rounds the key {key!r}, which is {kind}, so that two keys may become one: "
                    "convert it to microseconds before the sink"
                )

    def check_fresh(self, job: str, uid: str) -> None:
        """Refuse to start afresh behind the rows that this job has committed to the table.

        Raises:
            CommittedRowsError: it has committed some.
            SinkError: another program has the database locked.
        """
        if self.mode == "append":
            self.target.check_fresh(f"{job}/{uid}")

    def check_restore(self, snapshots: Sequence[Snapshot], schema: pa.Schema) -> None:
        """Refuse to go back behind committed rows, and what no sink saves.

        Args:
            snapshots: of all subtasks, of one checkpoint.
            schema: of the rows.

        Raises:
            SinkError: the table has rows of later checkpoints.
            CheckpointError: the rows had other columns, or no sink of this kind saves that.
        """
        if self.mode == "append":
            check_restore(self.target, snapshots, schema)

    def describe(self) -> str:
        return f"{self.url} {self.table}" + (f" by {', '.join(self.keys)}" if self.keys else "")

    def create(self, schema: pa.Schema) -> Operator:
        logic = AppendLogic if self.mode == "append" else UpsertLogic
        return logic(self.target, schema, creates_table=self.creates_table)
