"""The main job on real flights against an oracle that shares no code with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from io import FileIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from waiting import until

import workbench as wb
from workbench import col
from workbench.durable import folder_lock
from workbench.runtime.storage import DirectoryStorage, HeldError

pytestmark = pytest.mark.spark  # the history is written by Spark


def delays(log: Path, speed: str) -> wb.Stream:
    return (
        wb.Stream.replay(log, speed=speed, out_of_orderness="24h", idle_after="10s")
        .filter("dep_delay IS NOT NULL")
        .with_columns(late=col("dep_delay") > 15)
        .key_by("origin")
        .window(wb.tumbling("1h"), allowed_lateness="1h")
        .aggregate(flights=wb.count(), mean_delay=wb.mean("dep_delay"), worst=wb.max("dep_delay"))
    )


def assert_equals_oracle(found: pa.Table, oracle: pa.Table) -> None:
    names = oracle.column_names
    rows = sorted(zip(*(found.column(name).to_pylist() for name in names), strict=True))
    expected = list(zip(*(oracle.column(name).to_pylist() for name in names), strict=True))
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        assert row[:3] == wanted[:3]
        assert row[3] == pytest.approx(wanted[3], rel=1e-12)
        assert row[4] == wanted[4]


@pytest.mark.parametrize("parallelism", [1, 2, 4])
@pytest.mark.parametrize(
    ("speed", "buffer_timeout", "buffer_size"),
    [("max", "100ms", 65_536), ("max", "0ms", 1_000), ("max", "disabled", 500), ("20000000x", "5ms", 65_536)],
)
def test_every_window_equals_the_oracle(
    flights_log: Path, delays_oracle: pa.Table, parallelism: int, speed: str, buffer_timeout: str, buffer_size: int
) -> None:
    job = (
        delays(flights_log, speed)
        .sink_to(wb.TableSink("delays"))
        .run(
            "delays",
            parallelism=parallelism,
            buffer_timeout=buffer_timeout,
            buffer_size=buffer_size,
            checkpoint_interval="200ms",
        )
    )
    assert job.wait("60s") == "FINISHED"
    assert_equals_oracle(job.table("delays"), delays_oracle)
    assert job.status()["late_records"] == 0


def await_frames(job: wb.types.Job, count: int) -> None:
    last = job.recorder.frames()[-1].sequence + count
    until(lambda: job.recorder.frames()[-1].sequence >= last)


def test_tuning_while_running_leaves_the_results_alone(flights_log: Path, delays_oracle: pa.Table) -> None:
    job = delays(flights_log, "500000x").sink_to(wb.TableSink("delays")).run("delays", parallelism=2)
    for buffer_timeout, interval, speed in [
        ("0ms", "50ms", "800000x"),
        ("disabled", "1s", "300000x"),
        ("5ms", "100ms", "900000x"),
    ]:
        before = job.status()["records_in"]
        until(lambda before=before: job.status()["records_in"] > before)
        status = job.tune(buffer_timeout=buffer_timeout, checkpoint_interval=interval, speed=speed)
        in_force = (status["buffer_timeout"], status["checkpoint_interval"], status["speed"])
        assert in_force == (buffer_timeout, interval, speed)
    job.pause()
    await_frames(job, 5)  # for one that was sampled behind the last step of a source
    first = job.status()["records_in"]
    await_frames(job, 5)
    assert job.status()["records_in"] == first
    job.resume()
    job.tune(speed="max")
    assert job.wait("60s") == "FINISHED"
    assert_equals_oracle(job.table("delays"), delays_oracle)


def test_failed_tasks_recover_to_the_same_results(flights_log: Path, delays_oracle: pa.Table) -> None:
    job = (
        delays(flights_log, "1000000x")  # half a minute: it does not end meanwhile
        .sink_to(wb.TableSink("delays"))
        .run("delays", parallelism=2, checkpoint_interval="100ms")
    )
    for restarts, task in enumerate(["aggregate[1]", "source[0]", "aggregate[0]", "filter[1]"], start=1):
        before = job.status()["checkpoints"]
        until(lambda before=before: job.status()["checkpoints"] > before + 2)
        job.fail(task=task)
        until(lambda restarts=restarts: job.status()["restarts"] == restarts and job.state == "RUNNING")
    job.tune(speed="max")
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 4
    assert_equals_oracle(job.table("delays"), delays_oracle)


RUN = """
import sys
import workbench as wb
sys.path[:0] = {tests!r}
from test_main_job import delays
from pathlib import Path
folder = Path({folder!r})
stream = delays(Path({log!r}), {speed!r})
pipeline = stream.sink_to(wb.TableSink("delays")) + stream.sink_to(wb.ParquetSink(folder / "out"))
job = pipeline.run("delays", parallelism={parallelism}, checkpoint_interval="100ms",
                   checkpoint_dir=folder / "checkpoints", resume=True)
print("started", flush=True)
job.wait()
import pyarrow.parquet as pq
pq.write_table(job.table("delays"), folder / "table.parquet")
print(job.state, flush=True)
"""


def newest_checkpoint(folder: Path) -> int:
    return max((int(file.parent.name.removeprefix("chk-")) for file in folder.glob("chk-*/manifest.json")), default=0)


def test_kill_minus_nine_then_resume_gives_the_oracle_exactly_once(
    flights_log: Path, delays_oracle: pa.Table, tmp_path: Path
) -> None:
    for attempt, parallelism in enumerate([2, 1, 3, 2]):
        code = RUN.format(
            tests=[str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")],
            folder=str(tmp_path),
            log=str(flights_log),
            parallelism=parallelism,
            speed="500000x" if attempt < 3 else "max",
        )
        enough = newest_checkpoint(tmp_path / "checkpoints") + 3 + attempt
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        if attempt < 3:
            until(lambda enough=enough: newest_checkpoint(tmp_path / "checkpoints") >= enough, process)
            time.sleep(0.04 * attempt)  # not always at the same place between two checkpoints
            os.kill(process.pid, signal.SIGKILL)
            assert process.wait(10) == -signal.SIGKILL
        else:
            assert process.stdout.readline() == "FINISHED\n"
            assert process.wait(30) == 0
        process.stdout.close()
    committed = pa.parquet.read_table(sorted((tmp_path / "out").glob("part-*.parquet")))
    assert_equals_oracle(committed, delays_oracle)
    assert_equals_oracle(pa.parquet.read_table(tmp_path / "table.parquet"), delays_oracle)


# jobs that cannot be started -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lacking", ["space", "heartbeat", "writer", "master"])
def test_a_job_that_could_not_be_started_leaves_its_name_and_directory_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    def run() -> wb.types.Job:
        rows = wb.Stream.from_table(pa.table({"n": range(10)}))
        return rows.sink_to(wb.TableSink("out")).run("again", checkpoint_dir=tmp_path, resume=True)

    started = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name.endswith(lacking):
            raise RuntimeError("can't start new thread")
        started(thread)

    def keep(self: DirectoryStorage, name: str, content: bytes) -> None:
        raise wb.errors.SinkError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        if lacking == "space":
            patch.setattr(DirectoryStorage, "keep", keep)
        with pytest.raises((RuntimeError, wb.errors.SinkError), match=r"No space left|can't start"):
            run()
    assert "again" not in wb.jobs()
    for thread in threading.enumerate():
        if thread.name.startswith(("again", "workbench-heartbeat")):
            thread.join(60)
            assert not thread.is_alive()
    assert run().wait("60s") == "FINISHED"


def test_a_directory_is_locked_where_there_is_no_space_to_say_by_whom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    class Full(FileIO):
        write = full

    with monkeypatch.context() as patch:
        patch.setattr(folder_lock, "FileIO", Full)
        owner = DirectoryStorage(tmp_path)
    with pytest.raises(HeldError, match="in use by another job"):
        DirectoryStorage(tmp_path)
    owner.close()
