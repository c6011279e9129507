"""Sessions that change after a result: their old rows are taken back, in every kind of sink."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from kafka_server import running as kafka
from nats_server import running as nats
from postgresql_server import running as postgresql
from redis_server import running as redis
from rescaled import rescaled
from waiting import until

import workbench as wb
from workbench.api.streams.changelogs import upsert_key
from workbench.elements import Records
from workbench.errors import CheckpointError, PlanError
from workbench.operators.changelogs.row_kinds import KIND, NAMES
from workbench.operators.contract.base import OperatorContext

SECOND = 1_000_000


def records(*times: float, rate: float | None = None) -> wb.Stream:
    return keyed([("a", time) for time in times], rate)


def keyed(times: Sequence[tuple[str, float]], rate: float | None = None) -> wb.Stream:
    """Records of keys, each with a watermark: a record before the latest one is behind it."""
    at = np.array([int(time * SECOND) for _, time in times], np.int64)
    table = pa.table(
        {
            "k": [key for key, _ in times],
            "t": pa.array(at, pa.timestamp("us", "UTC")),
            "mark": np.maximum.accumulate(at),
        }
    )
    marks = wb.watermarks.punctuated("mark")
    return wb.Stream.from_table(table, event_time="t", watermarks=marks, rate=rate).with_parallelism(1)


def sessions(stream: wb.Stream, **settings: Any) -> wb.types.WindowedStream:
    return stream.key_by("k").window(wb.session("10s"), **settings)


def changes(stream: wb.Stream) -> list[tuple[Any, ...]]:
    """Each change of single records: its kind, the bounds of the session in seconds, and the other values."""
    seen: list[tuple[Any, ...]] = []

    def note(batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            start, end = (int(row.pop(name).timestamp()) for name in ("window_start", "window_end"))
            del row["k"]
            seen.append((NAMES[row.pop(KIND)], start, end, *row.values()))

    job = stream.sink_to(wb.CallbackSink(note)).run("changes", buffer_size=1, parallelism=1)
    assert job.wait("60s") == "FINISHED"
    return seen


def test_a_late_record_that_connects_two_sessions_takes_both_rows_back() -> None:
    counted = sessions(records(0, 15, 40, 8), allowed_lateness="1h").aggregate(n=wb.count())
    assert changes(counted) == [
        ("+I", 0, 10, 1),
        ("+I", 15, 25, 1),
        ("-U", 0, 10, 1),
        ("-U", 15, 25, 1),
        ("+U", 0, 25, 3),
        ("+I", 40, 50, 1),
    ]


def test_a_late_record_before_a_session_moves_its_start() -> None:
    counted = sessions(records(10, 40, 2), allowed_lateness="1h").aggregate(n=wb.count())
    assert changes(counted) == [("+I", 10, 20, 1), ("-U", 10, 20, 1), ("+U", 2, 20, 2), ("+I", 40, 50, 1)]


def test_early_results_are_taken_back_and_pieces_are_not() -> None:
    each = sessions(records(0, 6, 40), trigger=wb.triggers.on_count(1))
    assert changes(each.aggregate(n=wb.count()))[:3] == [("+I", 0, 10, 1), ("-U", 0, 10, 1), ("+U", 0, 16, 2)]
    pieces = sessions(records(0, 6), trigger=wb.triggers.purging(wb.triggers.on_count(1))).aggregate(n=wb.count())
    assert KIND not in pieces.columns
    assert pieces.collect()["n"].to_pylist() == [1, 1]


def test_rows_of_a_function_are_taken_back() -> None:
    def some(key: str, window: wb.windows.Window, rows: pa.Table) -> list[dict[str, int]]:
        return [{"n": at} for at in range(len(rows))] if len(rows) != 2 else []

    made = sessions(records(0, 15, 40, 8, 3, 50.5), allowed_lateness="1h").apply(some, {"n": pa.int64()})
    assert upsert_key(made._end) is None
    job = made.select("window_start", "n").sink_to(wb.TableSink("rows")).run("applied", parallelism=1)
    assert job.wait("60s") == "FINISHED"
    found = sorted((row["window_start"].timestamp(), row["n"]) for row in job.table("rows").to_pylist())
    assert found == [(0, 0), (0, 1), (0, 2), (0, 3), (40, 0), (50.5, 0)]


def test_a_key_that_does_not_identify_a_session_and_sinks_that_only_add_are_refused(tmp_path: Path) -> None:
    counted = sessions(records(0), allowed_lateness="1h").aggregate(n=wb.count())
    assert upsert_key(counted._end) == ("k", "window_start")
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: counted.sink_to(wb.TableSink("r", upsert_key="k")), "is identified by k, window_start"),
        (lambda: counted.drop("window_start").sink_to(wb.TableSink("r", upsert_key="k")), "no columns that identify"),
        (lambda: counted.sink_to(wb.ParquetSink(tmp_path)), "only adds rows"),
        (lambda: counted.map(dict, schema={"n": pa.int64()}), "map cannot follow a changelog"),
    ]
    for make, sentence in refused:
        with pytest.raises(PlanError, match=sentence):
            make()
    assert KIND not in sessions(records(0)).aggregate(n=wb.count()).columns
    assert KIND not in records(0).window(wb.tumbling("1s"), allowed_lateness="1h").aggregate(n=wb.count()).columns


def merged(times: Sequence[tuple[str, int]], gap: int) -> list[tuple[str, int, int, int]]:
    """The sessions of all records, whenever they came."""
    found: list[tuple[str, int, int, int]] = []
    for key, time in sorted(times):
        if found and found[-1][0] == key and time <= found[-1][2]:
            found[-1] = (key, found[-1][1], time + gap, found[-1][3] + 1)
        else:
            found.append((key, time, time + gap, 1))
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {"allowed_lateness": "1h"},
        {"allowed_lateness": "1h", "evictor": wb.windows.keep_last(100)},
        {"allowed_lateness": "1h", "trigger": wb.triggers.early("2s", "event")},
        {"allowed_lateness": "1h", "trigger": wb.triggers.on_count(2)},
    ],
    ids=["late", "evicted", "early", "counted"],
)
def test_tables_hold_the_sessions_of_all_records(settings: dict[str, Any]) -> None:
    chance = Random(7)
    times = [(chance.choice("abc"), chance.randrange(600)) for _ in range(150)]
    if "trigger" in settings and settings["trigger"] == wb.triggers.on_count(2):
        times = [one for one in times for _ in range(2)]  # else some sessions end between two firings
    stream = keyed(times)
    counted = sessions(stream, **settings).aggregate(n=wb.count(), all=wb.sum(wb.lit(1)))
    pipeline = counted.sink_to(wb.TableSink("upserted", upsert_key=["k", "window_start", "window_end"]))
    pipeline += counted.sink_to(wb.TableSink("added"))
    pipeline += counted.group_by("k").aggregate(n=wb.count(), records=wb.sum("n")).sink_to(wb.TableSink("totals"))
    job = pipeline.run("sessions", buffer_size=1, parallelism=2)
    assert job.wait("60s") == "FINISHED"
    wanted = merged(times, 10)
    for name in ("upserted", "added"):
        found = [
            (row["k"], int(row["window_start"].timestamp()), int(row["window_end"].timestamp()), row["n"])
            for row in job.table(name).to_pylist()
        ]
        assert sorted(found) == wanted, name
    totals = {row["k"]: (row["n"], row["records"]) for row in job.table("totals").to_pylist()}
    assert totals == {
        key: (sum(one[0] == key for one in wanted), sum(one[3] for one in wanted if one[0] == key)) for key in "abc"
    }


def test_rows_are_taken_back_after_the_job_was_rescaled() -> None:
    chance = Random(3)
    times = [(chance.choice("abcdefgh"), chance.randrange(300)) for _ in range(400)]
    stream = keyed(times, rate=200)
    counted = sessions(stream, allowed_lateness="1h").aggregate(n=wb.count())
    job = rescaled(counted.sink_to(wb.TableSink("r", upsert_key=["k", "window_start"])), "moved", 120)
    found = [
        (row["k"], int(row["window_start"].timestamp()), int(row["window_end"].timestamp()), row["n"])
        for row in job.table("r").to_pylist()
    ]
    assert sorted(found) == merged(times, 10)


def test_sessions_saved_without_their_rows_are_refused() -> None:
    schema = pa.schema({"k": pa.string(), "t": pa.timestamp("us", "UTC")})
    spec: Any = sessions(records(0), allowed_lateness="1h").aggregate(n=wb.count())._end.node.spec
    old = sessions(records(0)).aggregate(n=wb.count())._end.node.spec.create([schema])
    old.open(OperatorContext())
    batch = pa.record_batch([pa.array(["a"]), pa.array([0], schema.field("t").type)], schema=schema)
    old.process(Records(batch, np.zeros(1, np.int64)), 0, None)
    new = spec.create([schema])
    new.open(OperatorContext())
    with pytest.raises(CheckpointError, match="sessions without the rows that they have emitted"):
        new.restore([old.snapshot(1)])


Row = tuple[str, int, int, int]


def written(sink: Any, found: Callable[[], list[Row]]) -> None:
    """Sessions that late records merge go to a real server, while the job fails: it has those of all records."""
    chance = Random(11)
    times = [(chance.choice("abcdefgh"), chance.randrange(300)) for _ in range(600)]
    counted = sessions(keyed(times, rate=300), allowed_lateness="1h").aggregate(n=wb.count())
    job = counted.sink_to(sink).run(
        "merged", buffer_size=1, parallelism=2, checkpoint_interval="300ms", restart=wb.restart.fixed_delay(9, "10ms")
    )
    for restarts in (1, 2):
        until(lambda restarts=restarts: job.status()["checkpoints"] > 2 * restarts)
        job.fail("table[0]")
        until(lambda restarts=restarts: job.status()["restarts"] >= restarts)
    job.tune(rate=100_000)
    assert job.wait("60s") == "FINISHED"
    assert sorted(found()) == merged(times, 10)


@pytest.mark.slow
def test_hashes_in_redis_are_the_sessions_of_all_records() -> None:
    with redis() as server:
        sink = wb.RedisSink(server.url, "sessions", upsert_key=["k", "window_start"])

        def found() -> list[Row]:
            rows = [{name: text.decode() for name, text in row} for row in sink.committed()]
            return [(row["k"], second(row["window_start"]), second(row["window_end"]), int(row["n"])) for row in rows]

        written(sink, found)


@pytest.mark.slow
def test_a_table_in_postgresql_has_the_sessions_of_all_records() -> None:
    with postgresql() as server:
        seconds = ", ".join(f"extract(epoch FROM {name})::int" for name in ("window_start", "window_end"))
        written(wb.SqlSink(server.url, "sessions"), lambda: server.query(f"SELECT k, {seconds}, n FROM sessions"))


def second(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def appended(sink: Any, found: Callable[[], list[dict[str, Any]]]) -> None:
    """A place that only gets more rows has none of sessions that can merge, and each of those that cannot once."""
    times = sorted((("ab"[at % 2], at * 7 % 100) for at in range(40)), key=lambda each: each[1])
    with pytest.raises(PlanError, match="only adds"):
        sessions(keyed(times), allowed_lateness="1h").aggregate(n=wb.count()).sink_to(sink)
    assert found() == []
    pipeline = sessions(keyed(times)).aggregate(n=wb.count()).sink_to(sink)
    assert pipeline.run("appended", parallelism=2).wait("60s") == "FINISHED"
    rows = [(row["k"], second(row["window_start"]), second(row["window_end"]), int(row["n"])) for row in found()]
    assert sorted(rows) == merged(times, 10)


@pytest.mark.slow
@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once", "transactions"])
def test_a_kafka_topic_gets_no_session_that_can_merge(delivery: Any) -> None:
    with kafka() as broker:
        topic = broker.topic(2)
        sink = wb.KafkaSink(broker.servers, topic, key="k", delivery=delivery)
        appended(sink, lambda: [json.loads(message.value()) for message in broker.messages(topic, 2)])


@pytest.mark.slow
@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_nats_stream_gets_no_session_that_can_merge(delivery: Any) -> None:
    with nats() as server:
        server.stream("S")
        sink = wb.NatsSink(server.url, "S", "S.sessions", key="k", delivery=delivery)
        appended(sink, lambda: [json.loads(text) for _, text in server.messages("S")])


@pytest.mark.slow
def test_a_redis_stream_gets_no_session_that_can_merge() -> None:
    with redis() as server:
        sink = wb.RedisSink(server.url, "sessions")
        appended(sink, lambda: [{name: text.decode() for name, text in row} for row in sink.committed()])
