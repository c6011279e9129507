"""The first program of each connector in the documentation, as it stands there, shows rows.

It has less than five lines of code. Only its address is that of a server of the test.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import feed_servers
import kafka_server
import mqtt_server
import nats_server
import postgresql_server
import pyarrow as pa
import pytest
import redis_server

import workbench as wb

PAGE = Path(__file__).parents[2] / "docs" / "connectors.md"
AT = "2026-03-29T01:30:00"
ORDERS = [{"id": n, "at": AT} for n in range(12)]
HEAT = [json.dumps({"c": n + 0.5}).encode() for n in range(12)]


@contextmanager
def kafka() -> Iterator[str]:
    with kafka_server.running() as server:
        server.send(server.topic(2, "orders"), [json.dumps(row).encode() for row in ORDERS], 2)
        yield server.servers


@contextmanager
def events() -> Iterator[str]:
    with feed_servers.event_server() as server:
        server.events = [json.dumps({"wiki": f"w{n}", "title": "t", "bot": False, "more": 1}) for n in range(12)]
        yield server.url


@contextmanager
def web_socket() -> Iterator[str]:
    with feed_servers.web_socket_server([json.dumps({"price": n + 0.5}) for n in range(12)]) as url:
        yield url


@contextmanager
def mqtt() -> Iterator[str]:
    """A sensor that sends all the time."""
    with mqtt_server.running() as server:
        done = threading.Event()

        def send() -> None:
            while not done.wait(0.1):
                server.send("sensors/1", HEAT)

        sensor = threading.Thread(target=send)
        sensor.start()
        try:
            yield server.place
        finally:
            done.set()
            sensor.join()


@contextmanager
def nats() -> Iterator[str]:
    with nats_server.running() as server:
        server.stream("SENSORS")
        server.send("SENSORS", HEAT)
        yield server.place


@contextmanager
def redis() -> Iterator[str]:
    with redis_server.running() as server, redis_server.client_of(server) as client:
        for row in ORDERS:
            client.xadd(f"orders:{row['id'] % 2}", row)  # type: ignore[operator]
        yield server.url


@contextmanager
def postgresql() -> Iterator[str]:
    with postgresql_server.running() as server:
        server.query("CREATE TABLE orders (id BIGINT PRIMARY KEY, city TEXT, at TIMESTAMPTZ)")
        server.query(f"INSERT INTO orders SELECT n, 'c' || n, '{AT}Z' FROM generate_series(0, 11) AS n")
        yield server.url


PROGRAMS = {
    "KafkaSource": (kafka, "localhost:9092", "2026-03-29"),
    "ServerEventSource": (events, "https://stream.wikimedia.org/v2/stream/recentchange", "w7"),
    "WebSocketSource": (web_socket, "wss://feed.example/trades", "7.5"),
    "MqttSource": (mqtt, "localhost", "7.5"),
    "NatsSource": (nats, "localhost:4222", "SENSORS.a"),
    "RedisSource": (redis, "redis://localhost:6379", "2026-03-29"),
    "SqlSource": (postgresql, "postgresql://ann@localhost/shop", "c7"),
}


def program_with(name: str) -> str:
    """The first program of the page that has this name."""
    blocks = re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return next(block for block in blocks if f"wb.{name}(" in block)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_program_shows_rows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = program_with(name)
    assert len(program.splitlines()) < 5
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MQTT_PASSWORD", mqtt_server.PASSWORD)
    serve, address, shown = PROGRAMS[name]
    assert program.count(address) == 1
    with serve() as place:
        exec(program.replace(address, place), {"wb": wb, "pa": pa})
    printed = capsys.readouterr().out
    assert shown in printed
    assert len(printed.splitlines()) >= 10
    assert list(tmp_path.iterdir()) == []
