"""MQTT topics, with the package ``paho-mqtt``."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from workbench.arguments import as_given, text_of
from workbench.connectors.contract.secrets import revealed_url
from workbench.connectors.feeds.certificates import tls_failure, trusting
from workbench.connectors.feeds.link import FeedMessage, Link, LinkError
from workbench.connectors.feeds.source import FeedSource
from workbench.connectors.feeds.tcp_link import Address
from workbench.errors import SettingError, told_by
from workbench.packages import needed

_CONNECT_S = 2.0
_KEEP_ALIVE_S = 20
"""After this time without a message, the client pings the broker; after the same time without an answer, the connection
is lost. The broker ends a connection whose client is silent for one and a half times as long."""
_TURNS = 200


@dataclass(frozen=True)
class MqttSource(FeedSource):
    """Messages of an MQTT broker, each of which is a record.

    MQTT keeps no messages for a disconnected client, so messages are lost while the job is disconnected. They are also
    lost while it reads slower than they arrive, once the broker's queue for the client is full (in Mosquitto 1,000
    messages, ``max_queued_messages``);
    `Stream.record_to` keeps received ones.

    Source: F2-8: a source that cannot be read again; MQTT 3.1.1.

    Args:
        url: ``mqtt://[user:password@]host:port``, or ``mqtts://`` for TLS; ``${NAME}`` is an environment variable.
        columns, format, event_time, on_error, retries, ca_file, unit: as for `ServerEventSource`.
        headers: unused.
        topic: the topic to subscribe to; ``+`` and ``#`` are wildcards.

    Raises:
        SettingError: the URL, topic, format, unit or a number is invalid.
        PlanError: the event-time column does not exist.
        MissingPackageError: the package paho-mqtt is not installed.
        SourceError: while running: no connection, a refused login, or a message that is not a record.

    Example::

        sensors = wb.Stream.from_source(wb.MqttSource("mqtt://localhost", {"c": pa.float64()}, topic="sensors/#"))
    """

    topic: str = "#"
    kind: ClassVar[str] = "mqtt"
    schemes = {"mqtt": 1883, "mqtts": 8883}  # noqa: RUF012

    def __post_init__(self) -> None:
        if not text_of(self.topic, "topic", "sensors/#"):
            raise SettingError("topic is '': write a topic, such as 'sensors/#'")
        *levels, last = self.topic.split("/")
        mixed = any(len(level) > 1 and set(level) & set("+#") for level in (*levels, last))
        if mixed or "#" in levels:
            raise SettingError(
                f"topic is {as_given(self.topic)}: a wildcard '+' or '#' must be a whole level between two '/', and "
                "'#' the last one, as in 'sensors/+/room/#'"
            )
        super().__post_init__()

    def describe(self) -> str:
        return f"{self.server} {self.topic}"

    def link(self) -> Link:
        needed("paho.mqtt.client", "reading MQTT")
        return MqttLink(revealed_url(self.url), self.address, self.topic)


class MqttLink:
    """See `Link`.

    Args:
        url: the URL with its secrets.
        address: the address of the broker.
        topic: the topic to subscribe to.

    Attributes:
        is_ready: whether the broker has accepted the subscription.
    """

    def __init__(self, url: str, address: Address, topic: str) -> None:
        self._parts = urlsplit(url)
        self._address = address
        self._topic = topic
        self._client: Any = None
        self._found: list[FeedMessage] = []
        self._refused: LinkError | None = None
        self.is_ready = False

    def start(self, position: str) -> None:
        package = needed("paho.mqtt.client", "reading MQTT")
        client = package.Client(package.CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
        parts = self._parts
        if parts.username is not None:
            client.username_pw_set(unquote(parts.username), unquote(parts.password or ""))
        if self._address.tls:
            context = trusting(self._address.ca_file)
            context.sslsocket_class = _ClosedIfRefused
            client.tls_set_context(context)
        client.connect_timeout = _CONNECT_S
        client.on_connect = self._connected
        client.on_subscribe = self._subscribed
        client.on_message = lambda _client, _data, message: self._found.append(FeedMessage(message.payload))
        try:
            client.connect(self._address.host, self._address.port, keepalive=_KEEP_ALIVE_S)
        except ssl.SSLError as error:
            raise tls_failure(error) from error
        except OSError as error:
            raise LinkError(told_by(error)) from error
        self._client = client

    def receive(self) -> Sequence[FeedMessage]:
        package = needed("paho.mqtt.client", "reading MQTT")
        for _ in range(_TURNS):
            before = len(self._found)
            code = self._client.loop(timeout=0)
            if self._refused is not None:
                raise self._refused
            if code != package.MQTT_ERR_SUCCESS and not self._found:
                raise LinkError(package.error_string(code))
            if len(self._found) == before:
                break
        found, self._found = self._found, []
        return found

    def check(self, now_us: int) -> None:
        """The client itself asks the broker, in `receive`."""

    def close(self) -> None:
        if self._client is not None:
            with suppress(OSError):
                self._client.disconnect()
                self._client.loop(timeout=0)
            self._client = None

    def _connected(self, client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            self._refused = LinkError(f"it refuses the connection: {reason}", fatal=True)
        else:
            client.subscribe(self._topic, qos=1)

    def _subscribed(self, _client: Any, _data: Any, _number: int, reasons: Sequence[Any], _properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self._refused = LinkError(f"it refuses the topic {self._topic!r}: {reasons[0]}", fatal=True)
        else:
            self.is_ready = True


class _ClosedIfRefused(ssl.SSLSocket):
    """Closes the connection if it refuses the server's certificate, because the client does not."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except ssl.SSLError:
            self.close()
            raise
