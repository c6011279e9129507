"""A source over the rows of a PostgreSQL table, in the order of an increasing key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.arguments import text_of, true_or_false, whole_number
from workbench.connectors.columns.exact import fitted
from workbench.connectors.columns.postgresql_columns import COLUMNS, SETTINGS, selected
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.block_reader import check_event_time
from workbench.connectors.contract.retries import Retries
from workbench.connectors.contract.secrets import cause_of, revealed_url, shown
from workbench.connectors.sql.notices import Notices
from workbench.connectors.sql.polled_table import PolledTable, place_of
from workbench.connectors.sql.postgresql import PostgreSQL
from workbench.connectors.sql.server import SCHEME, DatabaseServer
from workbench.connectors.sql.session import Session, fact_of, fixed, may_return
from workbench.connectors.sql.settling import LEAST, Settling
from workbench.connectors.sql.table_name import quoted
from workbench.durations import Duration, format_duration, parse_duration
from workbench.elements import Records
from workbench.errors import PlanError, SettingError, SourceError, unknown
from workbench.expressions import ColumnName, column_name
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.operators.snapshots.pieces import value_in
from workbench.origin import caller

_REST_US_MIN = 2_000
_LISTEN_US = 16_000
"""How often to check for notifications."""
_LISTENS_US = 10_000_000
"""How long to rely on notifications alone: a server that hangs sends none."""
_ANSWER_MS = 10_000
_CONNECT_S = 2
_SETTLED = "workbench_settled"
_LOOK_BACK_US = 1_000_000
"""How often to look at the table again, and for rows below the position."""


@dataclass(frozen=True, init=False)
class SqlSource(Source):
    """The rows of a PostgreSQL table that only grows, in the order of an increasing key.

    The position in the checkpoint is the last key: a failure skips and doubles no row that the source has read. But the
    source polls, and polling a table without locking it can miss rows, because transactions commit in a different order
    than they draw their keys, and a row that is committed below the position is not read. Only the server's log has all
    rows in the order of the commits. The source does three things about that:

    - A row is read only when all transactions that wrote before its own have ended (``pg_snapshot_xmin``): a long
      transaction delays the rows after it.
    - A row that is committed late lands in a gap between the keys of other rows. Rows without a gap before them are
      read at once; rows after a gap wait for `settle`, counted from when a key as large as theirs was first visible.
      After a restart, they wait anew.
    - Once a second, and at the end of a bounded read, the source looks again into the last 500 gaps. If it finds a row
      there, it fails and names the row; the position of a checkpoint includes these gaps, so it fails again when the
      job resumes from a checkpoint behind the row.

    What it still misses is a row that is committed more than `settle` later than a larger key (a session that draws
    ids long before it writes, a sequence with ``CACHE``, a slow ``BEFORE`` trigger): with an error if the row lands in
    one of the last 500 gaps while the source still looks, and without one in an older gap, or after the end of a
    bounded read. A key below one of a row that was deleted, or that an ``UPDATE`` moves, is missed alike. Choose
    `settle` longer than the time between drawing an id and committing it. The source does not see later updates and
    deletions.

    The key must be an integer column that is not null and has a unique index of its own. A table that was dropped and
    created again, whose sequence was restarted, or that was emptied and has only smaller keys now, is refused; not
    noticed is a table that was emptied (``TRUNCATE``) and filled beyond the position between two looks.

    Source: F2-8: recovery needs sources that can be read again from a position; the gaps: Kafka Connect's JDBC source,
    whose incrementing mode reads at once and whose timestamp mode has a delay.

    Args:
        url: ``postgresql://[user[:password]@]host[:port]/database``; ``${NAME}`` in it is an environment variable.
        table: its name, also with a schema before it: ``app.orders``.
        schema: names and types of the columns to read; values are converted to these types.
        key: an increasing integer column with a unique index and without nulls, such as an identity; it must be in the
            schema.
        event_time: the event-time column (timestamp, date, or int64 microseconds), or None.
        start_after: the last key to skip when there is no checkpoint.
        bounded: stop after the largest key that exists at the start.
        poll: the maximum time between two looks for new rows.
        notify: a channel: ``NOTIFY`` on it wakes the source within 20 ms, so that `poll` can be long (package
            ``psycopg``). A trigger can notify: ``AFTER INSERT ... FOR EACH STATEMENT``. The source looks every 10 s
            nevertheless, because a server that hangs does not notify.
        retries: the number of retries in a row while the server is unreachable.
        settle: how long rows after a gap wait for rows that are committed late; ``"0s"``: not at all.

    Raises:
        SettingError: an invalid URL, name, duration or number.
        PlanError: the key or event-time column does not exist.
        MissingPackageError: the package adbc-driver-postgresql is not installed.
        SourceError: while running: no connection, no such table, a key that can be null or is not unique, a row below
            the position, or a value that does not fit its column.

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
    settle_us: int
    kind: ClassVar[str] = "sql"
    may_miss: ClassVar[str] = "polls its table, and misses rows that are committed late, below its position"

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
        settle: Duration = "1s",
    ) -> None:
        if not text_of(url, "url", "postgresql://localhost/shop").startswith(f"{SCHEME}://"):
            raise SettingError(f"url is {shown(url)!r}: write {SCHEME}://[user[:password]@]host[:port]/database")
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
            "start_after": None if start_after is None else whole_number(start_after, "start_after", LEAST),
            "bounded": true_or_false(bounded, "bounded"),
            "poll_us": parse_duration(poll, "poll"),
            "notify": None if notify is None else text_of(notify, "notify", "orders_added"),
            "retries": whole_number(retries, "retries", 0),
            "settle_us": parse_duration(settle, "settle"),
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
        self._settling = Settling(source.settle_us, source.start_after)
        self._end: int | None = None
        self._is_over = False
        self._place, self._columns = "", ""
        self._table: PolledTable | None = None
        self._is_own = False
        self._retries = Retries(source.retries, server=source.server.url)
        self._rest_us = _REST_US_MIN
        self._notices = None if source.notify is None else Notices(source.url, source.notify)
        self._look_us, self._look_back_us = 0, 0
        self._waits = False
        self._is_behind, self._told_us = True, 0

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        self._is_own = context.subtask == 0

    def splits(self) -> Sequence[str]:
        return (self._source.table,) if self._is_own and not self._is_over else ()

    @property
    def outage(self) -> Outage | None:
        return self._retries.outage

    def progress(self) -> Mapping[str, SplitProgress]:
        if not self.splits():
            return {}
        last = self._settling.last
        position = "the beginning" if last is None else f"{self._source.key} {last}"
        return {self._source.table: SplitProgress(position, None if self._is_behind else 0, self._told_us)}

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        if not self._is_own or self._is_over:
            return Exhausted()
        now_us = self._clock.now_us()
        if now_us < self._retries.retry_us:
            return WaitUntil(self._retries.retry_us)
        if now_us < self._look_us and self._notices is not None and not self._notices.arrived():
            return WaitUntil(min(now_us + _LISTEN_US, self._look_us))
        self._look_us = 0
        try:
            if self._session is None or now_us >= self._look_back_us:
                self._look_back()
            if self._source.bounded and self._end is None and (end := self._greatest()) is not None:
                self._end = end
            table = self._fetch(max_records)
            self._is_behind, self._told_us = self._waits or table.num_rows == max_records, now_us
            self._retries.succeeded()
        except PostgreSQL().errors as error:
            return self._failed(error, now_us)
        if table.num_rows:
            self._rest_us = _REST_US_MIN
            return self._delivered(table)
        if self._is_over:
            return Exhausted()
        rest_us = self._rest_us
        self._rest_us = min(2 * rest_us, max(self._source.poll_us, 1))
        if self._notices is not None and not self._waits:
            self._look_us = now_us + min(self._source.poll_us, _LISTENS_US)
            rest_us = min(rest_us, _LISTEN_US)
        due_us = self._settling.due_us() if self._waits else None
        return WaitUntil(now_us + rest_us if due_us is None else max(min(now_us + rest_us, due_us), now_us + 1))

    def snapshot(self) -> Snapshot:
        if not self._is_own:
            return {}
        gaps = [list(gap) for gap in self._settling.gaps]
        noted = {} if self._table is None else {"table": self._table.noted}
        return {"last": self._settling.last, "end": self._end, "over": self._is_over, "gaps": gaps, **noted}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            if "last" in snapshot:
                last = value_in(snapshot, "last", int | None)
                self._end = value_in(snapshot, "end", int | None)
                if "gaps" in snapshot:
                    self._settling.restore(last, value_in(snapshot, "gaps", tuple[tuple[int, int], ...]))
                    self._is_over = value_in(snapshot, "over", bool)
                else:  # of a version that wrote the least key for none
                    self._settling.restore(None if last == LEAST else last, ())
                    self._is_over = self._end is not None and last is not None and last >= self._end
                self._table = PolledTable.restored(snapshot)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
        if self._notices is not None:
            self._notices.close()

    def _query(self, sql: str, parameters: tuple[object, ...] = ()) -> pa.Table:
        if self._session is None:
            self._session = Session(revealed_url(self._source.url), Attempts(0.0), _CONNECT_S)
            self._session.execute(f"SET statement_timeout = {_ANSWER_MS}")
            self._session.query(SETTINGS)
        if self._notices is not None:
            self._notices.listen()  # before the query: what is added after it is notified
        return self._session.query(sql, parameters)

    def _look_back(self) -> None:
        """Look at the table, and for rows that became visible below the position.

        Raises:
            SourceError: the table cannot be read in the order of the key, is not the one that was read, or has a row
                that would be missed.
        """
        source = self._source
        if not self._place or self._session is None:
            place = place_of(self._query, source.table)
            if place is None:
                raise SourceError(
                    f"cannot read {source.table!r} of {source.server.url}: it does not exist; check its name, or create"
                    " it first"
                )
            self._place = place
        seen = PolledTable.found(self._query, self._place, source.table, source.key)
        last = self._settling.last
        names = f"{source.table!r} of {source.server.url}"
        seen.check_is_that(self._table, last, self._greatest(), names)
        self._table, self._settling.lowest = seen, seen.lowest
        self._columns = selected(self._query(COLUMNS, (self._place,)), source.schema, source.table)
        if (missed := self._missed()) is not None:
            raise SourceError(
                f"{names} has a row with {source.key} {missed}, which became visible after larger keys were read (the "
                f"position is {last}), so it was missed: start from an earlier savepoint, or anew, with a longer "
                f"settle= than {format_duration(source.settle_us)}"
            )
        self._look_back_us = self._clock.now_us() + _LOOK_BACK_US

    def _missed(self) -> int | None:
        """The key of a row in a gap that was passed; None: there is none."""
        gaps = self._settling.gaps
        if not gaps:
            return None
        key = quoted(self._source.key)
        values = ", ".join(f"('{low}'::bigint, '{high}'::bigint)" for low, high in gaps)
        found = self._query(
            f"SELECT f.k::bigint AS k FROM (VALUES {values}) AS g (low, high), LATERAL (SELECT {key} AS k FROM "
            f"{self._place} WHERE {key} BETWEEN g.low AND g.high ORDER BY {key} LIMIT 1) AS f LIMIT 1"
        )
        return int(found["k"][0].as_py()) if found.num_rows else None

    def _greatest(self) -> int | None:
        found = self._query(f"SELECT max({quoted(self._source.key)})::bigint AS last FROM {self._place}")
        last: int | None = found["last"][0].as_py()
        return last

    def _fetch(self, count: int) -> pa.Table:
        """The next rows, except those before which other rows can still become visible; notes the end."""
        source, settling = self._source, self._settling
        key = quoted(source.key)
        bounds = [] if settling.last is None else [f"{key} > '{settling.last}'::bigint"]
        bounds += [] if self._end is None else [f"{key} <= '{self._end}'::bigint"]
        where = f"WHERE {' AND '.join(bounds)} " if bounds else ""
        rows = self._query(
            f"SELECT {self._columns}, age(xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid) AS {_SETTLED}"
            f" FROM {self._place} {where}ORDER BY {key} LIMIT {count}"
        )
        settled = rows[_SETTLED].to_pylist()
        keys = np.asarray(rows[source.key].cast(pa.int64()))
        ready = settled.index(False) if False in settled else len(settled)
        ready = min(ready, settling.ready(keys, self._clock.now_us()))
        self._waits = ready < len(settled)
        if self._waits and settling.wants_mark(self._clock.now_us()) and (greatest := self._greatest()) is not None:
            settling.saw(greatest, self._clock.now_us())
        if source.bounded and not self._waits and (not ready or keys[-1] == self._end):
            if settling.gaps:
                self._look_back()
            self._is_over = True
        return rows.drop_columns([_SETTLED]).slice(0, ready)

    def _delivered(self, table: pa.Table) -> Fetched:
        source = self._source
        keys = table[source.key].to_pylist()
        rows = fitted(table, source.schema, lambda row: f"{source.table}, {source.key} {keys[row]}")
        self._settling.passed(np.asarray(keys, np.int64))
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
            raise SourceError(f"cannot read {source.table!r} of {source.server.url}: {fixed(fact)}") from cause_of(
                error, source.url
            )
        return WaitUntil(retry_us)
