"""The names that ``workbench`` exports, as type checkers and editors read them.

Executing this module imports the whole runtime, so ``workbench`` reads its imports instead: each name is imported from
its module on first access.
"""

from workbench import errors, state, windows
from workbench.api.job.registry import job, jobs
from workbench.api.job.serving import serve
from workbench.api.kept.recording import Recording
from workbench.api.kept.snapshot import Snapshot, delete_savepoint, savepoints
from workbench.api.running.compare import compare
from workbench.api.running.found_jobs import found_jobs
from workbench.api.streams.stream import Stream
from workbench.connectors.feeds.mqtt import MqttSource
from workbench.connectors.feeds.web import ServerEventSource, WebSocketSource
from workbench.connectors.kafka.sink import KafkaSink
from workbench.connectors.kafka.source import KafkaSource
from workbench.connectors.live.callback_sink import CallbackSink, DiscardSink
from workbench.connectors.live.print_sink import PrintSink
from workbench.connectors.nats.sink import NatsSink
from workbench.connectors.nats.source import NatsSource
from workbench.connectors.parts.file_sink import FileSink
from workbench.connectors.parts.parquet_sink import ParquetSink
from workbench.connectors.postgresql_log.source import PostgresLogSource
from workbench.connectors.redis.lookup import RedisLookup
from workbench.connectors.redis.sink import RedisSink
from workbench.connectors.redis.source import RedisSource
from workbench.connectors.sql.lookup import SqlLookup
from workbench.connectors.sql.sink import SqlSink
from workbench.connectors.sql.source import SqlSource
from workbench.connectors.tables.table_sink import TableSink
from workbench.expressions import coalesce, col, expr, lit, when
from workbench.lessons.lesson import lesson
from workbench.operators.aggregates.aggregations import count, max, mean, min, sum
from workbench.operators.aggregates.window_functions import collect_list, count_distinct, median, top_k
from workbench.patterns.pattern import pattern
from workbench.public import functions, policies, restart, triggers, types, watermarks
from workbench.queries import sql, sql_script
from workbench.runtime.barriers.acks import acks
from workbench.runtime.barriers.architectures import at_most_once, changelog, stop_the_world
from workbench.runtime.barriers.micro_batches import micro_batches
from workbench.runtime.barriers.transactions import transactions
from workbench.runtime.settings.table import TUNABLE as SETTINGS
from workbench.spark.history import History
from workbench.spark.watching.watch import watch
from workbench.windows import session, sliding, tumbling

__all__ = [
    "SETTINGS",
    "CallbackSink",
    "DiscardSink",
    "FileSink",
    "History",
    "KafkaSink",
    "KafkaSource",
    "MqttSource",
    "NatsSink",
    "NatsSource",
    "ParquetSink",
    "PostgresLogSource",
    "PrintSink",
    "Recording",
    "RedisLookup",
    "RedisSink",
    "RedisSource",
    "ServerEventSource",
    "Snapshot",
    "SqlLookup",
    "SqlSink",
    "SqlSource",
    "Stream",
    "TableSink",
    "WebSocketSource",
    "acks",
    "at_most_once",
    "changelog",
    "coalesce",
    "col",
    "collect_list",
    "compare",
    "count",
    "count_distinct",
    "delete_savepoint",
    "errors",
    "expr",
    "found_jobs",
    "functions",
    "job",
    "jobs",
    "lesson",
    "lit",
    "max",
    "mean",
    "median",
    "micro_batches",
    "min",
    "pattern",
    "policies",
    "restart",
    "savepoints",
    "serve",
    "session",
    "sliding",
    "sql",
    "sql_script",
    "state",
    "stop_the_world",
    "sum",
    "top_k",
    "transactions",
    "triggers",
    "tumbling",
    "types",
    "watch",
    "watermarks",
    "when",
    "windows",
]
