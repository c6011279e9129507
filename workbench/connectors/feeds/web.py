"""Feeds of web servers: server-sent events and WebSockets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import urlsplit

from workbench.connectors.contract.secrets import revealed, revealed_url
from workbench.connectors.feeds.event_stream import EventWire
from workbench.connectors.feeds.link import Link
from workbench.connectors.feeds.source import FeedSource
from workbench.connectors.feeds.tcp_link import TcpLink
from workbench.connectors.feeds.web_socket import WebSocketWire
from workbench.packages import needed


@dataclass(frozen=True)
class ServerEventSource(FeedSource):
    """Server-sent events: the data of each event is a record, such as Wikipedia's recent changes.

    After a failure, the request contains the last event ID, and servers that support it continue there. With other
    servers, events are lost while the job is disconnected; `Stream.record_to` keeps received ones.

    Source: F2-8: a source that cannot be read again; the HTML standard, 9.2.

    Args:
        url: ``https://`` or ``http://``; ``${NAME}`` in it is an environment variable.
        columns: the names and types of the columns; missing values are null, and values without a column are ignored.
        format: the format of an event's data: ``"json"``, ``"csv"``, or ``"raw"`` (one column).
        event_time: the event-time column, or None.
        headers: additional headers of the request, such as ``{"Authorization": "Bearer ${TOKEN}"}``.
        on_error: how to handle an event that is not a record: ``"fail"`` or ``"dead_letter"``.
        retries: the number of reconnection attempts in a row, after 100 ms, 200 ms, ... up to 5 s.
        ca_file: a PEM file of the certificate authorities to trust instead of the system's.
        unit: what a number in a column of timestamps counts since 1970, in JSON: ``"s"``, ``"ms"``, ``"us"`` or
            ``"ns"``. The conversion is exact; without it such numbers are refused.

    Raises:
        SettingError: an invalid URL, format, unit or number.
        PlanError: no such event-time column.
        MissingPackageError: the package h11 is not installed.
        SourceError: while running: no connection, a refusal, or an event that is not a record.

    Example::

        changes = wb.Stream.from_source(wb.ServerEventSource(
            "https://stream.wikimedia.org/v2/stream/recentchange", {"wiki": pa.string(), "title": pa.string()}
        ))
    """

    kind: ClassVar[str] = "server-sent events"
    schemes = {"https": 443, "http": 80}  # noqa: RUF012

    def link(self) -> Link:
        needed("h11", "reading server-sent events")
        parts = urlsplit(revealed_url(self.url))
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        host = parts.netloc.rpartition("@")[2]
        headers = self.revealed_headers()
        return TcpLink(self.address, lambda: EventWire(host, target, headers))


@dataclass(frozen=True)
class WebSocketSource(FeedSource):
    """WebSocket messages, each of which is a record, such as the trades of an exchange.

    Messages are lost while the job is disconnected; `Stream.record_to` keeps received ones.

    Source: F2-8: a source that cannot be read again; RFC 6455.

    Args:
        url: ``wss://`` or ``ws://``; ``${NAME}`` in it is an environment variable.
        columns, format, event_time, headers, on_error, retries, ca_file, unit: as for `ServerEventSource`.
        subscribe: messages to send after each connect, such as ``['{"type": "subscribe", "channel": "trades"}']``.

    Raises:
        SettingError: an invalid URL, format, unit or number.
        PlanError: no such event-time column.
        MissingPackageError: the package websockets is not installed.
        SourceError: while running: no connection, a refusal, or a message that is not a record.

    Example::

        trades = wb.Stream.from_source(wb.WebSocketSource("wss://feed.example/trades", {"price": pa.float64()}))
    """

    subscribe: Sequence[str] = field(default=(), repr=False)
    kind: ClassVar[str] = "websocket"
    schemes = {"wss": 443, "ws": 80}  # noqa: RUF012

    def link(self) -> Link:
        needed("websockets.client", "reading WebSockets")
        url = revealed_url(self.url)
        headers = self.revealed_headers()
        subscribe = [revealed(message) for message in self.subscribe]
        return TcpLink(self.address, lambda: WebSocketWire(url, headers, subscribe))
