"""A sink that publishes rows to a NATS JetStream stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import ClassVar, Literal, get_args

from workbench.arguments import as_given, text_of
from workbench.connectors.contract.base import Place
from workbench.connectors.contract.upsert_key import upsert_key_of
from workbench.connectors.epochs.message_sink import MessageSink
from workbench.connectors.messages.choosing import MessageFormatName, message_format
from workbench.connectors.nats.outgoing import Stream
from workbench.connectors.nats.server import NatsServer
from workbench.connectors.nats.source import FORMATS, is_stream_name
from workbench.errors import SettingError, unknown
from workbench.expressions import ColumnName

Delivery = Literal["at-least-once", "exactly-once"]
DELIVERIES: tuple[Delivery, ...] = get_args(Delivery)


@dataclass(frozen=True, init=False)
class NatsSink(MessageSink):
    """Publishes each row as a message to a JetStream stream.

    Each message has an ID (header ``Nats-Msg-Id``). Within its ``duplicate_window`` (two minutes by default), the
    stream uses the ID to drop messages that are sent again after a lost connection. `delivery` determines the effect of
    a failure of the job:

    - ``"at-least-once"``: rows are published as they arrive, and acknowledged before each checkpoint; after a failure,
      rows since the last checkpoint are published again.
    - ``"exactly-once"``: the rows since the last barrier are part of the checkpoint, and published when it is complete,
      with their writer, epoch and number as the ID. After a failure, the sink reads the stream from the position in the
      checkpoint and publishes only the missing messages. Messages that a killed process left in the network and that
      arrive later are dropped within the window. A replaced process is not fenced.

    When the server is unreachable, a request is retried for 10 s with growing pauses; then the task fails, and the
    restart strategy decides.

    Source: D1: exactly once; JetStream's message deduplication.

    Args:
        url: the URL, as for `NatsSource`.
        stream: the name of an existing stream that accepts the subjects.
        subject: the subject of the messages, such as ``"orders.new"``.
        format: the format of messages: ``"json"``, ``"csv"`` or ``"raw"`` (one column).
        key: columns whose texts are appended to the subject: ``orders.new.JFK``. Dots, spaces and wildcards in them are
            percent-encoded, and a null becomes ``-``.
        delivery: see above.
        ca_file: as for `NatsSource`.

    Raises:
        SettingError: the URL, a name, the subject, the format or the delivery is invalid.
        ExpressionError: a key is a computed expression.

    Example::

        delays.sink_to(wb.NatsSink("nats://localhost", "DELAYS", "delays", key="origin", delivery="exactly-once"))
    """

    url: str = field(repr=False)
    stream: str
    subject: str
    format: MessageFormatName
    key: tuple[str, ...]
    delivery: Delivery
    ca_file: str
    kind: ClassVar[str] = "nats"

    def __init__(
        self,
        url: str,
        stream: str,
        subject: str,
        *,
        format: MessageFormatName = "json",
        key: ColumnName | Sequence[ColumnName] = (),
        delivery: Delivery = "at-least-once",
        ca_file: str | PathLike[str] = "",
    ) -> None:
        server = NatsServer(url, ca_file)
        if not is_stream_name(text_of(stream, "stream", "ORDERS")):
            raise SettingError(f"stream is {as_given(stream)}: write the name of a stream, such as 'ORDERS'")
        parts = text_of(subject, "subject", "orders.new").split(".")
        if any(not part or part in ("*", ">") or any(map(str.isspace, part)) for part in parts):
            raise SettingError(f"subject is {as_given(subject)}: write one without wildcards, such as 'orders.new'")
        if format not in FORMATS:
            raise SettingError(f"format is {as_given(format)}: write 'json', 'csv' or 'raw'")
        if not isinstance(delivery, str) or delivery not in DELIVERIES:
            raise SettingError(unknown("delivery", delivery, DELIVERIES))
        values = {
            "url": url,
            "stream": stream,
            "subject": subject,
            "format": format,
            "key": upsert_key_of(key),
            "delivery": delivery,
            "ca_file": server.ca_file,
        }
        for name, given in values.items():
            object.__setattr__(self, name, given)

    @property
    def name(self) -> str:
        """The name of the sink in graphs: its stream."""
        return self.stream

    @cached_property
    def target(self) -> Stream:
        """The stream at its server."""
        form = message_format(self.format, None)
        return Stream(NatsServer(self.url, self.ca_file), self.stream, self.subject, form, self.key)

    def place(self) -> Place:
        """The subject at the server."""
        return Place(str(self.target.server), f"{self.stream} {self.subject}")

    def describe(self) -> str:
        by = f" by {', '.join(self.key)}" if self.key else ""
        return f"{self.stream} of {self.target.server}, {self.subject}{by}"
