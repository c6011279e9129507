"""A sink to a Kafka topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import pyarrow as pa

from workbench.arguments import text_of
from workbench.connectors.contract.base import Place
from workbench.connectors.contract.upsert_key import upsert_key_of
from workbench.connectors.epochs.message_sink import MessageSink
from workbench.connectors.kafka.cluster import KafkaCluster, kafka_options
from workbench.connectors.kafka.outgoing import Topic
from workbench.connectors.messages.choosing import MessageFormatName, message_format
from workbench.errors import PlanError, SettingError, unknown
from workbench.expressions import ColumnName, column_name

Delivery = Literal["at-least-once", "exactly-once", "transactions"]
DELIVERIES: tuple[Delivery, ...] = ("at-least-once", "exactly-once", "transactions")


@dataclass(frozen=True, init=False)
class KafkaSink(MessageSink):
    """Sends each row as a message to a Kafka topic.

    The producer is idempotent, so its own retries neither repeat nor reorder messages. `delivery` determines the effect
    of a failure of the job:

    - ``"at-least-once"``: rows are sent as they arrive and acknowledged before each checkpoint; after a failure, rows
      since the last checkpoint are sent again. On a compacted topic with `key`, the last message of each key is
      correct.
    - ``"exactly-once"``: the rows since the last barrier are part of the checkpoint, and sent when it is complete. Each
      message has a header ``workbench`` with its writer, epoch and number. After a failure, the sink reads the end of
      the topic and sends only the missing messages. Messages that a killed process left in the network can still arrive
      after this; only ``"transactions"`` prevents that.
    - ``"transactions"``: as ``"exactly-once"``, and the rows of each checkpoint are one transaction: readers with
      ``isolation.level=read_committed`` see all of them or none, and a replaced process is fenced. Each start and
      restart ends the transactions of all subtasks that ever sent, before it reads the end of the topic.

    Source: D1: exactly once; Pravega's writers, which resume after their last event in the log; Kafka's
    transactions (KIP-98).

    Args:
        servers: ``host:port``, several separated by commas.
        topic: the name of a topic that exists or that the brokers create.
        format: the format of messages: ``"json"``, ``"csv"``, ``"avro"``, ``"raw"`` (one column), or ``"arrow"`` (many
            rows per message, without keys).
        avro_schema: the schema, as JSON, for ``"avro"``.
        key: the columns that form the message's key (several columns form a JSON object); rows with equal keys go to
            the same partition.
        timestamp: the column of the message's timestamp; None: the time of sending.
        delivery: see above.
        options: options of librdkafka, as for `KafkaSource`.

    Raises:
        SettingError: an invalid address, topic, format or delivery.
        ExpressionError: a key is a computed expression.
        MissingPackageError: the package confluent-kafka is not installed.

    Example::

        delays.sink_to(wb.KafkaSink("localhost:9092", "delays", key="origin", delivery="exactly-once"))
    """

    servers: str
    topic: str
    format: MessageFormatName
    avro_schema: str | None = field(repr=False)
    key: tuple[str, ...]
    timestamp: str | None
    delivery: Delivery
    options: Mapping[str, str] = field(repr=False)
    kind: ClassVar[str] = "kafka"

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        format: MessageFormatName = "json",
        avro_schema: str | None = None,
        key: ColumnName | Sequence[ColumnName] = (),
        timestamp: ColumnName | None = None,
        delivery: Delivery = "at-least-once",
        options: Mapping[str, str] | None = None,
    ) -> None:
        if not text_of(topic, "topic", "delays"):
            raise SettingError("topic is '': write the name of a topic, such as 'delays'")
        if not isinstance(delivery, str) or delivery not in DELIVERIES:
            raise SettingError(unknown("delivery", delivery, DELIVERIES))
        columns = upsert_key_of(key)
        if columns and format == "arrow":
            raise SettingError(
                "a message in Arrow format has many rows, so it cannot have a key: remove key, or choose another format"
            )
        values = {
            "servers": servers,
            "topic": topic,
            "format": format,
            "avro_schema": avro_schema,
            "key": columns,
            "timestamp": None if timestamp is None else column_name(timestamp, "timestamp"),
            "delivery": delivery,
            "options": kafka_options(options),
        }
        for name, given in values.items():
            object.__setattr__(self, name, given)
        _ = self.target

    @property
    def name(self) -> str:
        """The name of the sink in graphs: its topic."""
        return self.topic

    @cached_property
    def target(self) -> Topic:
        """The topic."""
        form = message_format(self.format, self.avro_schema)
        return Topic(
            KafkaCluster(self.servers, self.options),
            self.topic,
            form,
            self.key,
            self.timestamp,
            self.delivery == "transactions",
        )

    def check(self, schema: pa.Schema) -> None:
        """See `MessageSink.check`; the timestamp column must also exist."""
        super().check(schema)
        if self.timestamp is not None and self.timestamp not in schema.names:
            raise PlanError(unknown("column", self.timestamp, schema.names))

    def place(self) -> Place:
        """The topic of the cluster."""
        return Place(str(self.target.cluster), self.topic)

    def describe(self) -> str:
        return f"{self.topic} of {self.target.cluster}" + (f" by {', '.join(self.key)}" if self.key else "")
