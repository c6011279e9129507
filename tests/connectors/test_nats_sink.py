"""NatsSink with a real server: each delivery guarantee under crashes, outages, full streams and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from nats_server import NatsProcess, running
from outages import wait_until_lost
from waiting import until

import workbench as wb
from workbench.errors import CommittedRowsError, JobError, PlanError, SettingError, SinkError
from workbench.lab.connectors import check_sink

TABLE = pa.table({"key": [n % 7 for n in range(300)], "value": list(range(300))})


@pytest.fixture(scope="module")
def shared() -> Iterator[NatsProcess]:
    with running() as started:
        yield started


def values_of(server: NatsProcess, stream: str) -> list[int]:
    return [json.loads(value)["value"] for _, value in server.messages(stream)]


@pytest.mark.slow
@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_crash_at_any_record_keeps_the_guarantee(shared: NatsProcess, delivery: Any) -> None:
    def sink(number: int) -> wb.NatsSink:
        shared.stream(name := f"kit-{delivery}-{number}", duplicate_window=0.1)  # what is promised needs no window
        return wb.NatsSink(shared.url, name, f"{name}.rows", delivery=delivery)

    def read(made: Any) -> list[bytes]:
        return [value.decode() for _, value in shared.messages(made.stream)]

    assert check_sink(sink, read, rows=1, parallelism=[(2, 3)]) == 72


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_server_that_is_restarted_loses_and_doubles_nothing(shared: NatsProcess, delivery: Any) -> None:
    shared.stream(name := f"restarted-{delivery}")
    sink = wb.NatsSink(shared.url, name, f"{name}.rows", delivery=delivery)
    job = wb.Stream.from_table(TABLE, rate=100).sink_to(sink).run("survives", checkpoint_interval="50ms")
    until(lambda: len(values_of(shared, name)) > 20)
    shared.kill()
    wait_until_lost(job, shared.url)
    shared.start()
    job.tune(rate=100_000)
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 0
    assert sorted(values_of(shared, name)) == list(range(300))  # own retries are dropped by their IDs


def test_parts_of_the_subject_and_tables_in_sql(shared: NatsProcess) -> None:
    shared.stream("declared")
    table = pa.table({"city": ["a b", None, "c.d"], "value": [1, 2, 3]})
    context = wb.Stream.from_table(table)
    sink = wb.NatsSink(shared.url, "declared", "declared.new", key="city")
    assert context.sink_to(sink).run("parts").wait("60s") == "FINISHED"
    assert sorted(subject for subject, _ in shared.messages("declared")) == [
        *("declared.new.-", "declared.new.a%20b", "declared.new.c%2Ed")
    ]
    shared.stream("rows")
    made = wb.sql_script(
        f"""CREATE TABLE sums (city STRING, value BIGINT) WITH (
            'connector' = 'nats', 'url' = '{shared.url}', 'stream' = 'rows', 'subject' = 'rows.new',
            'delivery' = 'exactly-once');
        INSERT INTO sums SELECT city, value FROM stream""",
        stream=context,
    )
    assert made.run("sums").wait("60s") == "FINISHED"
    assert sorted(values_of(shared, "rows")) == [1, 2, 3]


def test_rows_of_another_run_are_refused(shared: NatsProcess) -> None:
    shared.stream("once")
    pipeline = wb.Stream.from_table(TABLE.slice(0, 5)).sink_to(
        wb.NatsSink(shared.url, "once", "once.rows", delivery="exactly-once")
    )
    assert pipeline.run("once").wait("60s") == "FINISHED"
    with pytest.raises(CommittedRowsError, match=r"the stream 'once' of .* already holds rows of 'once/"):
        pipeline.run("once")
    assert pipeline.run("twice").wait("60s") == "FINISHED"
    assert len(values_of(shared, "once")) == 10


def failure(server: NatsProcess, stream: str, subject: str) -> str:
    sink = wb.NatsSink(server.url, stream, subject)
    job = wb.Stream.from_table(TABLE).sink_to(sink).run("fails", restart=wb.restart.no_restart())
    with pytest.raises(JobError) as raised:
        job.wait("60s")
    return str(raised.value)


def test_what_the_server_refuses_is_named(shared: NatsProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.connectors.contract.attempts.WAIT_S", 0.2)
    shared.stream("other")
    assert "expected stream does not match" in failure(shared, "another", "other.rows")
    shared.stream("small", max_bytes=2_000, discard="new")
    assert "cannot write to the stream 'small' of nats://127.0.0.1" in (said := failure(shared, "small", "small.rows"))
    assert "maximum bytes exceeded" in said
    nowhere = wb.NatsSink(shared.url, "nowhere", "nowhere.rows", delivery="exactly-once")
    with pytest.raises(SinkError, match=r"there is no stream 'nowhere' at .*: check its name, or create it first"):
        wb.Stream.from_table(TABLE).sink_to(nowhere).run("nowhere")
    away = wb.NatsSink("nats://ann:pa55word@127.0.0.1:1", "away", "away.rows", delivery="exactly-once")
    with pytest.raises(SinkError, match=r"the stream 'away' of nats://\*\*\*@127.*refused; start") as raised:
        wb.Stream.from_table(TABLE).sink_to(away).run("away")
    assert "pa55word" not in f"{raised.value} {away!r} {away.describe()}"


def test_a_full_stream_is_continued_when_it_has_room(shared: NatsProcess) -> None:
    shared.stream("full", max_msgs=50, discard="new")
    sink = wb.NatsSink(shared.url, "full", "full.rows", delivery="exactly-once")
    restart = wb.restart.exponential_delay("50ms")
    job = wb.Stream.from_table(TABLE, rate=600).sink_to(sink).run("full", checkpoint_interval="50ms", restart=restart)
    until(lambda: job.status()["restarts"] > 0)
    shared.change("full", max_msgs=-1)
    assert job.wait("60s") == "FINISHED"
    assert sorted(values_of(shared, "full")) == list(range(300))


def test_a_refused_login() -> None:
    with running("--user", "ann", "--pass", "right") as server:
        url = server.url.replace("nats://", "nats://ann:gue55ed@")
        with pytest.raises(SinkError, match="Authorization Violation") as raised:
            wb.Stream.from_table(TABLE).sink_to(wb.NatsSink(url, "a", "b", delivery="exactly-once")).run("refused")
        assert "gue55ed" not in str(raised.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wb.NatsSink("http://h", "a", "b"), "write nats://host:port"),
        (lambda: wb.NatsSink("nats://h", "a.b", "b"), "stream is 'a.b'"),
        (lambda: wb.NatsSink("nats://h", "a", "b.>"), "subject is 'b.>': write one without wildcards"),
        (lambda: wb.NatsSink("nats://h", "a", "b", format="arrow"), "write 'json', 'csv' or 'raw'"),
        (lambda: wb.NatsSink("nats://h", "a", "b", delivery="twice"), "unknown delivery 'twice'"),  # type: ignore[arg-type]
    ],
)
def test_settings_that_cannot_be_used(make: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make()


def test_columns_that_do_not_fit() -> None:
    stream = wb.Stream.from_table(TABLE)
    with pytest.raises(PlanError, match="'origin'"):
        stream.sink_to(wb.NatsSink("nats://h", "a", "b", key="origin"))
    with pytest.raises(PlanError, match="raw"):
        stream.sink_to(wb.NatsSink("nats://h", "a", "b", format="raw"))
