"""A source over the rows of a PostgreSQL table, in the order of an increasing key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from workbench.arguments import text_of, true_or_false, whole_number
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.block_reader import check_event_time
from workbench.connectors.contract.retries import Retries
from workbench.connectors.contract.secrets import revealed_url
from workbench.connectors.sql.database import quoted, quoted_list
from workbench.connectors.sql.notices import Notices
from workbench.connectors.sql.postgresql import PostgreSQL
from workbench.connectors.sql.server import SCHEME, DatabaseServer
from workbench.connectors.sql.session import Session, fact_of, fixed, may_return
from workbench.durations import Duration, parse_duration
from workbench.elements import Records
from workbench.errors import PlanError, SettingError, SourceError, unknown
from workbench.expressions import ColumnName, column_name
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.operators.snapshots.pieces import value_in
from workbench.origin import caller
from workbench.raised import first_line_of
from workbench.redaction import redacted

_LEAST = -(2**63)
_REST_US_MIN = 2_000
_LISTEN_US = 16_000
"""How often to check for notifications."""
_LISTENS_US = 10_000_000
"""How long to rely on notifications alone: a server that hangs sends none."""
_ANSWER_MS = 10_000
_CONNECT_S = 2
_SETTLED = "workbench_settled"


@dataclass(frozen=True, init=False)
class SqlSource(Source):
    """The rows of a PostgreSQL table that only grows, in the order of an increasing key.

    The position in the checkpoint is the last key. Transactions can commit in a different order than they assign keys,
    so a row is read only when all transactions that began before its own have ended (``pg_snapshot_xmin``): a long
    transaction delays the rows after it, and no row is skipped. The source does not see later updates and deletions.

    Source: F2-8: recovery needs sources that can be read again from a position.

    Args:
        url: ``postgresql://[user[:password]@]host[:port]/database``; ``${NAME}`` in it is an environment variable.
        table: its name.
        schema: names and types of the columns to read; values are converted to these types.
        key: an increasing integer column with an index, such as an identity; it must be in the schema.
        event_time: the event-time column (timestamp, date, or int64 microseconds), or None.
        start_after: the last key to skip when there is no checkpoint.
        bounded: stop after the largest key that exists at the start.
        poll: the maximum time between two looks for new rows.
        notify: a channel: ``NOTIFY`` on it wakes the source within 20 ms, so that `poll` can be long (package
            ``psycopg``). A trigger can notify: ``AFTER INSERT ... FOR EACH STATEMENT``. The source looks every 10 s
            nevertheless, because a server that hangs does not notify.
        retries: the number of retries in a row while the server is unreachable.

    Raises:
        SettingError: an invalid URL, name, duration or number.
        PlanError: the key or event-time column does not exist.
        MissingPackageError: the package adbc-driver-postgresql is not installed.
        SourceError: while running: no connection, no such table, or a value that does not fit its column.

    Example::

        schema = {"id": pa.int64(), "city": pa.string(), "at": pa.timestamp("us", "UTC")}
        orders = wb.Stream.from_source(wb.SqlSource("postgresql://localhost/shop", "orders", schema, event_time="at"))
    """

    url: str = field(repr=False)
    table: str
    schema: pa.Schema = field(repr=False)
    key: str
    event_time: str | None
    start_after: int | None
    bounded: bool
    poll_us: int
    notify: str | None
    retries: int
    kind: ClassVar[str] = "sql"

    def __init__(
        self,
        url: str,
        table: str,
        schema: SchemaLike,
        *,
        key: ColumnName = "id",
        event_time: ColumnName | None = None,
        start_after: int | None = None,
        bounded: bool = False,
        poll: Duration = "100ms",
        notify: str | None = None,
        retries: int = 12,
    ) -> None:
        if not text_of(url, "url", "postgresql://localhost/shop").startswith(f"{SCHEME}://"):
            raise SettingError(f"url is {redacted(url)!r}: write {SCHEME}://[user[:password]@]host[:port]/database")
        if not text_of(table, "table", "orders"):
            raise SettingError("table is '': write the name of a table, such as 'orders'")
        columns, name = declared_schema(schema, "the source", caller()), column_name(key, "key")
        if name not in columns.names:
            raise PlanError(unknown("column", name, columns.names))
        if not pa.types.is_integer(columns.field(name).type):
            raise PlanError(f"the key {name!r} is {columns.field(name).type}: choose an integer column that grows")
        values = {
            "url": url,
            "table": table,
            "schema": columns,
            "key": name,
            "event_time": None if event_time is None else column_name(event_time, "event_time"),
            "start_after": None if start_after is None else whole_number(start_after, "start_after", _LEAST),
            "bounded": true_or_false(bounded, "bounded"),
            "poll_us": parse_duration(poll, "poll"),
            "notify": None if notify is None else text_of(notify, "notify", "orders_added"),
            "retries": whole_number(retries, "retries", 0),
        }
        for attribute, value in values.items():
            object.__setattr__(self, attribute, value)
        check_event_time(columns, self.event_time)
        self.server.check()
        if self.notify is not None:
            Notices(url, self.notify)

    @cached_property
    def server(self) -> DatabaseServer:
        """The database."""
        return DatabaseServer(PostgreSQL(), self.url)

    def describe(self) -> str:
        return f"{self.table} of {self.server.url} by {self.key}"

    def create(self) -> SourceReader:
        return SqlReader(self)


class SqlReader(SourceReader):
    """Reads the table in the first subtask, with one query for each poll that finds nothing fetched."""

    shares_event_time = False

    def __init__(self, source: SqlSource) -> None:
        self._source = source
        self._session: Session | None = None
        self._last = _LEAST if source.start_after is None else source.start_after
        self._end: int | None = None
        self._is_own = False
        self._retries = Retries(source.retries, server=source.server.url)
        self._rest_us = _REST_US_MIN
        self._notices = None if source.notify is None else Notices(source.url, source.notify)
        self._look_us = 0
        self._unsettled = False
        self._is_behind, self._told_us = True, 0

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        self._is_own = context.subtask == 0

    def splits(self) -> Sequence[str]:
        return (self._source.table,) if self._is_own and not self._ended else ()

    @property
    def outage(self) -> Outage | None:
        return self._retries.outage

    def progress(self) -> Mapping[str, SplitProgress]:
        if not self.splits():
            return {}
        last = "the beginning" if self._last == _LEAST else f"{self._source.key} {self._last}"
        return {self._source.table: SplitProgress(last, None if self._is_behind else 0, self._told_us)}

    @property
    def _ended(self) -> bool:
        return self._end is not None and self._last >= self._end

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        if not self._is_own or self._ended:
            return Exhausted()
        now_us = self._clock.now_us()
        if now_us < self._retries.retry_us:
            return WaitUntil(self._retries.retry_us)
        if now_us < self._look_us and self._notices is not None and not self._notices.arrived():
            return WaitUntil(min(now_us + _LISTEN_US, self._look_us))
        self._look_us = 0
        try:
            if self._source.bounded and self._end is None:
                self._end = self._largest()
                return WaitUntil(now_us + 1)  # it may have no rows
            table = self._fetch(max_records)
            self._is_behind, self._told_us = self._unsettled or table.num_rows == max_records, now_us
            self._retries.succeeded()
        except PostgreSQL().errors as error:
            return self._failed(error, now_us)
        if not table.num_rows:
            rest_us = self._rest_us
            self._rest_us = min(2 * rest_us, max(self._source.poll_us, 1))
            if self._notices is not None and not self._unsettled:
                self._look_us = now_us + min(self._source.poll_us, _LISTENS_US)
                rest_us = min(rest_us, _LISTEN_US)
            return WaitUntil(now_us + rest_us)
        self._rest_us = _REST_US_MIN
        return self._delivered(table)

    def snapshot(self) -> Snapshot:
        return {"last": self._last, "end": self._end} if self._is_own else {}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            if "last" in snapshot:
                self._last = value_in(snapshot, "last", int)
                self._end = value_in(snapshot, "end", int | None)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
        if self._notices is not None:
            self._notices.close()

    def _query(self, sql: str, parameters: tuple[int, ...] = ()) -> pa.Table:
        if self._session is None:
            self._session = Session(revealed_url(self._source.url), Attempts(0.0), _CONNECT_S)
            self._session.execute(f"SET statement_timeout = {_ANSWER_MS}")
        if self._notices is not None:
            self._notices.listen()  # before the query: what is added after it is notified
        return self._session.query(sql, parameters)

    def _largest(self) -> int:
        key, table = quoted(self._source.key), quoted(self._source.table)
        found = self._query(f"SELECT max({key})::bigint AS last FROM {table}")["last"][0].as_py()
        return _LEAST if found is None else int(found)

    def _fetch(self, count: int) -> pa.Table:
        """The next rows, except rows before which a running transaction can still add others."""
        source = self._source
        key, names = quoted(source.key), quoted_list(source.schema.names)
        end = "" if self._end is None else f" AND {key} <= {self._end}"
        rows = self._query(
            f"SELECT {names}, age(xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid) AS {_SETTLED}"
            f" FROM {quoted(source.table)} WHERE {key} > $1{end} ORDER BY {key} LIMIT {count}",
            (self._last,),
        )
        settled = rows[_SETTLED].to_pylist()
        self._unsettled = False in settled
        return rows.drop_columns([_SETTLED]).slice(0, settled.index(False) if False in settled else None)

    def _delivered(self, table: pa.Table) -> Fetched:
        source = self._source
        try:
            rows = table.cast(source.schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise SourceError(
                f"rows of {source.table!r} after {source.key} {self._last} do not have these columns: "
                f"{first_line_of(error)}; declare other types"
            ) from error
        keys = rows[source.key].to_pylist()
        self._last = keys[-1]
        batch = rows.combine_chunks().to_batches()[0]
        place = f"{source.table} of {source.server.url}, {source.key}"
        return Fetched(Records.timed(batch, source.event_time), source.table, where=lambda row: f"{place} {keys[row]}")

    def _failed(self, error: Exception, now_us: int) -> WaitUntil:
        """Wait before the next attempt, or give up."""
        self.close()
        source = self._source
        fact = fact_of(error, source.url)
        retry_us = self._retries.failed(now_us, fact) if may_return(error) else None
        if retry_us is None:
            raise SourceError(f"cannot read {source.table!r} of {source.server.url}: {fixed(fact)}") from error
        return WaitUntil(retry_us)
