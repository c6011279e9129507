"""SqlSink with a real PostgreSQL server: exactly once, under crashes, outages and existing tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from outages import wait_until_lost
from postgresql_server import PostgresProcess, running
from waiting import until

import workbench as wb
from workbench import packages
from workbench.connectors.contract.base import SinkContext
from workbench.connectors.contract.runs import Runs
from workbench.connectors.epochs.row_store import Epoch
from workbench.errors import CommittedRowsError, MissingPackageError, SinkError
from workbench.lab.connectors import check_sink

TABLE = pa.table({"key": [n % 7 for n in range(600)], "value": list(range(600))})


@pytest.fixture(scope="module")
def shared() -> Iterator[PostgresProcess]:
    """A server for all tests of this file; each leaves it running."""
    with running() as server:
        yield server


@pytest.fixture
def server(shared: PostgresProcess) -> PostgresProcess:
    shared.query("DROP SCHEMA public CASCADE")
    shared.query("CREATE SCHEMA public")
    return shared


def values_of(server: PostgresProcess, table: str = "numbers") -> list[int]:
    if not server.query(f"SELECT 1 FROM pg_tables WHERE tablename = '{table}'"):
        return []
    return [value for (value,) in server.query(f"SELECT value FROM {table} ORDER BY value")]


@pytest.mark.slow
@pytest.mark.parametrize("form", [{}, {"upsert_key": "key"}])
def test_a_crash_at_any_record_keeps_the_guarantee(server: PostgresProcess, form: dict[str, Any]) -> None:
    def sink(number: int) -> wb.SqlSink:
        return wb.SqlSink(server.url, f"numbers_{number}", **form)

    assert check_sink(sink, rows=1, parallelism=[(2, 3)], fenced=not form) == 72


def test_values_are_stored_as_they_are(server: PostgresProcess) -> None:
    instant = dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC)
    columns: dict[str, Any] = {
        "n": pa.array([1, None, 2**62]),
        "small": pa.array([1, None, 255], pa.uint8()),
        "large": pa.array([1, None, 2**64 - 1], pa.uint64()),
        "x": pa.array([0.5, None, -1.0]),
        "ok": pa.array([True, None, False]),
        "text": pa.array(["ä b", None, ""]),
        "code": pa.array(["a", None, "b"]).dictionary_encode(),
        "raw": pa.array([b"\xff\0", None, b""], pa.binary()),
        "day": pa.array([dt.date(2026, 3, 29), None, None]),
        "at": pa.array([instant, None, instant], pa.timestamp("ms", "Europe/Berlin")),
        "price": pa.array([Decimal("1.50"), None, None], pa.decimal128(9, 2)),
        'quote"d': pa.array([1, None, 3]),
    }
    table = pa.table(columns)
    job = wb.Stream.from_table(table).sink_to(wb.SqlSink(server.url, "everything")).run("everything")
    assert job.wait("60s") == "FINISHED"
    rows = sorted(server.query("SELECT * FROM everything"), key=lambda row: (row[0] is None, row[0] or 0))
    assert rows == [
        (1, 1, "1", 0.5, True, "ä b", "a", b"\xff\0", dt.date(2026, 3, 29), instant, "1.50", 1),
        (2**62, 255, str(2**64 - 1), -1.0, False, "", "b", b"", None, instant, None, 3),
        (None,) * 12,
    ]


def test_rows_replace_those_with_their_key(server: PostgresProcess) -> None:
    sink = wb.SqlSink(server.url, "latest", upsert_key="key")
    assert wb.Stream.from_table(TABLE).key_by("key").aggregate(value=wb.max("value")).sink_to(sink).run(
        "latest"
    ).wait("60s") == "FINISHED"  # fmt: skip
    assert sorted(server.query("SELECT * FROM latest")) == [(key, max(range(key, 600, 7))) for key in range(7)]


def test_a_table_that_exists_keeps_its_types_and_rows_are_converted(server: PostgresProcess) -> None:
    server.query("CREATE TABLE numbers (id SERIAL, value INTEGER, key NUMERIC)")
    sink = wb.SqlSink(server.url, "numbers", create=False)
    assert wb.Stream.from_table(TABLE).sink_to(sink).run("numbers").wait("60s") == "FINISHED"
    assert values_of(server) == list(range(600))
    assert server.query("SELECT DISTINCT key FROM numbers WHERE value = 599") == [("4",)]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            "",
            r"to the table 'numbers' of postgresql://\*\*\*@.*: relation \"numbers\" does not exist; check its name",
        ),
        ("CREATE TABLE numbers (key BIGINT)", 'column "value" .*does not exist'),
        ("CREATE TABLE numbers (key BIGINT, value BOOLEAN)", "type boolean but expression is of type bigint"),
    ],
)
def test_a_table_that_does_not_fit_is_named(server: PostgresProcess, made: str, message: str) -> None:
    if made:
        server.query(made)
    sink = wb.SqlSink(server.url, "numbers", create=False)
    with pytest.raises((wb.errors.JobError, SinkError), match=message):
        wb.Stream.from_table(TABLE).sink_to(sink).run("unfit", restart=wb.restart.no_restart()).wait("60s")


def test_a_text_that_the_server_refuses_fails_with_its_words(server: PostgresProcess) -> None:
    sink = wb.SqlSink(server.url, "texts")
    job = wb.Stream.from_table(pa.table({"text": ["a\0b"]})).sink_to(sink).run("nul", restart=wb.restart.no_restart())
    with pytest.raises(wb.errors.JobError, match="invalid byte sequence") as caught:
        job.wait("60s")
    assert "pa55word" not in str(caught.value)


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_a_server_that_is_restarted_loses_and_doubles_nothing(server: PostgresProcess, how: str) -> None:
    pipeline = wb.Stream.from_table(TABLE, rate=100).sink_to(wb.SqlSink(server.url, "numbers"))
    job = pipeline.run("survives", checkpoint_interval="50ms", restart=wb.restart.fixed_delay(20, "100ms"))
    for seen in (20, 40):
        until(lambda seen=seen: len(values_of(server)) > seen)
        getattr(server, how)()
        wait_until_lost(job, str(server.folder))
        server.start()
    job.tune(rate=100_000)
    assert job.wait("60s") == "FINISHED"
    assert values_of(server) == list(range(600))


SESSIONS = "SELECT pid, state FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


def test_a_connection_is_kept_between_checkpoints_until_the_server_closes_it_or_the_job_ends(
    server: PostgresProcess,
) -> None:
    sink = wb.SqlSink(server.url, "numbers")
    held = sink.hold(SinkContext("job", "sink", TABLE.schema, "run"))
    sink.target.prepare(TABLE.schema, create=True)

    def commit(number: int) -> list[tuple[int, str]]:
        sink.target.commit("job/sink", Runs("run"), [Epoch(number, 0, TABLE.slice(100 * number, 100))], "run")
        return server.query(SESSIONS)

    (first,) = commit(1)
    assert first[1] == "idle"  # not in a transaction
    assert commit(2) == [first]
    server.query(f"SELECT pg_terminate_backend({first[0]})")
    (second,) = commit(3)  # nothing fails
    assert second[0] != first[0]
    server.stop()
    server.start()
    (third,) = commit(4)
    server.query("UPDATE workbench_owners SET run = 'successor'")
    with pytest.raises(CommittedRowsError, match="was taken by"):
        commit(5)  # over the connection that the replaced process has kept
    assert values_of(server) == list(range(100, 500))
    held.release()
    until(lambda: server.query(SESSIONS) == [])
    assert third != second


def test_another_job_is_refused_and_a_start_on_committed_rows_is_too(server: PostgresProcess) -> None:
    sink = wb.SqlSink(server.url, "numbers")
    job = wb.Stream.from_table(TABLE, rate=100).sink_to(sink).run("first", checkpoint_interval="50ms")
    try:
        with pytest.raises(SinkError, match=r"'numbers' of postgresql://\*\*\*@.* is written to by job 'first'"):
            wb.Stream.from_table(TABLE).sink_to(sink).run("second")
        until(lambda: values_of(server))
    finally:
        job.cancel()
        job.wait("60s")
    with pytest.raises(CommittedRowsError, match=r"'numbers' of .* already holds rows of 'first/"):
        wb.Stream.from_table(TABLE).sink_to(sink).run("first")


def test_a_process_that_was_replaced_commits_nothing(server: PostgresProcess) -> None:
    sink = wb.SqlSink(server.url, "numbers")
    stalled = sink.hold(SinkContext("job", "sink", TABLE.schema, "stalled"))
    sink.target.prepare(TABLE.schema, create=True)
    server.query("UPDATE workbench_owners SET run = 'successor'")
    with pytest.raises(CommittedRowsError, match="was taken by job 'job' of process"):
        sink.target.commit("job/sink", Runs("stalled"), [Epoch(1, 0, TABLE)], "stalled")
    stalled.release()  # takes nothing from its successor
    assert values_of(server) == []
    assert server.query("SELECT run FROM workbench_owners") == [("successor",)]


def test_no_server_and_no_package_are_named_without_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    monkeypatch.setattr("workbench.connectors.contract.attempts.WAIT_S", 0.2)
    url = f"postgresql://ann:pa55word@/nowhere?host={tmp_path}"
    sink = wb.SqlSink(url, "numbers")
    stream = wb.Stream.from_table(TABLE)
    with pytest.raises(SinkError, match=r"cannot .* of postgresql://\*\*\*@/nowhere.*: .*No such file") as caught:
        stream.sink_to(sink).run("nowhere")
    assert "pa55word" not in f"{caught.value} {sink!r} {sink.describe()}"
    imported = packages.import_module

    def missing(name: str) -> Any:
        if name.startswith("adbc_"):
            raise ModuleNotFoundError(name=name)
        return imported(name)

    monkeypatch.setattr(packages, "import_module", missing)
    with pytest.raises(MissingPackageError, match="writing to PostgreSQL needs the package adbc_driver_postgresql"):
        stream.sink_to(sink)
