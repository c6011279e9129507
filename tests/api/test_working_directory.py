"""Relative paths keep their meaning when the working directory changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from waiting import until

import workbench as wb
from workbench.connectors.files.file_source import FORMATS, FileSource
from workbench.connectors.replay.log import write_log
from workbench.runtime.storage import DirectoryStorage

ROWS = 2_000
NUMBERS = pa.table({"n": range(ROWS), "t": range(ROWS)})


def in_parts(read: Callable[[Path], pa.Table]) -> Callable[[], list[int]]:
    return lambda: [n for path in Path("out").glob("part-*") for n in read(path)["n"].to_pylist()]


def in_database(connect: Callable[[str], Any]) -> Callable[[], list[int]]:
    def read() -> list[int]:
        with closing(connect("out.db")) as connection:
            return [n for (n,) in connection.execute("SELECT n FROM numbers").fetchall()]

    return read


SINKS: dict[str, tuple[Callable[[], Any], Callable[[], list[int]]]] = {
    "parquet": (lambda: wb.ParquetSink("out"), in_parts(pq.read_table)),
    "csv": (lambda: wb.FileSink("out", "csv"), in_parts(pc.read_csv)),
    "sqlite": (lambda: wb.SqlSink("sqlite:///out.db", "numbers"), in_database(sqlite3.connect)),
    "duckdb": (lambda: wb.SqlSink("duckdb:///out.db", "numbers"), in_database(duckdb.connect)),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where to go; the test begins in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere"


def from_files() -> wb.Stream:
    Path("data").mkdir()
    for index in range(4):
        pq.write_table(NUMBERS.slice(index * ROWS // 4, ROWS // 4), f"data/{index}.parquet")
    return wb.Stream.from_files("data/*.parquet", rate=50).uid("numbers")


def from_history() -> wb.Stream:
    write_log(NUMBERS.to_batches(max_chunksize=10), "history", event_time="t", arrival_time="t")
    return wb.Stream.replay(wb.History.open("history"), speed="0.00005x").uid("numbers")


def running(stream: wb.Stream, sink: Any) -> wb.types.Job:
    """A job that has a checkpoint, and would need 40 seconds for all rows."""
    job = stream.sink_to(sink).run("moved", checkpoint_dir="checkpoints", checkpoint_interval="20ms")
    until(lambda: job.status()["last_checkpoint"])
    return job


def finished(job: wb.types.Job) -> bool:
    """Have it read the rest as fast as it can."""
    job.tune(**{"speed" if job.status()["rate"] is None else "rate": "max"})
    return job.wait("60s") == "FINISHED"


@pytest.mark.parametrize("kind", SINKS)
@pytest.mark.parametrize("source", [from_files, from_history])
def test_a_job_that_starts_again_goes_on_where_it_was(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, source: Callable[[], wb.Stream]
) -> None:
    sink, committed = SINKS[kind]
    job = running(source(), sink())
    monkeypatch.chdir(elsewhere)
    job.fail(task="numbers[0]")
    assert finished(job)
    assert not list(elsewhere.iterdir())
    monkeypatch.chdir(tmp_path)
    assert sorted(committed()) == list(range(ROWS))


@pytest.mark.parametrize("kind", SINKS)
def test_a_job_that_is_restored_goes_on_where_it_was(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    sink, committed = SINKS[kind]
    job = running(from_files(), sink())
    monkeypatch.chdir(elsewhere)
    job.tune(checkpoint_interval="1h")  # what a later checkpoint has committed is not taken back
    job.savepoint("here")
    assert finished(job.restore("here"))
    assert not list(elsewhere.iterdir())
    monkeypatch.chdir(tmp_path)
    assert sorted(committed()) == list(range(ROWS))


def test_who_stands_by_waits_for_the_directory_that_was_meant(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = DirectoryStorage("checkpoints")
    rows = wb.Stream.from_table(NUMBERS)
    job = rows.sink_to(wb.TableSink("out")).run("waits", checkpoint_dir="checkpoints", standby=True)
    monkeypatch.chdir(elsewhere)
    assert not job._run.driver.wait_for(job._run.driver.ended, 0.5)
    assert job.state == "SUSPENDED"
    held.close()
    assert job.wait("60s") == "FINISHED"
    assert not list(elsewhere.iterdir())


def test_a_history_is_verified_where_it_was_opened(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(NUMBERS.to_batches(), "history", event_time="t", arrival_time="t")
    monkeypatch.chdir(elsewhere)
    log.verify()
    assert log.path == Path("history")


def test_a_checkpoint_knows_files_by_their_names_as_they_were_given(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_files()
    source = FileSource("data/*.parquet")
    monkeypatch.chdir(elsewhere)
    parts = source.parts(FORMATS["parquet"])
    assert [part.name for part in parts] == [f"data/{index}.parquet#0" for index in range(4)]
    assert parts[0].path == tmp_path / "data" / "0.parquet"
