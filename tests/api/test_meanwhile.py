"""A request to a job takes effect or is refused, even if something fails at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb

NUMBERS = pa.table({"n": range(100_000), "k": [n % 5 for n in range(100_000)]})


@pytest.fixture
def job(tmp_path: Path) -> Iterator[wb.types.Job]:
    counts = wb.Stream.from_table(NUMBERS, rate=5_000).key_by("k").aggregate(n=wb.count())
    settings: dict[str, Any] = {"checkpoint_dir": tmp_path / "c", "checkpoint_interval": "disabled"}
    job = counts.sink_to(wb.TableSink("counts")).run("meanwhile", restart=wb.restart.fixed_delay(9, "0ms"), **settings)
    until(lambda: job.status()["records_out"] >= 300)
    yield job
    if not job.over:
        job.cancel()
        job.wait("60s")


def stop(job: wb.types.Job) -> None:
    job.stop(wait=False)
    assert job.wait("20s") in ("FINISHED", "CANCELED")


def cancel(job: wb.types.Job) -> None:
    job.cancel()
    assert job.wait("20s") == "CANCELED"


def pause(job: wb.types.Job) -> None:
    job.pause()
    assert job._run.master.paused


def rescale(job: wb.types.Job) -> None:
    assert job.rescale(2, timeout="20s")["parallelism"] == 2


@pytest.mark.parametrize("action", [stop, cancel, pause, rescale])
def test_what_reaches_a_master_behind_its_end_is_done_by_its_successor(
    job: wb.types.Job, action: Callable[[wb.types.Job], None]
) -> None:
    old, caller = job._run.master, threading.current_thread()
    call = old.call

    def late_call(command: Callable[[], None]) -> None:
        if threading.current_thread() is caller and failed:
            until(lambda: job._run.master is not old and job.state == "RUNNING")
        call(command)

    failed = False
    old.call = late_call  # type: ignore[method-assign]
    holds = threading.Event()
    hand_over = job._run.hand_over

    def hand_over_later(master: Any) -> None:
        holds.wait(10)
        hand_over(master)

    job._run.hand_over = hand_over_later  # type: ignore[method-assign]
    job.faults.fail(coordinator=True)
    failed = True
    threading.Timer(0.2, holds.set).start()
    action(job)


@pytest.mark.parametrize("what", ["aggregate[0]", "coordinator"])
def test_a_savepoint_that_becomes_complete_behind_a_failure_is_told_at_once(job: wb.types.Job, what: str) -> None:
    storage = job._run.master.storage
    complete = storage.complete

    def fail_then_complete(place: str, manifest: Any) -> None:
        if what == "coordinator":
            job.faults.fail(coordinator=True)
        else:
            job.fail(what)
            until(lambda: job.status()["failure"] is not None)
        complete(place, manifest)

    storage.complete = fail_then_complete  # type: ignore[method-assign]
    began = monotonic()
    assert Path(job.savepoint("late", timeout="15s")).is_dir()
    assert monotonic() - began < 10  # not when the time is over
    storage.complete = complete  # type: ignore[method-assign]


@pytest.mark.parametrize("action", ["stop", "cancel"])
def test_what_ends_before_the_successor_of_its_coordinator_begins_stays_ended(job: wb.types.Job, action: str) -> None:
    hand_over = job._run.hand_over

    def end_before_the_start(master: Any) -> None:
        getattr(job, action)()
        hand_over(master)

    job._run.hand_over = end_before_the_start  # type: ignore[method-assign]
    job.faults.fail(coordinator=True)
    assert job.wait("10s") == "CANCELED"
    sleep(0.1)
    assert job.state == "CANCELED"
