"""RedisSink with a real server: streams exactly once, hashes with the latest row, under crashes and outages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from outages import wait_until_lost
from redis_server import RedisProcess, client_of, running
from waiting import until

import workbench as wb
from workbench.connectors.contract.base import Sink, SinkContext
from workbench.connectors.contract.runs import Runs
from workbench.connectors.epochs.row_store import Epoch
from workbench.errors import CommittedRowsError, PlanError, SettingError, SinkError
from workbench.lab.connectors import check_sink

TABLE = pa.table({"key": [n % 7 for n in range(600)], "value": list(range(600))})


@pytest.fixture(scope="module")
def shared() -> Iterator[RedisProcess]:
    """A server for the tests that do not stop it."""
    with running() as server:
        yield server


@pytest.fixture
def server(shared: RedisProcess) -> RedisProcess:
    with client_of(shared) as client:
        client.flushall()
    return shared


def entries(server: RedisProcess, key: str) -> list[dict[str, str]]:
    with client_of(server) as client:
        found = client.xrange(key)
    return [{name.decode(): value.decode() for name, value in fields.items()} for _, fields in found]


def values_of(server: RedisProcess, key: str) -> list[int]:
    return [int(entry["value"]) for entry in entries(server, key)]


def read(sink: Sink) -> Iterable[object]:
    """As another program sees it."""
    rows: Any = sink.committed()
    named = [{name: int(value) for name, value in row if name != ""} for row in rows]
    return [(row["key"], row["value"]) for row in named]


FORMS: dict[str, dict[str, Any]] = {"stream": {}, "hashes": {"upsert_key": "key"}}


@pytest.mark.parametrize("form", FORMS)
def test_a_crash_at_any_record_keeps_the_guarantee(server: RedisProcess, form: str) -> None:
    assert (
        check_sink(
            lambda n: wb.RedisSink(server.url, f"rows {n}", **FORMS[form]),
            read,
            rows=1,
            parallelism=[(1, 1), (2, 3)],
            fenced=form == "stream",
        )
        == 144
    )


def test_a_stream_is_read_again_as_it_was_written(server: RedisProcess) -> None:
    instant = dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC)
    columns = {
        "n": pa.array([1, None, 3]),
        "x": pa.array([0.1, float("nan"), None]),
        "ok": pa.array([True, False, None]),
        "text": pa.array(["ä b", "", None]),
        "code": pa.array(["a", "a", "b"]).dictionary_encode(),
        "raw": pa.array([b"\xff\0", b"", None], pa.binary()),
        "day": pa.array([dt.date(2026, 3, 29), None, None]),
        "at": pa.array([instant, None, instant], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.50"), None, None], pa.decimal128(9, 2)),
    }
    table = pa.table(columns)
    job = wb.Stream.from_table(table).sink_to(wb.RedisSink(server.url, "all")).run("writes")
    assert job.wait("60s") == "FINISHED"
    plain = {name: pa.string() if name == "code" else column.type for name, column in columns.items()}
    back = wb.Stream.from_source(wb.RedisSource(server.url, "all", pa.schema(plain), bounded=True))
    job = back.sink_to(wb.TableSink("back")).run("reads")
    assert job.wait("60s") == "FINISHED"
    assert repr(job.table().to_pylist()) == repr(table.to_pylist())


def test_rows_by_key_are_hashes_or_fields_of_one(server: RedisProcess) -> None:
    table = pa.table({"a": ["x", "x", "y:"], "b": ["1", "1", "ü"], "n": [1, 2, None]})
    stream = wb.Stream.from_table(table)
    both = stream.sink_to(wb.RedisSink(server.url, "rows", upsert_key=["a", "b"])) + stream.sink_to(
        wb.RedisSink(server.url, "counts", upsert_key=wb.col("a"), value="n")
    )
    assert both.run("by-key").wait("60s") == "FINISHED"
    with client_of(server) as client:
        assert client.hgetall("rows:x:1") == {b"a": b"x", b"b": b"1", b"n": b"2"}
        assert client.hgetall("rows:y%3A:%C3%BC") == {b"a": b"y:", b"b": "ü".encode()}
        assert client.hgetall("counts") == {b"x": b"2"}
        assert client.keys("*:workbench") == []  # owners have let go


def test_a_null_removes_the_value_of_its_key(server: RedisProcess) -> None:
    with client_of(server) as client:
        client.hset("counts", "x", 1)
        client.hset("counts", "y", 1)
    table = pa.table({"k": ["x"], "n": pa.array([None], pa.int64())})
    sink = wb.RedisSink(server.url, "counts", upsert_key="k", value="n")
    assert wb.Stream.from_table(table).sink_to(sink).run("removes").wait("60s") == "FINISHED"
    with client_of(server) as client:
        assert client.hgetall("counts") == {b"y": b"1"}


def test_a_stream_keeps_about_as_many_entries_as_it_may(server: RedisProcess) -> None:
    sink = wb.RedisSink(server.url, "short", max_length=100)
    assert wb.Stream.from_table(TABLE).sink_to(sink).run("short").wait("60s") == "FINISHED"
    found = values_of(server, "short")
    assert 100 <= len(found) < 300  # it is trimmed by whole nodes
    assert found == list(range(600 - len(found), 600))


def test_a_server_that_is_restarted_loses_and_doubles_nothing() -> None:
    with running("--appendfsync", "always") as server:
        stream = wb.Stream.from_table(TABLE, rate=100)
        both = stream.sink_to(wb.RedisSink(server.url, "entries")) + stream.sink_to(
            wb.RedisSink(server.url, "latest", upsert_key="key", value="value")
        )
        job = both.run("survives", checkpoint_interval="50ms")
        for seen in (20, 40):
            until(lambda seen=seen: len(values_of(server, "entries")) > seen)
            server.stop()
            wait_until_lost(job, server.url)
            server.start()
        job.tune(rate=100_000)
        assert job.wait("60s") == "FINISHED"
        assert job.status()["restarts"] == 0
        assert values_of(server, "entries") == list(range(600))
        with client_of(server) as client:
            assert client.hgetall("latest") == {b"%d" % key: b"%d" % max(range(key, 600, 7)) for key in range(7)}


def test_a_server_that_stays_away_fails_the_task_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.connectors.contract.attempts.WAIT_S", 0.1)
    with running("--appendfsync", "always") as server:
        pipeline = wb.Stream.from_table(TABLE, rate=600).sink_to(wb.RedisSink(server.url, "entries"))
        job = pipeline.run(
            "waits", checkpoint_interval="50ms", checkpoint_dir=tmp_path / "a", restart=wb.restart.no_restart()
        )
        until(lambda: len(values_of(server, "entries")) > 100)
        server.stop()
        with pytest.raises(wb.errors.JobError, match=r"no connection to unix://.*: .*start the server"):
            job.wait("60s")
        server.start()
        seen = len(values_of(server, "entries"))
        assert 100 < seen < 600
        with pytest.raises(CommittedRowsError, match=r"'entries' of unix://.* already holds rows of 'waits/"):
            pipeline.run("waits", checkpoint_dir=tmp_path / "b")
        job = pipeline.run("waits", checkpoint_dir=tmp_path / "a", resume=True)
        assert job.wait("60s") == "FINISHED"
        assert values_of(server, "entries") == list(range(600))


def test_another_job_is_refused_while_one_writes_to_the_key(server: RedisProcess) -> None:
    sink = wb.RedisSink(server.url, "entries")
    job = wb.Stream.from_table(TABLE, rate=100).sink_to(sink).run("first")
    try:
        with pytest.raises(SinkError, match=r"the stream 'entries' of unix://.* is written to by job 'first'"):
            wb.Stream.from_table(TABLE).sink_to(sink).run("second")
    finally:
        job.cancel()
        job.wait("60s")
    assert wb.Stream.from_table(TABLE).sink_to(sink).run("second").wait("60s") == "FINISHED"


def test_a_job_that_was_replaced_adds_no_entries(server: RedisProcess) -> None:
    sink = wb.RedisSink(server.url, "entries")
    stalled = sink.hold(SinkContext("job", "sink", TABLE.schema, "stalled"))
    with client_of(server) as client:
        client.hdel("entries:workbench", "owner")
    successor = sink.hold(SinkContext("job", "sink", TABLE.schema, "successor"))
    with pytest.raises(CommittedRowsError, match="was taken by job 'job' of process"):
        sink.target.commit("job/sink", Runs("stalled"), [Epoch(1, 0, TABLE)], "stalled")
    assert entries(server, "entries") == []
    stalled.release()  # takes nothing from its successor
    with client_of(server) as client:
        assert b"successor" in client.hget("entries:workbench", "owner")
    successor.release()


def test_a_record_that_somebody_has_changed_is_named(server: RedisProcess) -> None:
    sink = wb.RedisSink(server.url, "entries")
    with client_of(server) as client:
        client.hset("entries:workbench", mapping={"commit changed/sink 0": "[]", "owner": "{}"})
    with pytest.raises(SinkError, match=r"'commit changed/sink 0' of 'entries:workbench' .* is not a commit record"):
        sink.target.committed("changed/sink")


def test_a_key_of_another_type_is_refused_before_a_row_is_written(server: RedisProcess) -> None:
    with client_of(server) as client:
        client.set("text", "x")
    for arguments, kind in (({}, "stream"), ({"upsert_key": "key", "value": "value"}, "hash")):
        sink = wb.RedisSink(server.url, "text", **arguments)
        with pytest.raises(SinkError, match=f"'text' at unix://.* is a string, but this sink writes to a {kind}"):
            sink.target.prepare(TABLE.schema, create=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": ""}, "key is '': write the key"),
        ({"value": "n"}, "value is 'n' without upsert_key"),
        ({"upsert_key": "key", "max_length": 9}, "max_length is 9, but hashes have no length"),
        ({"max_length": 0}, "max_length is 0"),
        ({"url": "http://:pa55@localhost"}, r"the Redis URL 'http://\*\*\*@localhost' cannot be used"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(arguments: dict[str, Any], message: str) -> None:
    pytest.importorskip("redis")
    given = {"url": "redis://localhost", "key": "k", **arguments}
    with pytest.raises(SettingError, match=message):
        wb.RedisSink(given.pop("url"), given.pop("key"), **given)


def test_columns_without_a_text_are_refused_before_anything_starts() -> None:
    pytest.importorskip("redis")
    nested = wb.Stream.from_table(pa.table({"k": [1], "tags": [["a"]]}))
    with pytest.raises(SinkError, match="Redis has no value for the column 'tags', which is list"):
        nested.sink_to(wb.RedisSink("redis://localhost", "rows"))
    with pytest.raises(PlanError, match="unknown column 'm'"):
        nested.select("k").sink_to(wb.RedisSink("redis://localhost", "rows", upsert_key="k", value="m"))
