"""Redis and SQL databases, and PostgreSQL's log, as named connectors."""

from __future__ import annotations

from workbench.connectors.contract.base import Sink, Source
from workbench.connectors.named.connector import Declared, NamedConnector, NamedLookup
from workbench.connectors.named.files import ON_ERROR, unit_of
from workbench.connectors.named.options import Options
from workbench.connectors.postgresql_log.source import PostgresLogSource
from workbench.connectors.redis.sink import RedisSink
from workbench.connectors.redis.source import RedisSource
from workbench.connectors.sql.lookup import SqlLookup
from workbench.connectors.sql.sink import SqlSink
from workbench.connectors.sql.source import SqlSource
from workbench.errors import SettingError
from workbench.operators.functions.dead_letters import POLICIES


def _redis_source(options: Options, table: Declared) -> Source:
    return RedisSource(
        options.text("url"),
        options.names("stream"),
        table.schema,
        event_time=table.event_time,
        start=options.text("start", "earliest"),
        bounded=options.flag("bounded"),
        on_error=options.one_of("on_error", POLICIES, "fail"),
        retries=options.whole("retries", 12) or 0,
        unit=unit_of(options),
    )


def _redis_sink(options: Options, table: Declared) -> Sink:
    return RedisSink(
        options.text("url"),
        options.text("stream", table.name),
        upsert_key=list(table.key),
        value=options.optional("value"),
        max_length=options.whole("max_length"),
    )


def _sql_sink(options: Options, table: Declared) -> Sink:
    name = options.text("table", table.name)
    return SqlSink(options.text("url"), name, upsert_key=list(table.key), create=options.flag("create", True))


REDIS = NamedConnector(
    "redis",
    "Redis streams, and hashes for tables with a primary key",
    {
        "url": "such as 'redis://:${REDIS_PASSWORD}@localhost:6379'",
        "stream": "keys of streams, separated by ';'; for a sink one key, by default the table's name",
        "start": "'earliest' (the default), 'latest' or an ID",
        "bounded": "'true': stop after the entries that exist at the start",
        "on_error": ON_ERROR,
        "retries": "the number of retries in a row while the server is unreachable; 12 by default",
        "unit": "what numbers in columns of timestamps count: 's', 'ms', 'us' or 'ns'",
        "value": "of a sink with a primary key: the column whose values one hash holds by key",
        "max_length": "of a sink: the approximate number of entries that the stream keeps",
    },
    _redis_source,
    _redis_sink,
)


def _sql_source(options: Options, table: Declared) -> Source:
    return SqlSource(
        options.text("url"),
        options.text("table", table.name),
        table.schema,
        key=options.text("key", "id"),
        event_time=table.event_time,
        start_after=options.whole("start_after"),
        bounded=options.flag("bounded"),
        poll=options.text("poll", "100ms"),
        notify=options.optional("notify"),
        retries=options.whole("retries", 12) or 0,
        settle=options.text("settle", "1s"),
    )


def _sql_lookup(options: Options, table: Declared) -> NamedLookup:
    url, name = options.text("url"), options.text("table", table.name)
    return NamedLookup(lambda key: SqlLookup(url, name, table.schema, key=list(key)), options.optional("cache"))


SQL = NamedConnector(
    "sql",
    "a table of PostgreSQL; for sinks and look-ups also of SQLite or DuckDB",
    {
        "url": "such as 'postgresql://ann:${PG_PASSWORD}@localhost/flights' or 'sqlite:///out.db'",
        "table": "by default this table's name",
        "key": "of a source: an integer column that grows, unique and never null; 'id' by default",
        "start_after": "of a source: the last key to skip",
        "bounded": "of a source: 'true' stops after the rows that exist at the start",
        "poll": "of a source: how long to wait for new rows; '100ms' by default",
        "notify": "of a source: a channel whose notifications wake it",
        "retries": "of a source: the number of retries in a row; 12 by default",
        "settle": "of a source: how long rows after a gap wait for rows that are committed late; '1s' by default",
        "create": "of a sink: 'false' needs an existing table",
        "cache": "of a look-up (FOR SYSTEM_TIME AS OF): how long an answer is cached, such as '10min'",
    },
    _sql_source,
    _sql_sink,
    _sql_lookup,
)


def _log_source(options: Options, table: Declared) -> Source:
    if not table.key:
        raise SettingError(f"the table {table.name!r} has no key: add PRIMARY KEY (id) NOT ENFORCED")
    return PostgresLogSource(
        options.text("url"),
        options.text("table", table.name),
        table.schema,
        slot=options.text("slot"),
        publication=options.text("publication"),
        key=list(table.key),
        event_time=table.event_time,
        bounded=options.flag("bounded"),
        chunk_rows=options.whole("chunk_rows", 10_000) or 0,
        retries=options.whole("retries", 12) or 0,
    )


POSTGRES_CDC = NamedConnector(
    "postgres-cdc",
    "a table of PostgreSQL with a primary key, and all of its changes from the server's log",
    {
        "url": "such as 'postgresql://ann:${PG_PASSWORD}@localhost/flights'",
        "table": "by default this table's name",
        "slot": "the name of the replication slot, which belongs to this table alone",
        "publication": "the name of the publication, which has the table",
        "bounded": "'true': stop where the log ends at the start",
        "chunk_rows": "the number of rows that are copied at once; 10000 by default",
        "retries": "the number of retries in a row while the server is unreachable, or the slot in use; 12 by default",
    },
    _log_source,
)
