"""Live feeds, as named connectors."""

from __future__ import annotations

from typing import Any

from workbench.connectors.contract.base import Source
from workbench.connectors.feeds.mqtt import MqttSource
from workbench.connectors.feeds.web import ServerEventSource, WebSocketSource
from workbench.connectors.messages.choosing import MessageFormatName
from workbench.connectors.named.brokers import CA_FILE
from workbench.connectors.named.connector import Declared, NamedConnector
from workbench.connectors.named.files import ON_ERROR, UNIT, unit_of
from workbench.connectors.named.options import Options
from workbench.operators.functions.dead_letters import POLICIES

_HEADER = "header."
_FORMATS: tuple[MessageFormatName, ...] = ("json", "csv", "raw")
_SHARED = {
    "format": "of a message: 'json' (the default), 'csv' or 'raw'",
    "on_error": ON_ERROR,
    "retries": "the number of reconnection attempts in a row; 12 by default",
    "ca_file": CA_FILE,
    "unit": UNIT,
}
_HEADERS = {"header.*": "a header of the request: 'header.Authorization' = 'Bearer ${TOKEN}'"}


def _shared_by(options: Options, table: Declared) -> dict[str, Any]:
    """The arguments that all feeds share."""
    return {
        "url": options.text("url"),
        "columns": table.schema,
        "format": options.one_of("format", _FORMATS, "json"),
        "event_time": table.event_time,
        "on_error": options.one_of("on_error", POLICIES, "fail"),
        "retries": options.whole("retries", 12) or 0,
        "ca_file": options.text("ca_file", ""),
        "unit": unit_of(options),
    }


def _events(options: Options, table: Declared) -> Source:
    return ServerEventSource(**_shared_by(options, table), headers=options.below(_HEADER))


def _web_socket(options: Options, table: Declared) -> Source:
    messages = [options.text("subscribe")] if "subscribe" in options else ()
    return WebSocketSource(**_shared_by(options, table), headers=options.below(_HEADER), subscribe=messages)


def _mqtt(options: Options, table: Declared) -> Source:
    return MqttSource(**_shared_by(options, table), topic=options.text("topic"))


EVENTS = NamedConnector("sse", "server-sent events", {"url": "https:// or http://", **_SHARED, **_HEADERS}, _events)
WEB_SOCKET = NamedConnector(
    "websocket",
    "WebSocket messages",
    {"url": "wss:// or ws://", "subscribe": "a message to send after connecting", **_SHARED, **_HEADERS},
    _web_socket,
)
MQTT = NamedConnector(
    "mqtt",
    "MQTT messages",
    {"url": "such as 'mqtt://ann:${MQTT_PASSWORD}@localhost'", "topic": "such as 'sensors/#'", **_SHARED},
    _mqtt,
)
