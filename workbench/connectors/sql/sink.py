"""A sink that writes to a table of a database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from workbench.arguments import text_of, true_or_false
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.base import Place, SinkContext
from workbench.connectors.contract.upsert_key import changes_key, check_upsert_key, upsert_key_of
from workbench.connectors.epochs.row_sink import RowSink
from workbench.connectors.sql.database import Database, DatabaseFile, Engine
from workbench.connectors.sql.duckdb import DuckDB
from workbench.connectors.sql.owner import OWNERS, HeldTable
from workbench.connectors.sql.postgresql import PostgreSQL
from workbench.connectors.sql.server import SCHEME, DatabaseServer
from workbench.connectors.sql.sqlite import SQLite
from workbench.connectors.sql.table import COMMITS, UNDO, SqlTable
from workbench.connectors.sql.table_name import TableName
from workbench.errors import PlanError, SettingError, SinkError
from workbench.expressions import ColumnName
from workbench.operators.changelogs.row_kinds import plain_schema
from workbench.operators.contract.base import Operator

ENGINES: tuple[Engine, ...] = (SQLite(), DuckDB())
"""The databases in files."""

_OWN = (COMMITS, OWNERS, UNDO)


@dataclass(frozen=True, init=False)
class SqlSink(RowSink):
    """Writes to a table of a PostgreSQL database, or of an SQLite or DuckDB file.

    Appending is exactly once: the rows since the last barrier are part of the checkpoint, and when it is complete, they
    are committed in one transaction together with its number (table ``workbench_commits``). Committed rows are not
    committed again, and an older checkpoint is not restored. Rows are kept in memory until the barrier.

    Only one job at a time can write to a table (table ``workbench_owners``): a second job is refused when it starts.
    Jobs with different names can append to one table one after the other. If two jobs continue the same savepoint, or
    have the same name, the second one is always refused, because their rows would be mixed.

    Upserts are written as rows arrive, at least once a second, and before each checkpoint: readers need not wait for
    checkpoints. After a failure, rows are written again, so readers can see an earlier row of a key for a while; then
    every key has its correct row. The input must be partitioned by the keys. The changes of a changelog that were
    written since the checkpoint are taken back first (table ``workbench_undo``), so a row that came and went does not
    stay.

    Source: D1: exactly once by a transaction together with its number; upserts are idempotent operations, as in E6.

    Args:
        url: ``sqlite:///path.db`` or ``duckdb:///path.db`` (package ``duckdb``), with four slashes before an absolute
            path; or ``postgresql://[user[:password]@]host[:port]/database`` (package ``adbc-driver-postgresql``), whose
            password is masked wherever the URL is shown, and need not be in it (``PGPASSWORD``, ``~/.pgpass``).
        table: letters, digits and ``_``, also with a schema that exists, as in ``app.orders``; other names in double
            quotes, as in ``app."late orders"``. Without a schema, PostgreSQL takes that of its search path.
        upsert_key: columns, as ``"origin"`` or ``col("origin")``; with them a row replaces the one with the same key.
            No value may be null. Without them rows are appended.
        create: create the table if it does not exist; otherwise it must exist, with a column for each of the stream's
            and, for upserts, a unique index on the key.

    Raises:
        SettingError: an invalid URL, name or key.
        ExpressionError: the key is a computed expression.

    Example:
        >>> SqlSink("sqlite:///delays.db", "delays", upsert_key="origin").describe()
        'sqlite:///delays.db delays by origin'
    """

    url: str = field(repr=False)
    table: str
    upsert_key: tuple[str, ...]
    creates_table: bool
    kind: ClassVar[str] = "sql"

    def __init__(
        self, url: str, table: str, *, upsert_key: ColumnName | Sequence[ColumnName] = (), create: bool = True
    ) -> None:
        database_at(url)
        place = TableName.parsed(text_of(table, "the table name", "delays"))
        if place.name.lower() in _OWN:
            raise SettingError(
                f"the table name {table!r} cannot be used, because the workbench keeps its records in such a table: "
                "choose another name"
            )
        key, creates_table = upsert_key_of(upsert_key), true_or_false(create, "create")
        values = {"url": url, "table": table, "upsert_key": key, "creates_table": creates_table}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """The name of the sink in graphs: its table."""
        return self.table

    @cached_property
    def target(self) -> SqlTable:
        """The table in its database, independent of the working directory."""
        return SqlTable(database_at(self.url), self.table, self.upsert_key)

    def check(self, schema: pa.Schema) -> None:
        """Reject columns that the database cannot store; nothing is created.

        Raises:
            PlanError: key columns that are unknown or not valid, or a package is missing.
            SinkError: a column's name or type, or the file's path, is not valid.
        """
        schema = plain_schema(schema)
        database = self.target.database
        database.check()
        seen: dict[str, str] = {}
        for name, kind in zip(schema.names, schema.types, strict=True):
            if name.lower() in seen or not name or "\0" in name:
                raise SinkError(
                    f"{database.engine.name} cannot tell the column {name!r} from "
                    f"{seen.get(name.lower(), 'no name')!r}: rename it before the sink"
                )
            seen[name.lower()] = name
            if database.engine.column_type(kind) is None:
                raise SinkError(
                    f"{database.engine.name} has no column type for {name!r}, which is {kind}: "
                    "convert or drop it before the sink"
                )
        check_upsert_key(self.upsert_key, schema, self.table)

    def for_changes(self, key: tuple[str, ...] | None, schema: pa.Schema) -> SqlSink:
        """A table whose rows are replaced and deleted by the key of the changelog.

        Raises:
            PlanError: no columns identify a row, or the table has another key.
        """
        if not self.upsert_key and not key:
            raise PlanError(
                f"the table {self.table!r} cannot follow this changelog, in which no columns identify a row: group by "
                "columns, or keep one row of each key with latest_by(...), before the sink"
            )
        given = changes_key(self.upsert_key, key, self.table)
        return SqlSink(self.url, self.table, upsert_key=given, create=self.creates_table)

    def place(self) -> Place:
        """The table in the file; SQL names are not case-sensitive."""
        return Place(self.target.database.identity, self.target.identity.lower())

    def hold(self, context: SinkContext) -> HeldTable:
        """Acquire the table for the job."""
        return HeldTable(self.target.database, self.target.identity, context)

    def committed(self) -> Iterable[object]:
        """The rows of the table."""
        return self.target.rows()

    def describe(self) -> str:
        return f"{self.target.database.url} {self.table}" + (
            f" by {', '.join(self.upsert_key)}" if self.upsert_key else ""
        )

    def create(self, schema: pa.Schema) -> Operator:
        target = replace(self.target, attempts=Attempts(server=self.target.database.url))
        return self._written_by(target, schema, creates_table=self.creates_table)


def database_at(url: str) -> Database:
    """The database that a URL identifies.

    Raises:
        SettingError: not a valid URL, or another database; the message masks credentials.
    """
    if text_of(url, "url", "sqlite:///delays.db").startswith(f"{SCHEME}://"):
        return DatabaseServer(PostgreSQL(), url)
    return DatabaseFile.at(url, ENGINES)
