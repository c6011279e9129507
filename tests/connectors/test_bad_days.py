"""Problems of servers: they are unreachable for half a minute, refuse a login, have a full disk, or change a schema.
Each gives one sentence, and nothing is lost or duplicated."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import kafka_refusal
import kafka_server
import nats_server
import postgresql_server
import pyarrow as pa
import pytest
import redis_server
from source_readers import readers
from waiting import until

import workbench as wb
from workbench.connectors.contract.base import Source, WaitUntil
from workbench.errors import JobError, SinkError, SourceError

SCHEMA = {"id": pa.int64()}
NUMBERS = pa.table({"id": range(400)})
MANY = pa.table({"id": range(20_000)})
"""A job that reads them at its rate does not end before the server's disk is full, however slow the machine is."""
AWAY: dict[str, Callable[[], Source]] = {
    "redis": lambda: wb.RedisSource("redis://127.0.0.1:1", "a", SCHEMA),
    "nats": lambda: wb.NatsSource("nats://127.0.0.1:1", "a", SCHEMA),
    "postgresql": lambda: wb.SqlSource("postgresql://127.0.0.1:1/d", "a", SCHEMA),
    "server-sent events": lambda: wb.ServerEventSource("http://127.0.0.1:1", SCHEMA),
    "websocket": lambda: wb.WebSocketSource("ws://127.0.0.1:1", SCHEMA),
    "mqtt": lambda: wb.MqttSource("mqtt://127.0.0.1:1", SCHEMA),
}


@pytest.mark.parametrize("name", AWAY)
def test_a_server_may_be_away_for_half_a_minute(name: str) -> None:
    """No task fails meanwhile; the pauses grow, and the one that is due is told."""
    for package in ("redis", "h11", "websockets", "paho.mqtt.client", "adbc_driver_postgresql"):
        pytest.importorskip(package)
    reader: Any = readers(AWAY[name](), 1)[0]
    pauses, clock = [], reader._clock
    while clock.now_us() < 30_000_000:
        polled = reader.poll(1)
        assert isinstance(polled, WaitUntil)
        if reader.outage is not None and clock.now_us() < reader.outage.retry_us:
            pauses.append(reader.outage.retry_us - clock.now_us())
            clock.advance_to(reader.outage.retry_us)
        else:
            clock.advance_to(polled.time_us or 0)
    assert pauses[:4] == [100_000, 200_000, 400_000, 800_000]
    assert max(pauses) == 5_000_000
    reader.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[postgresql_server.PostgresProcess]:
    with postgresql_server.running() as server:
        yield server


@pytest.fixture
def postgresql(shared: postgresql_server.PostgresProcess) -> postgresql_server.PostgresProcess:
    shared.query("DROP SCHEMA public CASCADE")
    shared.query("CREATE SCHEMA public")
    return shared


def test_a_refused_login_of_postgresql(postgresql: postgresql_server.PostgresProcess) -> None:
    postgresql.query("CREATE ROLE ann LOGIN PASSWORD 'right'")
    rules = postgresql.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all ann scram-sha-256\n{before}")
    postgresql.query("SELECT pg_reload_conf()")
    url = postgresql.url.replace("wb:pa55word", "ann:gue55ed")
    (reader,) = readers(wb.SqlSource(url, "rows", SCHEMA), 1)
    with pytest.raises(
        SourceError,
        match=r"cannot read 'rows' of postgresql://\*\*\*@.*password auth.*; check the user",
    ):
        until(lambda: reader.poll(1) is None)
    with pytest.raises(SinkError, match="password authentication failed") as raised:
        wb.Stream.from_table(NUMBERS).sink_to(wb.SqlSink(url, "rows")).run("refused")
    assert "gue55ed" not in str(raised.value)
    rules.write_text(before)


def test_a_refused_login_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, not after all attempts, and without the password."""
    pytest.importorskip("confluent_kafka")
    monkeypatch.setenv("WB_KAFKA_PASSWORD", "gue55ed")
    monkeypatch.setattr("workbench.connectors.kafka.cluster.ANSWER_S", 0.2)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN", "sasl.username": "ann"}
    login["sasl.password"] = "${WB_KAFKA_PASSWORD}"
    with kafka_refusal.refusing() as servers:
        reader: Any = readers(wb.KafkaSource(servers, "orders", SCHEMA, options=login), 1)[0]
        with pytest.raises(SourceError, match=rf"^{servers} refuses the login \(.*{kafka_refusal.FACT}") as raised:
            until(lambda: reader._clock.advance_to(reader.poll(1).time_us))
        reader.close()
        assert "gue55ed" not in str(raised.value)
        stream = wb.Stream.from_table(NUMBERS).sink_to(wb.KafkaSink(servers, "orders", options=login))
        job = stream.run("without-login", restart=wb.restart.no_restart())
        with pytest.raises(JobError, match="refuses the login"):
            job.wait("60s")
        once = wb.KafkaSink(servers, "orders", delivery="exactly-once", options=login)
        with pytest.raises(SinkError, match="refuses the login"):
            wb.Stream.from_table(NUMBERS).sink_to(once).run("without-login")


@pytest.mark.slow
def test_a_full_disk_of_postgresql(postgresql: postgresql_server.PostgresProcess) -> None:
    """The server's words for it, from a trigger; when there is room again, the job continues."""
    postgresql.query("CREATE TABLE rows (id BIGINT)")
    postgresql.query(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$"
    )
    sink = wb.SqlSink(postgresql.url, "rows", create=False)
    pipeline = wb.Stream.from_table(MANY, rate=400).sink_to(sink)
    job = pipeline.run("full", checkpoint_interval="50ms", restart=wb.restart.exponential_delay("50ms"))
    until(lambda: postgresql.query("SELECT count(*) FROM rows") > [(50,)])
    postgresql.query("CREATE TRIGGER refuse BEFORE INSERT ON rows EXECUTE FUNCTION refuse()")
    until(lambda: job.status()["restarts"] > 0)
    assert "No space left on device" in str([event.text for event in job.recorder.latest().events])
    postgresql.query("DROP TRIGGER refuse ON rows")
    job.tune(rate=1_000_000)
    assert job.wait("120s") == "FINISHED"
    assert [n for (n,) in postgresql.query("SELECT id FROM rows ORDER BY id")] == list(range(20_000))


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of one megabyte, of the user that PostgreSQL runs as."""
    folder = Path(tempfile.mkdtemp(prefix="disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        pytest.skip("no file system can be mounted here")
    try:
        shutil.chown(folder, "postgres")
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


@pytest.mark.slow
def test_a_disk_of_postgresql_that_is_really_full(
    postgresql: postgresql_server.PostgresProcess, small_disk: Path
) -> None:
    postgresql.query(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
    try:
        postgresql.query("CREATE TABLE rows (id BIGINT) TABLESPACE small")
        postgresql.query("CREATE TABLE filler (id BIGINT) TABLESPACE small")
        sink = wb.SqlSink(postgresql.url, "rows", create=False)
        pipeline = wb.Stream.from_table(MANY, rate=400).sink_to(sink)
        restart = wb.restart.exponential_delay("50ms")
        job = pipeline.run("full", checkpoint_interval="50ms", restart=restart)
        until(lambda: postgresql.query("SELECT count(*) FROM rows") > [(0,)])
        with pytest.raises(Exception, match="No space left on device"):
            postgresql.query("INSERT INTO filler SELECT generate_series(1, 100000)")
        for rows in (8_000, 2_000, 500, 200, 200):  # what is not committed takes its room, too
            with suppress(Exception):
                postgresql.query(f"INSERT INTO filler SELECT generate_series(1, {rows})")
        until(lambda: job.status()["restarts"] > 0)
        assert "No space left on device" in str([event.text for event in job.recorder.latest().events])
        postgresql.query("DROP TABLE filler")
        job.tune(rate=1_000_000)
        assert job.wait("120s") == "FINISHED"
        assert [n for (n,) in postgresql.query("SELECT id FROM rows ORDER BY id")] == list(range(20_000))
    finally:
        postgresql.query("DROP TABLE IF EXISTS rows, filler")
        postgresql.query("DROP TABLESPACE small")


@pytest.mark.slow
def test_a_full_memory_of_redis() -> None:
    with redis_server.running() as server, redis_server.client_of(server) as client:
        pipeline = wb.Stream.from_table(MANY, rate=400).sink_to(wb.RedisSink(server.url, "rows"))
        job = pipeline.run("full", checkpoint_interval="50ms", restart=wb.restart.exponential_delay("50ms"))
        until(lambda: client.xlen("rows") > 50)
        client.config_set("maxmemory", 1)
        until(lambda: job.status()["restarts"] > 0)
        assert "the server has reached its maxmemory" in str([event.text for event in job.recorder.latest().events])
        client.config_set("maxmemory", 0)
        job.tune(rate=1_000_000)
        assert job.wait("120s") == "FINISHED"
        assert sorted(int(fields[b"id"]) for _, fields in client.xrange("rows")) == list(range(20_000))


CHANGED = [{"id": 1}, {"id": 2, "more": "x"}, {"more": "x"}, {"id": "three"}, {"id": 4}]
"""A field is added, one is removed, and one has another type for a while."""


@contextmanager
def changed_redis() -> Iterator[Source]:
    with redis_server.running() as server, redis_server.client_of(server) as client:
        for row in CHANGED:
            client.xadd("rows", row)
        yield wb.RedisSource(server.url, "rows", SCHEMA, on_error="dead_letter", bounded=True)


@contextmanager
def changed_nats() -> Iterator[Source]:
    with nats_server.running() as server:
        server.stream("rows")
        server.send("rows", [json.dumps(row).encode() for row in CHANGED])
        yield wb.NatsSource(server.url, "rows", SCHEMA, on_error="dead_letter", bounded=True)


@contextmanager
def changed_kafka() -> Iterator[Source]:
    with kafka_server.running() as server:
        server.send(topic := server.topic(1), [json.dumps(row).encode() for row in CHANGED], 1)
        yield wb.KafkaSource(server.servers, topic, SCHEMA, on_error="dead_letter", bounded=True)


@pytest.mark.parametrize("changed", [changed_redis, changed_nats, changed_kafka])
def test_a_schema_of_messages_that_changes(changed: Callable[[], AbstractContextManager[Source]]) -> None:
    """A new field is not read, a missing one is null, and a value of another type is a dead letter."""
    with changed() as source:
        stream = wb.Stream.from_source(source)
        pipeline = stream.sink_to(wb.TableSink("rows")) + stream.dead_letters().sink_to(wb.TableSink("letters"))
        job = pipeline.run("changed")
        assert job.wait("60s") == "FINISHED"
        assert job.table("rows")["id"].to_pylist() == [1, 2, None, 4]
        (letter,) = job.table("letters").to_pylist()
        assert "three" in str(letter)


def test_a_schema_that_changes_under_a_source(postgresql: postgresql_server.PostgresProcess) -> None:
    postgresql.query("CREATE TABLE rows (id BIGINT PRIMARY KEY, city TEXT)")
    postgresql.query("INSERT INTO rows VALUES (1, 'a')")
    source = wb.SqlSource(postgresql.url, "rows", {"id": pa.int64(), "city": pa.string()}, settle="0s")
    reader: Any = readers(source, 1)[0]
    assert reader.poll(9).records.batch.num_rows == 1
    saved = reader.snapshot()
    postgresql.query("ALTER TABLE rows RENAME city TO town")
    with pytest.raises(SourceError, match=r"cannot read 'rows' of .*: .*column \"city\" does not exist"):
        reader.poll(9)
    reader.close()
    postgresql.query("INSERT INTO rows VALUES (2, 'b')")
    renamed = wb.SqlSource(postgresql.url, "rows", {"id": pa.int64(), "town": pa.string()}, settle="0s")
    again: Any = readers(renamed, 1)[0]
    again.restore([saved])
    assert again.poll(9).records.batch.to_pylist() == [{"id": 2, "town": "b"}]
    again.close()
