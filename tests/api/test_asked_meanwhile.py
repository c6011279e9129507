"""Requests to a job while its coordinator changes or its writer is busy, and requests that are interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job import savepointing
from workbench.api.job.job import Job
from workbench.api.job.run import Run
from workbench.runtime.job.master import Master

SECOND = 1_000_000


def run(folder: Path, **options: Any) -> Job:
    stream = wb.Stream.from_table(pa.table({"n": pa.array(range(100_000), pa.int64())}), rate=500)
    pipeline = stream.key_by("n").aggregate(c=wb.count()).sink_to(wb.TableSink("out"))
    return pipeline.run("asked", checkpoint_dir=folder, checkpoint_interval="20ms", **options)


@pytest.mark.parametrize("what", ["savepoint", "rescale", "checkpoint"])
def test_what_is_asked_before_another_coordinator_is_found_is_done_by_that_one(what: str, tmp_path: Path) -> None:
    job = run(tmp_path, driver="stepping")
    driver = job.stepper.driver
    assert driver.next_checkpoint()
    old = driver.master
    job.faults.fail(coordinator=True)
    assert driver.run_until(lambda: old.state == "RESTARTING")
    assert driver.master is old  # its successor is not there yet
    begun_us = driver.clock.now_us()
    if what == "savepoint":
        assert Path(job.savepoint("kept")).name == "kept"
    elif what == "rescale":
        assert job.rescale(2)["parallelism"] == 2
    else:
        job.checkpoint()
        assert driver.run_until(lambda: any(each.kind == "manual" for each in driver.master.coordinator.history))
    assert driver.master is not old
    assert driver.clock.now_us() - begun_us < SECOND
    job.cancel()
    assert job.wait("60s") == "CANCELED"


@pytest.mark.parametrize("posted", [False, True])
def test_a_savepoint_that_is_interrupted_leaves_no_name_taken(
    posted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = run(tmp_path, driver="stepping")
    driver = job.stepper.driver
    apply = Run.apply

    def interrupted(self: Run, action: Callable[[Master], None]) -> None:
        if posted:
            self.master.call(lambda: action(self.master))
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "apply", interrupted)
    with pytest.raises(KeyboardInterrupt):
        job.savepoint("kept")
    monkeypatch.setattr(Run, "apply", apply)
    if posted:  # it is taken all the same
        with pytest.raises(wb.errors.JobError, match="is already being taken"):
            job.savepoint("kept")
        assert driver.run_until(lambda: job.savepoints() == ["kept"])
    else:
        job.stepper.step(50)
        assert job.savepoints() == []
        assert Path(job.savepoint("kept")).name == "kept"
    job.cancel()
    assert job.wait("60s") == "CANCELED"


def test_a_savepoint_that_is_not_deleted_in_time_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = run(tmp_path)
    for name in ("first", "second"):
        job.savepoint(name)
    written = threading.Event()
    monkeypatch.setattr(savepointing, "DELETE_TIMEOUT_S", 0.1)
    job._run.driver.submit(lambda: written.wait(60), lambda result: None)
    with pytest.raises(
        wb.errors.JobError, match="the savepoint 'first' is not deleted yet: a checkpoint may still be in"
    ):
        job.delete_savepoint("first")
    assert job.savepoints() == ["first", "second"]
    written.set()
    monkeypatch.setattr(savepointing, "DELETE_TIMEOUT_S", 60.0)
    job.savepoint("third")
    assert job.savepoints() == ["second", "third"]
    job.cancel()
    assert job.wait("60s") == "CANCELED"
