"""Only one job at a time writes to a sink's folder, even if several start at once, and no commit replaces a file of
another program."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from sink_job import SinkJob
from waiting import until

import workbench as wb
from workbench.api.beginning import opening
from workbench.connectors.contract.base import SinkContext
from workbench.connectors.parts.sink_folder import LOCK, SinkFolder
from workbench.durable.disk import DISK, Disk
from workbench.errors import SinkError
from workbench.runtime.job.master import Master

ROWS = 3_000
CHILD = """
import json, sys, threading
import pyarrow as pa
import workbench as wb

name, base = sys.argv[1], int(sys.argv[2])

def answer(**values):
    print(json.dumps(values), flush=True)

answer(ready=True)
for line in sys.stdin:
    go = json.loads(line)
    gate = threading.Event()
    rows = wb.Stream.from_table(pa.table({"n": range(base, base + go["rows"])})).uid("numbers")
    held = rows.map_batches(lambda batch: batch if gate.wait(60) else None)
    sink = wb.ParquetSink(go["folder"])
    try:
        job = held.sink_to(sink).run(
            name, checkpoint_dir=go["directory"] + name, parallelism=go["parallelism"], checkpoint_interval="20ms"
        )
    except wb.errors.WorkbenchError as error:
        answer(refused=type(error).__name__, why=str(error))
        continue
    answer(running=True)
    sys.stdin.readline()
    gate.set()
    answer(state=job.wait("60s"))
"""


class Child:
    """Another process that runs jobs when it is told to."""

    def __init__(self, name: str, base: int) -> None:
        self.name, self.base = name, base
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, name, str(base)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, **values: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(values) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def children() -> Iterator[list[Child]]:
    both = [Child("red", 0), Child("blue", 1_000_000)]
    try:
        yield both
    finally:
        for child in both:
            child.process.kill()
            child.process.communicate()


def values_in(folder: Path) -> list[int]:
    return sorted(ds.dataset(folder, format="parquet").to_table()["n"].to_pylist())


@pytest.mark.slow
def test_of_two_processes_that_start_together_one_has_the_folder(tmp_path: Path) -> None:
    with children() as both:
        for child in both:
            assert child.answer() == {"ready": True}
        for number, parallelism in enumerate([1, 3] * 4):
            folder = tmp_path / f"out-{number}"
            for child in both:
                child.tell(
                    folder=str(folder),
                    directory=str(tmp_path / f"c-{number}-"),
                    parallelism=parallelism,
                    rows=ROWS,
                )
            answers = {child: child.answer() for child in both}
            (winner,) = [child for child in both if "running" in answers[child]]
            (other,) = [child for child in both if child is not winner]
            assert answers[other]["refused"] == "SinkError"
            assert (
                f"{folder} is written to by job '{winner.name}' of process {winner.process.pid} on"
                in (answers[other]["why"])
            )
            winner.tell()
            assert winner.answer() == {"state": "FINISHED"}
            assert values_in(folder) == list(range(winner.base, winner.base + ROWS))


@pytest.mark.slow
def test_a_killed_process_has_no_folder_any_more(tmp_path: Path) -> None:
    pipeline = wb.Stream.from_table(pa.table({"n": range(5)})).sink_to(wb.ParquetSink(tmp_path / "out"))
    with children() as (child, _):
        assert child.answer() == {"ready": True}
        child.tell(folder=str(tmp_path / "out"), directory=str(tmp_path / "c"), parallelism=1, rows=10)
        assert child.answer() == {"running": True}
        with pytest.raises(SinkError, match=f"is written to by job 'red' of process {child.process.pid} on"):
            pipeline.run("next")
        os.kill(child.process.pid, signal.SIGKILL)
        child.process.wait()
        assert pipeline.run("next").wait("60s") == "FINISHED"
    assert values_in(tmp_path / "out") == list(range(5))


class Held:
    """A job whose rows wait until they are let through."""

    def __init__(self, folder: Path, name: str = "first", **options: Any) -> None:
        self.gate = threading.Event()
        self.job = (
            wb.Stream.from_table(pa.table({"n": range(10)}))
            .map_batches(lambda batch: batch if self.gate.wait(60) else None)
            .sink_to(wb.ParquetSink(folder))
            .run(name, **options)
        )

    def end(self) -> str:
        self.gate.set()
        return self.job.wait("60s")


def short(folder: Path, kind: str = "parquet") -> wb.types.Pipeline:
    sink: Any = wb.ParquetSink(folder) if kind == "parquet" else wb.FileSink(folder, "csv")
    return wb.Stream.from_table(pa.table({"n": [1, 2]})).sink_to(sink)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_two_names_of_one_folder_are_one_folder(tmp_path: Path, kind: str) -> None:
    held = Held(tmp_path / "out")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    before = sorted(os.listdir(tmp_path / "out"))  # noqa: PTH208
    for folder in (tmp_path / "out", tmp_path / "link", tmp_path / "link" / ".." / "out"):
        with pytest.raises(SinkError, match=f"is written to by job 'first' of process {os.getpid()} on .* since 20"):
            short(folder, kind).run("second", checkpoint_dir=tmp_path / "c")
    assert sorted(os.listdir(tmp_path / "out")) == before  # noqa: PTH208
    assert held.end() == "FINISHED"
    assert values_in(tmp_path / "out") == list(range(10))


def test_the_folder_is_kept_while_a_job_waits_to_start_again(tmp_path: Path) -> None:
    def fails(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("poison")

    job = (
        wb.Stream.from_table(pa.table({"n": [1]}))
        .map_batches(fails)
        .sink_to(wb.ParquetSink(tmp_path / "out"))
        .run("restarts", restart="fixed-delay:attempts=3,delay=1h")
    )
    until(lambda: job.state == "RESTARTING")
    with pytest.raises(SinkError, match="is written to by job 'restarts'"):
        short(tmp_path / "out").run("second")
    job.cancel()
    job.wait("60s")
    assert short(tmp_path / "out").run("second").wait("60s") == "FINISHED"


def test_a_job_that_goes_on_has_its_folder(tmp_path: Path) -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(300)}), rate=300)
    job = numbers.sink_to(wb.ParquetSink(tmp_path / "out")).run(
        "goes-on", checkpoint_dir=tmp_path / "c", checkpoint_interval="20ms"
    )
    until(lambda: job.status()["records_out"] >= 20)
    job.rescale(2)
    job.stop()
    job.wait("60s")
    again = numbers.sink_to(wb.ParquetSink(tmp_path / "out")).run("again", checkpoint_dir=tmp_path / "c", resume=True)
    assert again.wait("60s") == "FINISHED"
    assert values_in(tmp_path / "out") == list(range(300))


def open_in(folder: Path) -> list[str]:
    """The files below a folder that this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one with which these are read
            found.append(str(descriptor.readlink()))
    return [path for path in found if path.startswith(str(folder))]


def test_a_stepped_job_gives_its_folder_free_and_leaves_no_file_open(tmp_path: Path) -> None:
    job = short(tmp_path / "out").run("steps", driver="stepping")
    with pytest.raises(SinkError, match="is written to by job 'steps'"):
        short(tmp_path / "out").run("second")
    assert open_in(tmp_path) == [str(tmp_path / "out" / LOCK)]
    job.cancel()
    job.stepper.driver.run_until(lambda: job.stepper.driver.ended.is_set())
    assert job.over
    assert open_in(tmp_path) == []
    with closing_folder(tmp_path / "out"):
        pass
    assert short(tmp_path / "out").run("live").wait("60s") == "FINISHED"


@contextmanager
def closing_folder(folder: Path, job: str = "other") -> Iterator[SinkFolder]:
    held = SinkFolder(folder, job)
    try:
        yield held
    finally:
        held.release()


def test_a_refused_run_gives_free_what_it_had_taken(tmp_path: Path) -> None:
    numbers = wb.Stream.from_table(pa.table({"n": [1]}))
    both = numbers.sink_to(wb.ParquetSink(tmp_path / "a")) + numbers.sink_to(wb.ParquetSink(tmp_path / "b"))
    with closing_folder(tmp_path / "b"), pytest.raises(SinkError, match="is written to by job 'other'"):
        both.run("both", checkpoint_dir=tmp_path / "c")
    with closing_folder(tmp_path / "a"):
        pass
    assert short(tmp_path / "a").run("one").wait("60s") == "FINISHED"
    with pytest.raises(SinkError, match="already holds 1 committed files"):
        both.run("both", checkpoint_dir=tmp_path / "c")
    with closing_folder(tmp_path / "a"), closing_folder(tmp_path / "b"):
        pass


def test_what_locks_a_folder_disturbs_no_reader(tmp_path: Path) -> None:
    with closing_folder(tmp_path):
        wb.ParquetSink(tmp_path).check_fresh(SinkContext("job", "out", pa.schema([])))
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert short(tmp_path).run("writes").wait("60s") == "FINISHED"
    assert (tmp_path / LOCK).read_bytes() == b""
    assert values_in(tmp_path) == [1, 2]
    assert wb.Stream.from_files(tmp_path).schema == pa.schema([("n", pa.int64())])


@pytest.mark.parametrize(
    "text",
    [b"", b"\xff", b"[" * 10_000, b'{"pid": 1, "host": "\\u001b[2J", "since_us": 1, "job": "x"}', b'{"pid": "1"}'],
)
def test_a_lock_that_says_nothing_of_use_is_held_by_another_job(tmp_path: Path, text: bytes) -> None:
    with closing_folder(tmp_path):
        (tmp_path / LOCK).write_bytes(text)
        with pytest.raises(SinkError, match="is written to by another job: end that job"):
            SinkFolder(tmp_path, "second")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(SinkError, match="a lock in it: Not a regular file"):
        short(tmp_path / "out").run("links")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_job_ends_whose_folder_another_one_has_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "HEARTBEAT_US", 20_000)
    abandon, abandoned = Master.abandon, threading.Event()

    def noted(master: Master, error: Exception) -> None:
        abandoned.set()
        abandon(master, error)

    monkeypatch.setattr(Master, "abandon", noted)
    held = Held(tmp_path / "out")
    (tmp_path / "out" / LOCK).unlink()
    until(lambda: (tmp_path / "out" / LOCK).exists())  # it takes its folder again
    with pytest.raises(SinkError, match="is written to by job 'first'"):
        SinkFolder(tmp_path / "out", "second")
    (tmp_path / "other").touch()
    (tmp_path / "other").rename(tmp_path / "out" / LOCK)
    with closing_folder(tmp_path / "out"):
        assert abandoned.wait(60)
        with pytest.raises(
            wb.errors.JobError, match=r"was taken by (job 'other'|another job).*: this job must not continue"
        ):
            held.end()


# one commit ----------------------------------------------------------------------------------------------------------


@contextmanager
def disk(own: Disk) -> Iterator[None]:
    token = DISK.set(own)
    try:
        yield
    finally:
        DISK.reset(token)


def pre_committed(folder: Path) -> tuple[SinkJob, int]:
    job = SinkJob(wb.ParquetSink(folder), None)
    job.process(3)
    checkpoint_id = job.trigger()
    job.write(checkpoint_id)
    return job, checkpoint_id


def committed(folder: Path) -> list[int]:
    return sorted(ds.dataset(folder, format="parquet").to_table()["value"].to_pylist())


class Racing(Disk):
    """Somebody else puts a file under a name just before it is given."""

    def link(self, source: str, target: str) -> None:
        Path(target).write_bytes(b"theirs")
        super().link(source, target)

    def rename(self, source: str, target: str) -> None:
        Path(target).write_bytes(b"theirs")
        super().rename(source, target)


def test_a_commit_replaces_no_file_that_comes_at_the_same_moment(tmp_path: Path) -> None:
    job, checkpoint_id = pre_committed(tmp_path)
    with disk(Racing()), pytest.raises(SinkError, match="exists and would be overwritten by"):
        job.notify(checkpoint_id)
    assert (tmp_path / "part-00000001-0000-000.parquet").read_bytes() == b"theirs"
    assert len(list(tmp_path.glob(".pending-*"))) == 1


class Linkless(Disk):
    """A file system without hard links."""

    def link(self, source: str, target: str) -> None:
        os.lstat(source)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "File exists", source)
        raise OSError(errno.EPERM, "Operation not permitted", source)


def test_where_there_are_no_links_files_are_renamed(tmp_path: Path) -> None:
    job, checkpoint_id = pre_committed(tmp_path)
    with disk(Linkless()):
        job.notify(checkpoint_id)
        job.notify(checkpoint_id)
        job.crash(killed=True)
    assert committed(tmp_path) == [0, 1, 2]
    assert list(tmp_path.glob(".pending-*")) == []


def test_where_there_are_no_links_nothing_is_replaced(tmp_path: Path) -> None:
    job, checkpoint_id = pre_committed(tmp_path)
    (tmp_path / "part-00000001-0000-000.parquet").write_bytes(b"theirs")
    with disk(Linkless()), pytest.raises(SinkError, match="exists and would be overwritten by"):
        job.notify(checkpoint_id)
    assert (tmp_path / "part-00000001-0000-000.parquet").read_bytes() == b"theirs"


class Dying(Disk):
    """The process dies before a file loses its hidden name."""

    def delete(self, path: str) -> None:
        raise KeyboardInterrupt


def test_a_crash_between_the_two_names_of_a_file_commits_it_once(tmp_path: Path) -> None:
    job, checkpoint_id = pre_committed(tmp_path)
    with disk(Dying()), pytest.raises(KeyboardInterrupt):
        job.notify(checkpoint_id)
    assert len(list(tmp_path.glob(".pending-*"))) == 1
    assert committed(tmp_path) == [0, 1, 2]
    job.crash(killed=True)
    assert committed(tmp_path) == [0, 1, 2]
    assert list(tmp_path.glob(".pending-*")) == []


def test_a_part_of_a_subtask_that_this_job_does_not_have_is_another_jobs(tmp_path: Path) -> None:
    job, checkpoint_id = pre_committed(tmp_path)
    (tmp_path / "part-00000002-0002-000.parquet").write_bytes(b"theirs")
    with pytest.raises(SinkError, match=r"part-00000002-0002-000\.parquet was committed by another job"):
        job.notify(checkpoint_id)
