"""A source over NATS JetStream streams, with sequence numbers as positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from os import PathLike
from typing import ClassVar, Literal

import pyarrow as pa

from workbench.arguments import as_given, text_of, true_or_false, whole_number
from workbench.connectors.contract.base import Source, SourceReader
from workbench.connectors.contract.block_reader import check_event_time
from workbench.connectors.contract.split_names import split_names
from workbench.connectors.contract.text_check import check_text
from workbench.connectors.files.json_times import TimeUnit
from workbench.connectors.messages.choosing import MessageFormatName, message_format
from workbench.connectors.messages.message_format import MessageFormat
from workbench.connectors.messages.metadata import metadata_of
from workbench.connectors.nats.reader import NatsReader
from workbench.connectors.nats.server import NatsServer
from workbench.connectors.nats.stream_wire import NatsMessage
from workbench.durations import parse_instant
from workbench.errors import SettingError
from workbench.expressions import ColumnName, column_name
from workbench.operators.functions.dead_letters import OnError, check_on_error
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.origin import caller

Part = Literal["subject", "timestamp", "sequence"]
_KINDS: Mapping[Part, pa.DataType] = {
    "subject": pa.string(),
    "timestamp": pa.timestamp("ns", "UTC"),
    "sequence": pa.int64(),
}
FORMATS = ("json", "csv", "raw")
"""The formats of messages."""
_NO_NAME = frozenset(". *>/\\\t\r\n")
_FIX = "write 'earliest', 'latest', a time such as '2026-03-29T01:30:00Z', or the sequence number of a message"


@dataclass(frozen=True, init=False)
class NatsSource(Source):
    """The messages of JetStream streams.

    Each stream is a split with its own watermark. Its position in the checkpoint is a sequence number: the server keeps
    no durable consumer for the job, so a recovery neither loses nor repeats messages. If a stream has removed messages
    after a restored position, or (without `subject`) before they were read, this is an error. So is a stream that was
    deleted and created again: the time of its creation is part of the position. When the server is unreachable, the
    source retries after 100 ms, then after twice as long, up to 5 s.

    Source: F2-8: recovery needs sources that can be read again from a position; NATS, JetStream.

    Args:
        url: ``nats://[user:password@]host:port`` or ``nats://token@host:port``, ``tls://`` for TLS; ``${NAME}`` is an
            environment variable.
        streams: one name or several; subtasks share them.
        schema: names and types of the columns.
        subject: the subject of the messages to read, such as ``"sensors.>"``; empty: all subjects of the stream.
        format: the format of messages: ``"json"``, ``"csv"``, or ``"raw"`` (one column).
        metadata: columns that hold metadata instead of a part of the value, with the name of the metadata:
            ``"subject"``, ``"timestamp"`` (when the stream stored the message) or ``"sequence"``.
        event_time: the event-time column (timestamp, date, or int64 microseconds), or None.
        start: where to start without a checkpoint: ``"earliest"``, ``"latest"``, a time (text or datetime; the first
            message at or after it), or the sequence number of the first message.
        bounded: stop after the messages that exist at the start.
        on_error: how to handle a message that is not a record: ``"fail"`` fails the task, ``"dead_letter"`` sends it
            to ``dead_letters()`` with its stream and sequence number.
        retries: the number of retries in a row before the task fails.
        unit: what a number in a column of timestamps counts since 1970, in JSON: ``"s"``, ``"ms"``, ``"us"`` or
            ``"ns"``. The conversion is exact; without it such numbers are refused.
        ca_file: a PEM file of the certificate authorities to trust with TLS instead of the system's.

    Raises:
        SettingError: the URL, a name, the format, the unit, start or a number is invalid.
        PlanError: a column does not exist, the format does not support a column, or `on_error` is unknown.
        SourceError: while running: no connection, a refused login, no such stream, lost messages, or a message that is
            not a record.

    Example::

        schema = {"c": pa.float64(), "where": pa.string()}
        sensors = wb.Stream.from_source(
            wb.NatsSource("nats://localhost", "SENSORS", schema, metadata={"where": "subject"})
        )
    """

    url: str = field(repr=False)
    streams: tuple[str, ...]
    schema: pa.Schema = field(repr=False)
    subject: str
    format: MessageFormatName
    metadata: Mapping[str, Part]
    event_time: str | None
    start: str | int
    bounded: bool
    on_error: OnError
    retries: int
    unit: TimeUnit | None
    ca_file: str
    kind: ClassVar[str] = "nats"

    def __init__(
        self,
        url: str,
        streams: str | Sequence[str],
        schema: SchemaLike,
        *,
        subject: str = "",
        format: MessageFormatName = "json",
        metadata: Mapping[str, str] | None = None,
        event_time: ColumnName | None = None,
        start: str | int | datetime = "earliest",
        bounded: bool = False,
        on_error: OnError = "fail",
        retries: int = 12,
        unit: TimeUnit | None = None,
        ca_file: str | PathLike[str] = "",
    ) -> None:
        server = NatsServer(url, ca_file)
        names = split_names(streams, "streams", "ORDERS")
        for name in names:
            if not is_stream_name(name):
                raise SettingError(f"streams is {as_given(streams)}: {name!r} is not the name of a stream")
        if any(each.isspace() for each in text_of(subject, "subject", "sensors.>")):
            raise SettingError(f"subject is {subject!r}: write one without spaces, such as 'sensors.>'")
        if format not in FORMATS:
            raise SettingError(f"format is {as_given(format)}: write 'json', 'csv' or 'raw'")
        columns = declared_schema(schema, "the source", caller())
        time_column = None if event_time is None else column_name(event_time, "event_time")
        values = {
            "url": url,
            "streams": names,
            "schema": columns,
            "subject": subject,
            "format": format,
            "metadata": metadata_of(metadata, columns, _KINDS, system="NATS", example="{'where': 'subject'}"),
            "event_time": time_column,
            "start": _start_of(start),
            "bounded": true_or_false(bounded, "bounded"),
            "on_error": on_error,
            "retries": whole_number(retries, "retries", 0),
            "unit": unit,
            "ca_file": server.ca_file,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        check_event_time(columns, time_column)
        check_on_error(on_error, None)
        form = self.message_format
        if len(self.value_schema):
            form.check(self.value_schema)

    @cached_property
    def server(self) -> NatsServer:
        """The server of the streams."""
        return NatsServer(self.url, self.ca_file)

    @cached_property
    def message_format(self) -> MessageFormat:
        """The format of messages; each message is one record."""
        return message_format(self.format, None, self.unit)

    @cached_property
    def value_schema(self) -> pa.Schema:
        """The columns of the values."""
        return pa.schema([column for column in self.schema if column.name not in self.metadata])

    @property
    def policy(self) -> Mapping[str, object]:
        """`start` as JetStream's delivery policy."""
        if isinstance(self.start, int):
            return {"deliver_policy": "by_start_sequence", "opt_start_seq": self.start}
        if self.start in ("earliest", "latest"):
            return {"deliver_policy": "all" if self.start == "earliest" else "new"}
        return {"deliver_policy": "by_start_time", "opt_start_time": self.start}

    def decode(self, messages: Sequence[NatsMessage]) -> pa.RecordBatch:
        """Decode messages to one row each.

        Args:
            messages: messages of one stream.

        Raises:
            ValueError: a message is not a record of these columns.
        """
        values = [message.value for message in messages]
        if not self.metadata:
            return self.message_format.decode(values, self.schema)
        batch = self.message_format.decode(values, self.value_schema) if len(self.value_schema) else None
        columns = []
        for column in self.schema:
            if (part := self.metadata.get(column.name)) is None:
                assert batch is not None
                columns.append(batch.column(column.name))
            else:
                columns.append(_part(messages, part).cast(column.type, safe=part != "timestamp"))
        rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        check_text(rows)
        return rows

    def describe(self) -> str:
        subject = f", {self.subject}" if self.subject else ""
        return f"{', '.join(self.streams)} of {self.server}{subject}"

    def create(self) -> SourceReader:
        return NatsReader(self)


def is_stream_name(text: str) -> bool:
    """Whether a stream can have this name.

    Example:
        >>> is_stream_name("ORDERS"), is_stream_name("orders.>")
        (True, False)
    """
    return bool(text) and not _NO_NAME & set(text)


def _start_of(start: object) -> str | int:
    """Where to start, in the form that the server expects."""
    if start in ("earliest", "latest"):
        return str(start)
    if isinstance(start, int):
        return whole_number(start, "start", 1)
    if not isinstance(start, str | datetime):
        raise SettingError(f"start is {as_given(start)}: {_FIX}")
    try:
        seconds, rest_us = divmod(parse_instant(start, "start"), 1_000_000)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_us:06d}Z"
    except (SettingError, ValueError, OverflowError) as error:
        raise SettingError(f"{error}; or {_FIX}") from None


def _part(messages: Sequence[NatsMessage], part: Part) -> pa.Array:
    if part == "timestamp":
        return pa.array([message.stored_ns for message in messages], pa.int64()).cast(_KINDS[part])
    return pa.array([getattr(message, part) for message in messages], _KINDS[part])
