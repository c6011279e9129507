"""Message brokers, as named connectors."""

from __future__ import annotations

from workbench.connectors.contract.base import Sink, Source
from workbench.connectors.kafka.sink import DELIVERIES, KafkaSink
from workbench.connectors.kafka.source import KafkaSource
from workbench.connectors.messages.choosing import FORMAT_NAMES
from workbench.connectors.named.connector import Declared, NamedConnector
from workbench.connectors.named.files import ON_ERROR, UNIT, unit_of
from workbench.connectors.named.options import Options
from workbench.connectors.nats.sink import DELIVERIES as NATS_DELIVERIES
from workbench.connectors.nats.sink import NatsSink
from workbench.connectors.nats.source import NatsSource
from workbench.operators.functions.dead_letters import POLICIES

CA_FILE = "a PEM file of the certificate authorities to trust with TLS, by default those of the system"
_METADATA, _PROPERTIES = "metadata.", "properties."


def _kafka_source(options: Options, table: Declared) -> Source:
    return KafkaSource(
        options.text("servers"),
        options.names("topic"),
        table.schema,
        format=options.one_of("format", FORMAT_NAMES, "json"),
        avro_schema=options.optional("avro_schema"),
        metadata=options.below(_METADATA),
        event_time=table.event_time,
        start=options.text("start", "earliest"),
        bounded=options.flag("bounded"),
        group=options.optional("group"),
        on_error=options.one_of("on_error", POLICIES, "fail"),
        retries=options.whole("retries", 12) or 0,
        unit=unit_of(options),
        options=options.below(_PROPERTIES),
    )


def _kafka_sink(options: Options, table: Declared) -> Sink:
    return KafkaSink(
        options.text("servers"),
        options.text("topic", table.name),
        format=options.one_of("format", FORMAT_NAMES, "json"),
        avro_schema=options.optional("avro_schema"),
        key=list(table.key) or (options.names("key") if "key" in options else ()),
        timestamp=options.optional("timestamp"),
        delivery=options.one_of("delivery", DELIVERIES, "at-least-once"),
        options=options.below(_PROPERTIES),
    )


KAFKA = NamedConnector(
    "kafka",
    "topics of Kafka",
    {
        "servers": "host:port of brokers, separated by commas",
        "topic": "one or several, separated by ';'; for a sink one, by default the table's name",
        "format": "'json' (the default), 'csv', 'avro', 'arrow' or 'raw'",
        "avro_schema": "of 'avro': the writer's schema, as JSON",
        "metadata.*": "a column that holds a part of the message: 'metadata.sent' = 'timestamp'",
        "start": "'earliest' (the default), 'latest' or a time",
        "bounded": "'true': stop after the messages that exist at the start",
        "group": "a consumer group to commit offsets to, for display only",
        "on_error": ON_ERROR,
        "retries": "the number of retries in a row while the brokers are unreachable; 12 by default",
        "unit": UNIT,
        "key": "of a sink: columns of the key, by default the table's primary key",
        "timestamp": "of a sink: the column of the messages' timestamps",
        "delivery": "of a sink: 'at-least-once' (the default), 'exactly-once' or 'transactions'",
        "properties.*": "an option of librdkafka: 'properties.sasl.password' = '${KAFKA_PASSWORD}'",
    },
    _kafka_source,
    _kafka_sink,
)


def _nats_source(options: Options, table: Declared) -> Source:
    start = options.text("start", "earliest")
    return NatsSource(
        options.text("url"),
        options.names("stream"),
        table.schema,
        subject=options.text("subject", ""),
        format=options.one_of("format", FORMAT_NAMES, "json"),
        metadata=options.below(_METADATA),
        event_time=table.event_time,
        start=int(start) if start.isdecimal() else start,
        bounded=options.flag("bounded"),
        on_error=options.one_of("on_error", POLICIES, "fail"),
        retries=options.whole("retries", 12) or 0,
        unit=unit_of(options),
        ca_file=options.text("ca_file", ""),
    )


def _nats_sink(options: Options, table: Declared) -> Sink:
    return NatsSink(
        options.text("url"),
        options.text("stream"),
        options.text("subject", table.name),
        format=options.one_of("format", FORMAT_NAMES, "json"),
        key=list(table.key) or (options.names("key") if "key" in options else ()),
        delivery=options.one_of("delivery", NATS_DELIVERIES, "at-least-once"),
        ca_file=options.text("ca_file", ""),
    )


NATS = NamedConnector(
    "nats",
    "NATS JetStream streams",
    {
        "url": "such as 'nats://ann:${NATS_PASSWORD}@localhost'",
        "stream": "one or several, separated by ';'; for a sink one",
        "subject": "of messages to read, such as 'sensors.>', all by default; of a sink the table's name by default",
        "format": "'json' (the default), 'csv' or 'raw'",
        "metadata.*": "a column that holds a part of the message: 'metadata.sent' = 'timestamp'",
        "start": "'earliest' (the default), 'latest', a time or a sequence number",
        "bounded": "'true': stop after the messages that exist at the start",
        "on_error": ON_ERROR,
        "retries": "the number of retries in a row while the server is unreachable; 12 by default",
        "unit": UNIT,
        "key": "of a sink: columns that are further parts of the subject, by default the table's primary key",
        "delivery": "of a sink: 'at-least-once' (the default) or 'exactly-once'",
        "ca_file": CA_FILE,
    },
    _nats_source,
    _nats_sink,
)
