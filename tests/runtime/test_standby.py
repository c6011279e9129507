"""A second process stands by, takes over when the owner of a job dies, and never runs beside it (F2-16)."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from waiting import until

import workbench as wb
from workbench.api.beginning import opening
from workbench.connectors.sql import database as sql_database
from workbench.drivers.live import standby
from workbench.durable import folder_lock
from workbench.errors import CheckpointError, JobError, SettingError, SinkError
from workbench.runtime.storage import DirectoryStorage, HeldError, Holder
from workbench.runtime.storage.encoding import encode
from workbench.runtime.storage.files import LocalFiles

COUNT = 20_000
TAKE_OVER_S = 2.0


class Processes:
    """Processes of `standby_job.py`, by their numbers; what they tell comes through one queue."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._told: queue.SimpleQueue[tuple[int, list[Any]]] = queue.SimpleQueue()

    def start(self) -> int:
        program = str(Path(__file__).parents[1] / "support" / "standby_job.py")
        process = subprocess.Popen(
            [sys.executable, program, str(self._folder), str(COUNT)], stdout=subprocess.PIPE, text=True
        )
        self._processes[process.pid] = process
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        return process.pid

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._told.put((process.pid, json.loads(line)))
        process.stdout.close()

    def next(self, state: str) -> tuple[int, list[Any]]:
        """The process that is in this state next, and what it tells; what others tell before is left out."""
        while True:
            process, told = self._told.get(timeout=60)
            if told[1] == state:
                return process, told

    def kill(self, process: int) -> float:
        """When it was killed."""
        os.kill(process, signal.SIGKILL)
        at = time.time()
        self._processes[process].wait()
        return at

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    yield started
    started.close()


@pytest.mark.slow
def test_one_of_those_who_stand_by_goes_on_when_the_owner_is_killed(processes: Processes, tmp_path: Path) -> None:
    owner = processes.start()
    while not processes.next("RUNNING")[1][2]:
        pass  # until it has completed a checkpoint
    others = {processes.start(), processes.start()}
    waiting = set()
    while waiting != others:
        process, told = processes.next("SUSPENDED")
        assert told[3].startswith(f"process {owner} on ")
        waiting.add(process)
    killed = processes.kill(owner)
    second, told = processes.next("RUNNING")
    assert second in others
    assert told[0] - killed < TAKE_OVER_S
    while not told[2]:  # until it has completed a checkpoint
        _, told = processes.next("RUNNING")
    (third,) = others - {second}
    killed = processes.kill(second)
    process, told = processes.next("RUNNING")
    assert process == third
    assert told[0] - killed < TAKE_OVER_S
    (tmp_path / "fast").touch()
    process, told = processes.next("FINISHED")
    assert process == third
    assert told[2] == list(range(COUNT))  # each row once, whoever committed it


# a directory that is deleted, renamed or replaced ------------------------------------------------------------------


def test_the_owner_notices_that_its_directory_was_replaced_and_taken(tmp_path: Path) -> None:
    owner = DirectoryStorage(tmp_path / "c")
    (tmp_path / "c").rename(tmp_path / "away")
    with closing(DirectoryStorage(tmp_path / "c")) as other:
        owned = (
            owner.check,
            owner.beat,
            lambda: owner.keep("job.json", b"{}"),
            lambda: owner.write("chk-00000001", "task[0]", encode({})),
            lambda: owner.discard("chk-00000001"),
        )
        for each in owned:
            with pytest.raises(CheckpointError, match=f"replaced .* taken by process {os.getpid()} on"):
                each()
        other.beat()
        other.check()
        assert other.unused
    with pytest.raises(CheckpointError, match="replaced while this job ran"):  # nor when the other one has ended
        owner.check()
    owner.close()
    with closing(DirectoryStorage(tmp_path / "c")):
        pass


@pytest.mark.parametrize("deleted", ["the lock", "all"])
def test_the_owner_of_a_directory_that_was_deleted_takes_it_again(tmp_path: Path, deleted: str) -> None:
    owner = DirectoryStorage(tmp_path / "c")
    for _ in range(2):
        if deleted == "all":
            shutil.rmtree(tmp_path / "c")
        else:
            (tmp_path / "c" / "lock").unlink()
        owner.beat()
        owner.write("chk-00000001", "task[0]", encode({}))
        with pytest.raises(HeldError, match=f"is in use by process {os.getpid()}"):
            DirectoryStorage(tmp_path / "c")
    owner.close()
    DirectoryStorage(tmp_path / "c").close()


def test_who_cannot_look_for_its_lock_completes_no_checkpoint_and_does_not_end(tmp_path: Path) -> None:
    owner = DirectoryStorage(tmp_path / "c")
    (tmp_path / "c").rename(tmp_path / "away")
    (tmp_path / "c").touch()
    owner.beat()
    with pytest.raises(CheckpointError, match=r"cannot be read now: .*Not a directory"):
        owner.check()
    (tmp_path / "c").unlink()
    (tmp_path / "away").rename(tmp_path / "c")
    owner.check()
    owner.close()


def test_of_two_jobs_whose_directory_was_replaced_one_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "HEARTBEAT_US", 1_000_000)
    rows = wb.Stream.from_table(pa.table({"n": range(2_000)}), rate=1_000).uid("numbers")
    pipeline = rows.sink_to(wb.ParquetSink(tmp_path / "out"))
    first = pipeline.run("first", checkpoint_dir=tmp_path / "c", checkpoint_interval="1h")
    first.checkpoint()
    (tmp_path / "other").touch()
    (tmp_path / "other").rename(tmp_path / "c" / "lock")  # at no moment is there none that the first could take again
    with pytest.raises(SinkError, match=r"is written to by job 'first' of process"):  # and has taken the directory
        pipeline.run("second", checkpoint_dir=tmp_path / "c", checkpoint_interval="50ms", resume=True)
    with pytest.raises(JobError, match=r"was taken by (process|another job)"):
        first.wait("60s")
    second = pipeline.run("second", checkpoint_dir=tmp_path / "c", checkpoint_interval="50ms", resume=True)
    assert second.wait("60s") == "FINISHED"
    written = (n for path in (tmp_path / "out").glob("part-*") for n in pq.read_table(path)["n"].to_pylist())
    assert sorted(written) == list(range(2_000))


# in one process ------------------------------------------------------------------------------------------------------


def numbers() -> wb.types.Pipeline:
    return wb.Stream.from_table(pa.table({"n": range(50)}), rate=1000).sink_to(wb.TableSink("out"))


def test_a_job_that_stands_by_is_suspended_and_says_for_whom(tmp_path: Path) -> None:
    held = DirectoryStorage(tmp_path)
    job = numbers().run("waits", checkpoint_dir=tmp_path, standby=True)
    try:
        assert (job.state, job.over) == ("SUSPENDED", False)
        while job.status()["lease"] is None:
            time.sleep(0.01)
        assert job.status()["lease"] == str(held.holder)
        with pytest.raises(JobError, match=f"is SUSPENDED, because .* is held by process {os.getpid()} on"):
            job.checkpoint()
    finally:
        held.close()
    assert job.wait("60s") == "FINISHED"  # it had nothing to continue, so it began
    assert job.table("out").num_rows == 50


def test_a_job_that_stands_by_can_be_canceled(tmp_path: Path) -> None:
    held = DirectoryStorage(tmp_path)
    job = numbers().run("leaves", checkpoint_dir=tmp_path, standby=True)
    job.stop()
    assert job.wait("60s") == "CANCELED"
    held.close()
    while any(thread.name == "leaves standby" for thread in threading.enumerate()):
        time.sleep(0.01)
    DirectoryStorage(tmp_path).close()  # nobody has taken it


def test_where_nobody_holds_the_directory_a_standby_runs_at_once(tmp_path: Path) -> None:
    job = numbers().run("alone", checkpoint_dir=tmp_path, standby=True)
    assert job.status()["lease"].startswith(f"process {os.getpid()} on ")
    assert job.wait("60s") == "FINISHED"
    assert job.status()["lease"] is None


def test_what_cannot_be_taken_over_fails_when_its_turn_comes(tmp_path: Path) -> None:
    first = numbers().run("first", checkpoint_dir=tmp_path)
    other = wb.Stream.from_table(pa.table({"n": range(5)})).uid("elsewhere").sink_to(wb.TableSink("other"))
    job = other.run("second", checkpoint_dir=tmp_path, standby=True)
    first.wait("60s")
    with pytest.raises(JobError, match="has state of operator"):
        job.wait("60s")


def failing_when_free(patch: pytest.MonkeyPatch, owner: type, name: str, error: Exception, times: int) -> list[int]:
    """Have a method raise so many times in whoever takes over; how often it was called."""
    real, called = getattr(owner, name), [0]

    def method(*args: Any, **options: Any) -> Any:
        called[0] += 1
        if called[0] <= times:
            raise error
        return real(*args, **options)

    patch.setattr(owner, name, method)
    return called


def tries_again(job: wb.types.Job) -> list[str]:
    """What the job tells of tries that failed."""
    texts = [event.text for event in job.recorder.latest().events]  # type: ignore[union-attr]
    return [text for text in texts if "cannot take over yet" in text]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "method", "error"),
    [
        (DirectoryStorage, "latest", OSError(5, "Input/output error")),
        (LocalFiles, "read", OSError(5, "Input/output error")),
        (folder_lock, "take_folder_durably", OSError(28, "No space left on device")),
    ],
)
def test_who_stands_by_tries_again_when_the_storage_does_not_answer(
    owner: Any, method: str, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = numbers().run("first", checkpoint_dir=tmp_path)
    assert first.wait("60s") == "FINISHED"
    held = DirectoryStorage(tmp_path)
    job = numbers().run("second", checkpoint_dir=tmp_path, standby=True)
    assert job.state == "SUSPENDED"
    with monkeypatch.context() as patch:
        called = failing_when_free(patch, owner, method, error, times=2)
        held.close()
        assert job.wait("60s") == "FINISHED"
        assert called[0] > 2
    (told,) = tries_again(job)
    assert str(error.strerror) in told  # type: ignore[attr-defined]
    assert "will try again" in told
    assert job.table("out").num_rows == 50


def test_who_stands_by_waits_for_a_database_that_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_database, "WAIT_S", 0.01)
    held = DirectoryStorage(tmp_path / "c")
    stream = wb.Stream.from_table(pa.table({"n": range(5)})).sink_to(wb.SqlSink(f"sqlite:///{tmp_path}/out.db", "out"))
    with closing(sqlite3.connect(tmp_path / "out.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        job = stream.run("second", checkpoint_dir=tmp_path / "c", standby=True)
        held.close()
        while job.state == "SUSPENDED" and not tries_again(job):
            time.sleep(0.01)
        assert job.state == "SUSPENDED"
        other.execute("COMMIT")
        assert job.wait("60s") == "FINISHED"
        assert other.execute("SELECT count(*) FROM out").fetchone() == (5,)


def test_who_stands_by_does_not_wait_where_rows_of_another_run_lie(tmp_path: Path) -> None:
    held = DirectoryStorage(tmp_path / "c")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000001-0000-000.parquet").touch()
    job = (
        wb.Stream.from_table(pa.table({"n": range(5)}))
        .sink_to(wb.ParquetSink(tmp_path / "out"))
        .run("second", checkpoint_dir=tmp_path / "c", standby=True)
    )
    held.close()
    with pytest.raises(JobError, match="already holds 1 committed files"):
        job.wait("60s")
    assert not tries_again(job)


def test_who_stands_by_gives_up_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "TRIES_MAX", 3)
    monkeypatch.setattr(standby, "POLL_S", 0.01)
    held = DirectoryStorage(tmp_path)
    job = numbers().run("second", checkpoint_dir=tmp_path, standby=True)
    called = failing_when_free(monkeypatch, DirectoryStorage, "latest", OSError(5, "Input/output error"), times=99)
    (tmp_path / "chk-00000001").mkdir()
    held.close()
    with pytest.raises(JobError, match="Input/output error"):
        job.wait("60s")
    assert called[0] == 3
    DirectoryStorage(tmp_path).close()  # it has given it back


def test_the_pace_of_tries_is_slower_the_longer_they_fail() -> None:
    assert [round(standby.pause_s(failures), 1) for failures in range(7)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert sum(map(standby.pause_s, range(standby.TRIES_MAX))) > 60


def test_a_standby_needs_a_directory_and_resumes(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="name the checkpoint_dir"):
        numbers().run("nowhere", standby=True)
    with pytest.raises(SettingError, match="standby=True waits to resume a live job"):
        numbers().run("steps", checkpoint_dir=tmp_path, standby=True, driver="stepping")


def test_a_directory_in_use_is_refused_with_its_holder(tmp_path: Path) -> None:
    held = DirectoryStorage(tmp_path)
    with pytest.raises(HeldError, match=f"is in use by process {os.getpid()} on .*standby=True") as refused:
        DirectoryStorage(tmp_path)
    assert refused.value.holder == held.holder
    held.close()
    later = DirectoryStorage(tmp_path)
    assert Holder.read((tmp_path / "lock").read_text()) == later.holder
    later.close()
    assert Holder.read("torn") is Holder.read("{}") is None


def test_a_take_over_says_so_with_the_checkpoint_that_it_goes_on_from(tmp_path: Path) -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(COUNT)}), rate=500)
    counts = numbers.sink_to(wb.TableSink("out"))
    owner = counts.run("taken", checkpoint_interval="50ms", checkpoint_dir=tmp_path)
    until(lambda: owner.status()["checkpoints"])
    owner.cancel()
    owner.wait("60s")
    held = DirectoryStorage(tmp_path)  # another process, as far as the job can tell
    second = counts.run("taken", checkpoint_interval="disabled", checkpoint_dir=tmp_path, standby=True)
    until(lambda: second.status()["lease"])
    assert (second.state, second.status()["last_interruption"]) == ("SUSPENDED", None)
    held.close()
    until(lambda: second.status().get("last_interruption") and second.state == "RUNNING")
    until(lambda: second.recorder.latest().interruptions[-1].state == "over")
    told = second.recorder.latest().interruptions[-1]
    assert told.kind == "take-over"
    assert second.status()["last_interruption"] == told.sentence
    assert told.sentence.startswith(f"took over from another process; restored checkpoint {told.checkpoint}")
    assert told.checkpoint == second.recorder.latest().restore.id
    second.cancel()
    second.wait("60s")
