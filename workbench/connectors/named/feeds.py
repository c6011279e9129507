"""Live feeds, as named connectors."""

from __future__ import annotations

from workbench.connectors.contract.base import Source
from workbench.connectors.feeds.mqtt import MqttSource
from workbench.connectors.feeds.web import ServerEventSource, WebSocketSource
from workbench.connectors.messages.choosing import MessageFormatName
from workbench.connectors.named.connector import Declared, NamedConnector
from workbench.connectors.named.files import ON_ERROR
from workbench.connectors.named.options import Options
from workbench.operators.functions.dead_letters import POLICIES, OnError

_HEADER = "header."
_FORMATS: tuple[MessageFormatName, ...] = ("json", "csv", "raw")
_SHARED = {
    "format": "of a message: 'json' (the default), 'csv' or 'raw'",
    "on_error": ON_ERROR,
    "retries": "how often in a row to connect again; 12 by default",
}
_HEADERS = {"header.*": "a header of the request: 'header.Authorization' = 'Bearer ${TOKEN}'"}


def _format(options: Options) -> MessageFormatName:
    return options.one_of("format", _FORMATS, "json")


def _policy(options: Options) -> OnError:
    return options.one_of("on_error", POLICIES, "fail")


def _events(options: Options, table: Declared) -> Source:
    return ServerEventSource(
        options.text("url"),
        table.schema,
        _format(options),
        table.event_time,
        options.below(_HEADER),
        _policy(options),
        options.whole("retries", 12) or 0,
    )


def _web_socket(options: Options, table: Declared) -> Source:
    return WebSocketSource(
        options.text("url"),
        table.schema,
        _format(options),
        table.event_time,
        options.below(_HEADER),
        _policy(options),
        options.whole("retries", 12) or 0,
        [options.text("subscribe")] if "subscribe" in options else (),
    )


def _mqtt(options: Options, table: Declared) -> Source:
    return MqttSource(
        options.text("url"),
        table.schema,
        _format(options),
        table.event_time,
        on_error=_policy(options),
        retries=options.whole("retries", 12) or 0,
        topic=options.text("topic"),
    )


EVENTS = NamedConnector("sse", "server-sent events", {"url": "https:// or http://", **_SHARED, **_HEADERS}, _events)
WEB_SOCKET = NamedConnector(
    "websocket",
    "messages of a WebSocket",
    {"url": "wss:// or ws://", "subscribe": "a message to send after connecting", **_SHARED, **_HEADERS},
    _web_socket,
)
MQTT = NamedConnector(
    "mqtt",
    "messages of an MQTT broker",
    {"url": "such as 'mqtt://ann:${MQTT_PASSWORD}@localhost'", "topic": "such as 'sensors/#'", **_SHARED},
    _mqtt,
)
