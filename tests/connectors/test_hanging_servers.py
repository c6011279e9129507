"""Real servers that accept connections and never answer, because their processes are stopped for a while. Each is shown
as lost, and found again with nothing lost or doubled; a job ends meanwhile."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import kafka_server
import mqtt_server
import nats_server
import postgresql_server
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import redis_server
from hanging import hanging
from outages import outages, wait_until_lost
from polled import read
from source_readers import readers
from waiting import until

import workbench as wb
from workbench.clock import SystemClock
from workbench.connectors.contract.base import Fetched
from workbench.connectors.sql.notices import Notices
from workbench.dashboard.contract.view_table import dashboard_views
from workbench.errors import JobError, SourceError
from workbench.operators.contract.base import OperatorContext

SCHEMA = {"n": pa.int64()}
ROWS, MANY = pa.table({"n": range(400)}), pa.table({"n": range(2_000)})
STOPPED = "while the job was being stopped; a run that resumes continues from checkpoint"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for an answer for a shorter time than users do."""
    for place, seconds in (
        ("redis.server._ANSWER_S", 0.3),
        ("nats.publisher._ANSWER_S", 0.5),
        ("sql.session._SILENT_S", 0.5),
        ("sql.lookup._SILENT_S", 0.5),
        ("sql.notices._ANSWER_S", 0.5),
        ("sql.session._CONNECT_S", 2),
        ("kafka.outgoing._SILENT_S", 0.5),
        ("feeds.mqtt._KEEP_ALIVE_S", 1),
        ("kafka.reader._SILENT_US", 1_500_000),
        ("kafka.contacts.INTERVAL_MS", 200),
    ):
        monkeypatch.setattr(f"workbench.connectors.{place}", seconds)
    monkeypatch.setattr("workbench.connectors.kafka.reader.INTERVAL_MS", 200)


def messages(numbers: range) -> list[bytes]:
    return [json.dumps({"n": number}).encode() for number in numbers]


def step(reader: Any, by_us: int = 500_000) -> bool:
    """Look once, and let time pass."""
    polled = reader.poll(100)
    assert not isinstance(polled, Fetched)
    reader._clock.advance_to(reader._clock.now_us() + by_us)
    time.sleep(0.002)
    return True


def test_a_nats_server_that_hangs_is_lost_for_its_source() -> None:
    with nats_server.running() as server:
        server.stream("n")
        server.send("n", messages(range(3)))
        (reader,) = readers(wb.NatsSource(server.url, "n", SCHEMA), 1)
        assert read(reader, 3) == [0, 1, 2]
        for _ in range(40):  # it answers when it is asked
            step(reader)
        assert reader.outage is None
        with hanging(server):
            until(lambda: step(reader) and reader.outage is not None)
            assert (reader.outage.error, reader.outage.server) == ("it does not answer", server.url)
        server.send("n", messages(range(3, 6)))
        assert read(reader, 3) == [3, 4, 5]
        assert reader.outage is None
        reader.close()


FEED = """
import sys
from websockets.sync.server import serve
def feed(connection):
    for n in range(3):
        connection.send('{"n": %d}' % n)
    connection.recv()
with serve(feed, "127.0.0.1", 0) as server:
    print(server.socket.getsockname()[1], flush=True)
    server.serve_forever()
"""


def test_a_web_socket_server_that_hangs_is_lost() -> None:
    pytest.importorskip("websockets")
    with subprocess.Popen([sys.executable, "-c", FEED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None

        class Server:
            _process = process

        (reader,) = readers(wb.WebSocketSource(f"ws://127.0.0.1:{int(process.stdout.readline())}", SCHEMA), 1)
        assert read(reader, 3) == [0, 1, 2]
        for _ in range(40):
            step(reader)
        assert reader.outage is None
        with hanging(Server()):
            until(lambda: step(reader) and reader.outage is not None)
            assert reader.outage.error == "it does not answer"
        assert read(reader, 3) == [0, 1, 2]
        reader.close()
        process.kill()


@pytest.mark.parametrize("answers", [True, False])
def test_a_server_of_events_is_asked_over_a_second_connection(answers: bool) -> None:
    pytest.importorskip("h11")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept = []

        def serve() -> None:
            while answers or not kept:
                kept.append(listener.accept()[0])
                kept[-1].sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {"n": 7}\n\n')

        threading.Thread(target=serve, daemon=True).start()
        (reader,) = readers(wb.ServerEventSource(f"http://127.0.0.1:{listener.getsockname()[1]}/", SCHEMA), 1)
        assert read(reader, 1) == [7]
        if answers:
            until(lambda: step(reader) and len(kept) > 2)
            assert reader.outage is None
        else:
            until(lambda: step(reader) and reader.outage is not None)
            assert reader.outage.error == "it does not answer"
        reader.close()
        for each in kept:
            each.close()


def test_a_redis_server_that_hangs_is_lost_for_its_source() -> None:
    with redis_server.running() as server, redis_server.client_of(server) as client:
        client.xadd("rows", {"n": 1})
        (reader,) = readers(wb.RedisSource(server.url, "rows", SCHEMA), 1)
        assert read(reader, 1) == [1]
        with hanging(server):
            step(reader)
            assert reader.outage is not None
            assert reader.outage.error.startswith("Timeout")
        client.xadd("rows", {"n": 2})
        assert read(reader, 1) == [2]
        reader.close()


@pytest.mark.slow
def test_an_mqtt_broker_that_hangs_is_lost() -> None:
    with mqtt_server.running() as server:
        reader: Any = readers(wb.MqttSource(server.url, SCHEMA, topic="rows"), 1)[0]
        until(lambda: step(reader, 1_000) and reader._link.is_ready)
        server.send("rows", messages(range(2)))
        assert read(reader, 2) == [0, 1]
        with hanging(server):
            until(lambda: step(reader, 1_000) and reader.outage is not None)
        until(lambda: step(reader, 100_000) and reader._link is not None and reader._link.is_ready)
        server.send("rows", messages(range(2, 4)))
        assert read(reader, 2) == [2, 3]
        reader.close()


@pytest.mark.slow
def test_a_kafka_broker_that_hangs_is_lost_and_its_lag_says_how_old_it_is() -> None:
    with kafka_server.running() as server:
        server.send(topic := server.topic(1), messages(range(3)), 1)
        reader: Any = wb.KafkaSource(server.servers, topic, SCHEMA).create()
        reader.open(OperatorContext(clock=SystemClock()))
        found: list[int] = []

        def take() -> bool:
            if isinstance(polled := reader.poll(100), Fetched):
                found.extend(polled.records.batch.column("n").to_pylist())
            return True

        def age_us() -> int:
            (split,) = reader.progress().values()
            assert split.lag == 0
            return int(reader._clock.now_us() - split.told_us)

        until(lambda: take() and len(found) == 3 and bool(reader._known._heard))
        with hanging(server):
            until(lambda: take() and age_us() > 1_400_000)
            until(lambda: take() and reader.outage is not None)
            assert age_us() > 1_400_000
        server.send(topic, messages(range(3, 5)), 1)
        until(lambda: take() and found == [0, 1, 2, 3, 4] and reader.outage is None)
        until(lambda: take() and age_us() < 1_000_000)
        reader.close()


@pytest.fixture(scope="module")
def postgresql() -> Iterator[postgresql_server.PostgresProcess]:
    with postgresql_server.running() as server:
        yield server


def sinks(name: str, request: pytest.FixtureRequest) -> tuple[Any, Callable[[Any], Any], Callable[[Any], list[int]]]:
    """How a server runs, its sink, and the rows that it has."""
    if name == "redis":

        def entries(server: Any) -> list[int]:
            with redis_server.client_of(server) as client:
                return [int(fields[b"n"]) for _, fields in client.xrange("rows")]

        return redis_server.running(), lambda server: wb.RedisSink(server.url, "rows"), entries
    if name == "postgresql":
        return (
            nullcontext(request.getfixturevalue("postgresql")),
            lambda server: wb.SqlSink(server.url, "rows"),
            lambda server: [n for (n,) in server.query("SELECT n FROM rows")],
        )

    def stream(server: Any) -> Any:
        server.stream("rows")
        return wb.NatsSink(server.url, "rows", "rows.a", delivery="exactly-once")

    return nats_server.running(), stream, lambda server: [json.loads(v)["n"] for _, v in server.messages("rows")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["redis", "postgresql", "nats"])
def test_a_server_that_hangs_is_lost_for_its_sink_and_a_job_is_canceled_or_stopped_meanwhile(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, sink, rows = sinks(name, request)
    with runs as server:
        pipeline = wb.Stream.from_table(MANY, rate=50).sink_to(sink(server))
        options: Any = {"checkpoint_interval": "50ms", "checkpoint_dir": tmp_path}
        job = pipeline.run("hangs", **options)
        until(job.recorder.latest)
        with hanging(server):
            wait_until_lost(job, str(getattr(server, "folder", server.url)))
            assert all(outage.ends_ms <= 10_000 for outage in outages(job))
        until(lambda: rows(server) and not outages(job))
        with hanging(server):
            time.sleep(0.3)  # it waits for a call
            since = time.monotonic()
            job.cancel()
            assert job.state == "CANCELED"
            assert time.monotonic() - since < 9  # the job waits for a call that does not return for ten
        job = pipeline.run("hangs", resume=True, **options)
        before = len(rows(server))
        until(lambda: len(rows(server)) > before)
        with hanging(server), monkeypatch.context() as patched:
            patched.setattr("workbench.connectors.contract.attempts.HURRY_S", 1.0)
            time.sleep(0.3)  # without a row that waits for it, the job can be stopped without the server
            with pytest.raises(JobError, match=STOPPED) as raised:
                job.stop()
            assert (job.state, job.status()["restarts"]) == ("FAILED", 0)
            assert "pa55word" not in str(raised.value)
        job = pipeline.run("hangs", resume=True, **options)
        job.tune(rate=100_000)
        assert job.wait("60s") == "FINISHED"
        assert sorted(rows(server)) == list(range(2_000))


@pytest.mark.slow
def test_a_postgresql_server_that_hangs_is_lost_for_its_source_and_its_look_ups(
    monkeypatch: pytest.MonkeyPatch, postgresql: postgresql_server.PostgresProcess
) -> None:
    monkeypatch.setattr("workbench.connectors.contract.attempts.WAIT_S", 0.0)
    with nullcontext(postgresql) as server:
        server.query("CREATE TABLE numbers (n BIGINT PRIMARY KEY)")
        server.query("INSERT INTO numbers VALUES (1)")
        (reader,) = readers(wb.SqlSource(server.url, "numbers", SCHEMA, key="n"), 1)
        assert read(reader, 1) == [1]
        looked_up = wb.SqlLookup(server.url, "numbers", SCHEMA, key="n").open()
        assert looked_up.find(1) == {"n": 1}
        with hanging(server):
            step(reader)
            assert reader.outage is not None
            assert reader.outage.error == "the server does not answer"
            with pytest.raises(SourceError, match=r"cannot look up rows in .*: the server does not answer"):
                looked_up.find(1)
        server.query("INSERT INTO numbers VALUES (2)")
        assert read(reader, 1) == [2]
        assert looked_up.find(2) == {"n": 2}
        reader.close()
        looked_up.close()


@pytest.mark.slow
def test_a_postgresql_server_that_hangs_is_lost_although_it_would_notify(
    postgresql: postgresql_server.PostgresProcess,
) -> None:
    pytest.importorskip("psycopg")
    server = postgresql
    server.query("CREATE TABLE told (n BIGINT PRIMARY KEY)")
    (reader,) = readers(wb.SqlSource(server.url, "told", SCHEMA, key="n", poll="1h", notify="rows"), 1)
    for _ in range(9):
        step(reader)
    notices = Notices(server.url, "rows")
    with hanging(server):
        notices.listen()
        assert not notices.arrived()
        until(lambda: step(reader) and reader.outage is not None)
        assert reader.outage.error == "the server does not answer"
    server.query("INSERT INTO told VALUES (1)")
    assert read(reader, 1) == [1]
    notices.listen()
    server.query("NOTIFY rows")
    until(notices.arrived)
    notices.close()
    reader.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["redis", "postgresql"])
def test_a_server_of_look_ups_that_hangs_is_shown_and_nothing_is_lost(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = pa.table({"n": range(400), "m": [-n for n in range(400)]})
    options: Any = {"checkpoint_interval": "50ms", "checkpoint_dir": tmp_path}
    with redis_server.running() if name == "redis" else nullcontext(request.getfixturevalue("postgresql")) as server:
        keys: dict[str, Any] = {"upsert_key": "n"}
        sink = wb.RedisSink(server.url, "m", **keys) if name == "redis" else wb.SqlSink(server.url, "m", **keys)
        assert wb.Stream.from_table(found).sink_to(sink).run("fills").wait("60s") == "FINISHED"
        added = {"m": pa.int64()}
        table: Any = (
            wb.RedisLookup(server.url, "m", added) if name == "redis" else wb.SqlLookup(server.url, "m", added, key="n")
        )
        stream = wb.Stream.from_table(ROWS, rate=50).lookup_async(table, key="n")
        pipeline = stream.sink_to(wb.ParquetSink(tmp_path / "rows"))
        job = pipeline.run("looks", **options)
        until(lambda: job.status()["records_out"] > 5)
        with hanging(server):
            wait_until_lost(job, str(getattr(server, "folder", server.url)))
            assert "has had no connection to" in job.status()["lost_connections"]
            assert "pa55word" not in job.status()["lost_connections"]
            assert "sources" in [view.name for view in dashboard_views(True, job.recorder.latest())]
        until(lambda: not outages(job))
        until(lambda: job.status()["lost_connections"] is None)
        with hanging(server), monkeypatch.context() as patched:
            patched.setattr("workbench.connectors.contract.attempts.WAIT_S", 0.5)
            until(lambda: job.status()["restarts"] > 0)  # it waits no longer, and looks up again what has no answer
            until(lambda: job.state == "RUNNING" and outages(job))
            patched.setattr("workbench.connectors.contract.attempts.WAIT_S", 60.0)
            patched.setattr("workbench.connectors.contract.attempts.HURRY_S", 0.5)
            with pytest.raises(JobError, match=STOPPED):
                job.stop()
        job = pipeline.run("looks", resume=True, **options)
        job.tune(rate=100_000)
        assert job.wait("60s") == "FINISHED"
        assert pq.read_table(tmp_path / "rows").sort_by("n").select(["n", "m"]).equals(found)
