"""Live feeds from real servers: messages become records, lost connections are retried, refusals are reported."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import mqtt_server
import pyarrow as pa
import pytest
from feed_servers import event_server, web_socket_server
from polled import read
from source_readers import readers
from waiting import until

import workbench as wb
from workbench.connectors.contract.base import Exhausted, Fetched, SplitProgress
from workbench.connectors.feeds.event_stream import EventParser
from workbench.connectors.feeds.link import FeedMessage
from workbench.connectors.feeds.web_socket import WebSocketWire
from workbench.errors import PlanError, SettingError, SourceError

SCHEMA = {"n": pa.int64()}


def test_events_are_read_on_from_the_last_one() -> None:
    with event_server() as server:
        server.events = [f'{{"n": {n}}}' for n in range(5)]
        (reader,) = readers(wb.ServerEventSource(server.url, SCHEMA), 1)
        assert read(reader, 5) == [0, 1, 2, 3, 4]
        saved = reader.snapshot()
        server.events += ['{"n": 5}']
        assert read(reader, 1) == [5]  # the server had ended the stream
        reader.close()
        (again,) = readers(wb.ServerEventSource(server.url, SCHEMA), 1)
        again.restore([saved])
        assert read(again, 1) == [5]
        again.close()
        assert server.asked[0] == ""
        assert set(server.asked[1:]) == {"4"}


def test_a_job_reads_a_feed() -> None:
    with event_server() as server:
        server.events = [f'{{"n": {n}}}' for n in range(5)]
        job = (
            wb.Stream.from_source(wb.ServerEventSource(server.url, SCHEMA))
            .sink_to(wb.TableSink("rows"))
            .run("feed", parallelism=2, checkpoint_interval="50ms")
        )
        until(lambda: job.table().num_rows == 5)
        job.cancel()
        job.wait("60s")


def test_an_event_that_is_no_record() -> None:
    with event_server() as server:
        server.events = ['{"n": 1}', "nonsense", '{"n": 2}']
        (strict,) = readers(wb.ServerEventSource(server.url, SCHEMA), 1)
        with pytest.raises(SourceError, match=r"^http://127\S* 1 is not a record of these columns: .*nonsense"):
            read(strict, 3)
        strict.close()
        (reader,) = readers(wb.ServerEventSource(server.url, SCHEMA, on_error="dead_letter"), 1)
        assert read(reader, 2) == [1, 2]
        reader.close()


def test_what_a_server_refuses_is_named() -> None:
    with event_server() as server:
        for status, kind, message in (
            (404, "text/event-stream", "it answers 404 Not Found"),
            (301, "text/event-stream", "it answers 301 .*; use the address to which it moved"),
            (200, "text/html", "it answers with 'text/html', not with text/event-stream"),
        ):
            server.status, server.kind = status, kind
            (reader,) = readers(wb.ServerEventSource(server.url, SCHEMA), 1)
            with pytest.raises(SourceError, match=message):
                read(reader, 1)
            reader.close()


def test_a_server_that_is_away_is_tried_again_and_then_named() -> None:
    pytest.importorskip("h11")
    (reader,) = readers(wb.ServerEventSource("http://127.0.0.1:1/", SCHEMA, retries=2), 1)
    seen = set()

    def tell() -> None:
        while True:
            polled: Any = reader.poll(1)
            seen.add(0 if reader.outage is None else reader.outage.attempts)
            reader._clock.advance_to(polled.time_us)

    with pytest.raises(SourceError, match=r"no messages from http://127\.0\.0\.1:1/ 3 times in a row: .*refused"):
        tell()
    assert seen - {0} == {1, 2}
    reader.close()


def test_other_subtasks_read_nothing() -> None:
    pytest.importorskip("h11")
    made = readers(wb.ServerEventSource("http://127.0.0.1:1/", SCHEMA), 2)
    assert made[1].poll(1) == Exhausted()
    assert list(made[1].splits()) == []


def test_events_in_pieces() -> None:
    data = b"data: 1\r\nid: a\r\n\r\n: comment\nevent: x\ndata:2\ndata\n\ndata: 3\n\n"
    for size in (1, 2, 7, len(data)):
        parser = EventParser()
        found = [each for at in range(0, len(data), size) for each in parser.take(data[at : at + size])]
        assert found == [FeedMessage(b"1", "a"), FeedMessage(b"2\n", "a"), FeedMessage(b"3", "a")]


def test_messages_of_a_web_socket() -> None:
    with web_socket_server([f'{{"n": {n}}}' for n in range(3)]) as url:
        (reader,) = readers(wb.WebSocketSource(url, SCHEMA, subscribe=['{"n": 9}']), 1)
        assert read(reader, 8) == [9, 0, 1, 2] * 2  # it connects again when the server closes
        reader.close()


def test_a_web_socket_that_closes_with_its_answer() -> None:
    """A reader that comes late receives both at once; and what was sent in between."""
    server = pytest.importorskip("websockets.server", reason="the package websockets is not installed").ServerProtocol()
    wire = WebSocketWire("ws://localhost/feed", {}, ['{"n": 9}'])
    wire.opened("")
    server.receive_data(wire.to_send())
    [request] = server.events_received()
    server.send_response(server.accept(request))
    server.send_text(b'{"n": 1}')
    server.send_close(1011)
    assert wire.take(b"".join(server.data_to_send())) == [FeedMessage(b'{"n": 1}')]
    assert wire.ping()


def test_a_web_socket_that_is_none_is_named() -> None:
    with event_server() as server:
        server.status = 404
        (reader,) = readers(wb.WebSocketSource(server.url.replace("http", "ws"), SCHEMA), 1)
        with pytest.raises(SourceError, match="it refuses the handshake"):
            read(reader, 1)
        reader.close()


def test_a_connection_without_messages_is_none_that_is_lost() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pytest.importorskip("websockets")
    reader: Any = readers(wb.WebSocketSource(f"ws://127.0.0.1:{port}/feed", SCHEMA, subscribe=["x"], retries=90), 1)[0]
    clock = reader._clock

    def waits() -> bool:
        clock.advance_to(max(reader.poll(9).time_us, clock.now_us()))
        return True

    until(lambda: waits() and reader.outage is not None and reader.outage.attempts > 1)
    assert not reader.outage.keeps
    assert list(reader.progress().values()) == [SplitProgress("0 messages", None, 0)]
    with web_socket_server([], port, keeps=True) as url:
        until(lambda: waits() and reader.outage is None)
        assert reader.progress() == {url: SplitProgress("0 messages", 0, reader._told_us)}
        assert reader._retries.outage is not None  # it may be lost at once, and would count in a row with the others
        clock.advance_to(clock.now_us() + 6_000_000)
        assert waits()
        assert reader._retries.outage is None
        reader.close()


@pytest.mark.parametrize("kind", [wb.ServerEventSource, wb.WebSocketSource, wb.MqttSource])
def test_a_server_that_says_nothing_is_named(kind: Any) -> None:
    for package in ("h11", "websockets", "paho.mqtt.client"):
        pytest.importorskip(package)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        place = f"{min(kind.schemes, key=len)}://127.0.0.1:{silent.getsockname()[1]}"
        reader: Any = readers(kind(place, SCHEMA, retries=0), 1)[0]
        for _ in range(2):
            reader.poll(1)
            reader._clock.advance_to(reader._clock.now_us() + 6_000_000)
        with pytest.raises(SourceError, match=r"no messages from .*: it does not answer"):
            reader.poll(1)
        reader.close()


def test_a_topic_of_mqtt_that_is_refused() -> None:
    """By hand: the lists of rights of Mosquitto let each topic be subscribed to, and then send nothing."""
    pytest.importorskip("paho.mqtt.client")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"mqtt://127.0.0.1:{listener.getsockname()[1]}"
        reader: Any = readers(wb.MqttSource(url, SCHEMA, topic="secret/#"), 1)[0]
        reader.poll(1)
        broker, _ = listener.accept()
        with broker:
            broker.setblocking(False)
            asked = b""

            def told(count: int) -> bool:
                nonlocal asked
                reader._clock.advance_to(reader.poll(1).time_us)
                with suppress(BlockingIOError):
                    asked += broker.recv(1_000)
                return len(asked) >= count

            until(lambda: told(14) and asked[0] == 0x10)
            asked = b""
            broker.sendall(b"\x20\x02\0\0")  # accepts the connection
            until(lambda: told(4) and asked[0] == 0x82)
            broker.sendall(b"\x90\x03" + asked[2:4] + b"\x80")  # and no subscription
            with pytest.raises(SourceError, match=r"it refuses the topic 'secret/#': "):
                until(lambda: told(1_000))
        reader.close()


@pytest.mark.slow
def test_mqtt_loses_no_message_of_a_job_that_keeps_up_and_drops_those_beyond_its_queue() -> None:
    with mqtt_server.running() as server:
        source = wb.MqttSource(f"mqtt://ann:{mqtt_server.PASSWORD}@{server.place}", SCHEMA, topic="a/#")
        (reader,) = readers(source, 1)
        found: list[int] = []

        def arrives(last: int) -> bool:
            reader._clock.advance_to(reader._clock.now_us() + 20_000)
            if isinstance(polled := reader.poll(1000), Fetched):
                found.extend(polled.records.batch.column("n").to_pylist())
            elif not found:
                server.send("a/b", [b'{"n": -1}'])
            return last in found

        def send(numbers: range) -> None:
            server.send("a/b", [b'{"n": %d}' % number for number in numbers])

        until(lambda: arrives(-1))
        for begin in range(0, 3_000, 500):
            send(range(begin, begin + 500))
            until(lambda begin=begin: arrives(begin + 499))
        assert [number for number in found if number >= 0] == list(range(3_000))
        for begin in range(3_000, 6_000, 500):  # nobody reads them meanwhile
            send(range(begin, begin + 500))
        until(lambda: arrives(3_999))
        rest = [number for number in found if number >= 3_000]
        assert rest == list(range(3_000, 3_000 + len(rest)))
        assert len(rest) < 3_000
        reader.close()


def test_messages_of_mqtt(monkeypatch: pytest.MonkeyPatch) -> None:
    with mqtt_server.running() as server:
        monkeypatch.setenv("WB_MQTT_PASSWORD", mqtt_server.PASSWORD)
        source = wb.MqttSource(f"mqtt://ann:${{WB_MQTT_PASSWORD}}@{server.place}", SCHEMA, topic="a/#")
        (reader,) = readers(source, 1)

        def arrives() -> bool:
            reader._clock.advance_to(reader._clock.now_us() + 20_000)
            server.send("a/b", [b'{"n": 7}'])
            return isinstance(reader.poll(1), Fetched)

        until(arrives)
        reader.close()
        monkeypatch.setenv("WB_MQTT_PASSWORD", "guessed")
        (refused,) = readers(source, 1)
        with pytest.raises(SourceError, match=r"it refuses the connection: ") as raised:
            read(refused, 1)
        assert "guessed" not in str(raised.value)
        refused.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wb.ServerEventSource("ws://h", SCHEMA), r"url is 'ws://h': write https://host or http://host"),
        (lambda: wb.WebSocketSource("ws://", SCHEMA), "write wss://host or ws://host"),
        (lambda: wb.MqttSource("mqtt://h", SCHEMA, topic=""), "topic is ''"),
        (lambda: wb.MqttSource("mqtt://h", SCHEMA, topic="a/#/b"), "topic is 'a/#/b': a wildcard"),
        (lambda: wb.MqttSource("mqtt://h", SCHEMA, topic="a+/b"), "must be a whole level between two"),
        (lambda: wb.ServerEventSource("http://h", SCHEMA, format="arrow"), "write 'json', 'csv' or 'raw'"),
        (lambda: wb.ServerEventSource("http://h", SCHEMA, headers="x"), "headers is 'x'"),  # type: ignore[arg-type]
        (lambda: wb.ServerEventSource("http://h", SCHEMA, retries=-1), "retries"),
        (lambda: wb.ServerEventSource("http://${WB_NO_SUCH}", SCHEMA), "WB_NO_SUCH is not set"),
    ],
)
def test_settings_that_cannot_be_used(make: Any, message: str) -> None:
    for package in ("h11", "websockets", "paho.mqtt.client"):
        pytest.importorskip(package)
    with pytest.raises(SettingError, match=message):
        make()


def test_event_time_must_exist() -> None:
    pytest.importorskip("h11")
    with pytest.raises(PlanError, match="unknown column 'at'"):
        wb.ServerEventSource("http://h", SCHEMA, event_time="at")


def test_a_feed_is_recorded_and_replayed(tmp_path: Path) -> None:
    with event_server() as server:
        server.events = [f'{{"n": {n}}}' for n in range(5)]
        stream = wb.Stream.from_source(wb.ServerEventSource(server.url, SCHEMA))
        both = stream.record_to(tmp_path / "feed") + stream.sink_to(wb.TableSink("rows"))
        job = both.run("feed", checkpoint_interval="50ms")
        until(lambda: job.table().num_rows == 5 and len(list((tmp_path / "feed").glob("part-*"))) > 0)
        job.cancel()
        job.wait("60s")
    history = wb.History.from_recording(tmp_path / "feed", tmp_path / "log", progress=False)
    assert history.event_time == "arrived_at"
    replayed = wb.Stream.replay(history, speed="600x").collect()
    assert sorted(replayed["n"].to_pylist()) == [0, 1, 2, 3, 4]
    with pytest.raises(wb.errors.HistoryError, match="has no recorded records"):
        wb.History.from_recording(tmp_path / "nothing", tmp_path / "other")
    with pytest.raises(PlanError, match="already has a column 'arrived_at'"):
        wb.Stream.replay(history).record_to(tmp_path / "again")
