"""A source over Kafka topics, with offsets as positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from workbench.arguments import text_of, true_or_false, whole_number
from workbench.connectors.contract.base import Source, SourceReader
from workbench.connectors.contract.block_reader import check_event_time
from workbench.connectors.contract.split_names import split_names
from workbench.connectors.files.json_times import TimeUnit
from workbench.connectors.kafka.cluster import KafkaCluster, kafka_options
from workbench.connectors.kafka.places import Beginning, Start
from workbench.connectors.kafka.reader import KafkaReader
from workbench.connectors.kafka.rows import Rows, kafka_metadata
from workbench.connectors.messages.choosing import MessageFormatName, message_format
from workbench.durations import Duration, parse_duration
from workbench.expressions import ColumnName, column_name
from workbench.operators.functions.dead_letters import OnError, check_on_error
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.origin import caller


@dataclass(frozen=True, init=False)
class KafkaSource(Source):
    """The messages of Kafka topics.

    Each partition is a split with its own watermark. Its position in the checkpoint is an offset. The job assigns
    partitions, not a consumer group, so a recovery neither loses nor repeats messages. With `group`, offsets are also
    committed to that group, for tools that display its lag; the source never reads them. The ID of each topic is part
    of the position (brokers before Kafka 2.8 give none): a topic that was deleted and created again is an error, also
    while it is read.

    The source discovers partitions that are added while the job runs, and reads them from the beginning. When the
    brokers are unreachable, it retries after 100 ms, then after twice as long, up to 5 s.

    Source: F2-8: recovery needs sources that can be read again from a position; Kafka's offsets in Flink's checkpoints.

    Args:
        servers: ``host:port``, several separated by commas.
        topics: one or several names.
        schema: names and types of the columns.
        format: the format of messages: ``"json"``, ``"csv"`` (without a header), ``"avro"`` (one datum), ``"arrow"``
            (an IPC stream with any number of rows), or ``"raw"`` (one column of text or bytes). A message without a
            value (a tombstone) has nulls in JSON, and is empty in the other formats.
        avro_schema: the writer's schema, as JSON, for ``"avro"`` (package ``fastavro``).
        metadata: columns that hold metadata instead of a part of the value, with the name of the metadata: ``"key"``,
            ``"timestamp"``, ``"topic"``, ``"partition"`` or ``"offset"``.
        event_time: the event-time column (timestamp, date, or int64 microseconds), or None.
        start: where to start without a checkpoint: ``"earliest"``, ``"latest"``, a time (text or datetime; the first
            message at or after it), or offsets such as ``{"orders/0": 17}``.
        bounded: stop after the messages that exist at the start.
        group: a consumer group to commit offsets to, for display only, or None.
        discover: how often to look for new partitions; None: never.
        on_error: how to handle a message that is not a record: ``"fail"`` fails the task, ``"dead_letter"`` sends it to
            ``dead_letters()`` with its topic, partition and offset.
        retries: the number of retries in a row before the task fails.
        unit: what a number in a column of timestamps counts since 1970, in JSON: ``"s"``, ``"ms"``, ``"us"`` or
            ``"ns"``. The conversion is exact; without it such numbers are refused.
        options: options of librdkafka, such as ``{"security.protocol": "SASL_SSL", "sasl.password":
            "${KAFKA_PASSWORD}"}``; ``${NAME}`` is an environment variable and ``${keyring:service/user}`` an entry of
            the keyring.

    Raises:
        SettingError: the address, a topic, the format, the unit, start or a number is invalid.
        PlanError: the event-time column does not exist, the format does not support a column, or `on_error` is unknown.
        MissingPackageError: the package confluent-kafka is not installed.
        SourceError: while running: no connection, a refused login, no such topic, a topic that was created again, an
            expired offset, or a message that is not a record.

    Example::

        orders = wb.Stream.from_source(
            wb.KafkaSource("localhost:9092", "orders", {"id": pa.int64(), "at": pa.timestamp("us")}, event_time="at"),
            out_of_orderness="5s",
        )
    """

    servers: str
    topics: tuple[str, ...]
    schema: pa.Schema = field(repr=False)
    format: MessageFormatName
    avro_schema: str | None = field(repr=False)
    metadata: Mapping[str, str]
    event_time: str | None
    beginning: Beginning
    bounded: bool
    group: str | None
    discover_us: int | None
    on_error: OnError
    retries: int
    unit: TimeUnit | None
    options: Mapping[str, str] = field(repr=False)
    kind: ClassVar[str] = "kafka"

    def __init__(
        self,
        servers: str,
        topics: str | Sequence[str],
        schema: SchemaLike,
        *,
        format: MessageFormatName = "json",
        avro_schema: str | None = None,
        metadata: Mapping[str, str] | None = None,
        event_time: ColumnName | None = None,
        start: Start = "earliest",
        bounded: bool = False,
        group: str | None = None,
        discover: Duration | None = "30s",
        on_error: OnError = "fail",
        retries: int = 12,
        unit: TimeUnit | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        columns = declared_schema(schema, "the source", caller())
        time_column = None if event_time is None else column_name(event_time, "event_time")
        values = {
            "servers": servers,
            "topics": split_names(topics, "topics", "orders"),
            "schema": columns,
            "format": format,
            "avro_schema": avro_schema,
            "metadata": kafka_metadata(metadata, columns),
            "event_time": time_column,
            "beginning": Beginning.of(start),
            "bounded": true_or_false(bounded, "bounded"),
            "group": None if group is None else text_of(group, "group", "flights"),
            "discover_us": None if discover is None else parse_duration(discover, "discover"),
            "on_error": on_error,
            "retries": whole_number(retries, "retries", 0),
            "unit": unit,
            "options": kafka_options(options),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        check_event_time(columns, time_column)
        check_on_error(on_error, None)
        _ = self.cluster, self.rows

    @cached_property
    def cluster(self) -> KafkaCluster:
        """The cluster of the topics."""
        return KafkaCluster(self.servers, self.options)

    @cached_property
    def rows(self) -> Rows:
        """The conversion of messages to rows."""
        form = message_format(self.format, self.avro_schema, self.unit)
        return Rows(self.schema, form, kafka_metadata(self.metadata, self.schema))

    def describe(self) -> str:
        return f"{', '.join(self.topics)} of {self.cluster}"

    def create(self) -> SourceReader:
        return KafkaReader(self)
