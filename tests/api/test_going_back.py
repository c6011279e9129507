"""A job that cannot return to a savepoint continues: the whole savepoint is read before the job is stopped."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.errors import SinkError

NUMBERS = pa.table({"n": range(100_000), "k": [n % 5 for n in range(100_000)]})


def running(tmp_path: Path, sink: Any) -> wb.types.Job:
    """A job with a savepoint ``here``."""
    counts = wb.Stream.from_table(NUMBERS, rate=1_000).uid("numbers").key_by("k").aggregate(n=wb.count()).uid("counts")
    job = counts.sink_to(sink).run("back", checkpoint_dir=tmp_path / "c", checkpoint_interval="50ms")
    until(lambda: job.status()["records_out"] >= 300)
    job.savepoint("here")
    return job


def last_epoch(tmp_path: Path) -> int:
    """Of the rows that a sink has committed."""
    if (tmp_path / "out").is_dir():
        return max(int(part.name.split("-")[1]) for part in (tmp_path / "out").glob("part-*"))
    with closing(sqlite3.connect(tmp_path / "out.db")) as connection:
        return int(connection.execute("SELECT max(epoch) FROM workbench_commits").fetchone()[0])


def goes_on(job: wb.types.Job) -> bool:
    before = job.status()["records_out"]
    until(lambda: job.status()["records_out"] > before + 100)
    return job.state == "RUNNING"


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_damaged_file_of_a_task_leaves_the_job_running(tmp_path: Path) -> None:
    job = running(tmp_path, wb.TableSink("out"))
    (file,) = (tmp_path / "c" / "savepoints" / "here").glob("counts*.arrow")
    damage(file)
    with pytest.raises(wb.errors.CorruptCheckpointError, match=r"counts.* does not match its checksum"):
        job.restore("here")
    assert goes_on(job)


def test_a_damaged_file_of_a_table_leaves_the_job_running(tmp_path: Path) -> None:
    job = running(tmp_path, wb.TableSink("out"))
    part = wb.Snapshot.open(tmp_path / "c" / "savepoints" / "here").values("out")[0]["parts"][0]  # type: ignore[index,call-overload]
    damage(tmp_path / "c" / "tables" / "out" / part["file"])  # type: ignore[index,call-overload,operator]
    with pytest.raises(wb.errors.CorruptCheckpointError, match="does not match its checksum in the checkpoint"):
        job.restore("here")
    assert goes_on(job)


@pytest.mark.parametrize("kind", ["parquet", "csv", "sqlite"])
def test_rows_that_would_come_twice_leave_the_job_running(tmp_path: Path, kind: str) -> None:
    sinks = {
        "parquet": wb.ParquetSink(tmp_path / "out"),
        "csv": wb.FileSink(tmp_path / "out", format="csv"),
        "sqlite": wb.SqlSink(f"sqlite:///{tmp_path}/out.db", "counts"),
    }
    job = running(tmp_path, sinks[kind])
    saved = wb.Snapshot.open(tmp_path / "c" / "savepoints" / "here").checkpoint_id
    until(lambda: last_epoch(tmp_path) > saved)
    with pytest.raises(SinkError, match="would be duplicated"):
        job.restore("here")
    assert goes_on(job)


def test_a_sound_savepoint_is_gone_back_to(tmp_path: Path) -> None:
    job = running(tmp_path, wb.TableSink("out"))
    again = job.restore("here")
    assert job.state == "CANCELED"
    assert goes_on(again)
