"""Injected failures: which tasks each affects, and that nothing is lost or counted twice (F2-2, F2-7, F2-16)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.errors import JobError
from workbench.jupyter.verbs.running import run_verb
from workbench.runtime.tasks.execution import Execution

COUNT = 160


def counts(rate: int = 1_000) -> wb.types.Pipeline:
    """Every number once, and how many there are of each remainder."""
    table = pa.table({"n": range(COUNT), "k": [n % 7 for n in range(COUNT)]})
    numbers = wb.Stream.from_table(table, rate=rate).uid("numbers")
    counted = numbers.key_by("k").aggregate(c=wb.count()).uid("count")
    return counted.sink_to(wb.TableSink("counts"))


def check(job: wb.types.Job) -> None:
    """A rolling count gives each key the numbers from 1 on, each once."""
    expected = sorted((k, c) for k in range(7) for c in range(1, len(range(k, COUNT, 7)) + 1))
    table = job.table("counts")
    assert sorted(zip(table["k"].to_pylist(), table["c"].to_pylist(), strict=True)) == expected


@pytest.fixture(params=["memory", "disk"])
def lesson(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[wb.types.Job]:
    job = counts().run(
        "failures",
        driver="stepping",
        buffer_size=10,
        parallelism=3,
        checkpoint_interval="20ms",
        checkpoint_dir=None if request.param == "memory" else tmp_path,
        slots_per_taskmanager=2,
    )
    job.stepper.driver.next_checkpoint()
    yield job
    if not job.over:
        job.cancel()


def running(job: wb.types.Job) -> Execution:
    execution = job.stepper.driver.master.execution
    assert execution is not None
    return execution


def recovered(job: wb.types.Job, before: Execution) -> bool:
    return job.stepper.driver.run_until(lambda: job.state == "RUNNING" and running(job) is not before)


def log(job: wb.types.Job) -> list[str]:
    frame = job.recorder.latest()
    assert frame is not None
    return [event.text for event in frame.events]


@pytest.mark.slow
def test_a_slot_dies_with_all_its_tasks(lesson: wb.types.Job) -> None:
    before = running(lesson)
    lesson.faults.fail(slot="tm-0/slot-1")
    assert lesson.state == "RESTARTING"  # at once: nothing had to be stepped first
    assert "tm-0/slot-1 failed: tm-0/slot-1 was failed on purpose, with numbers[1], count[1]" in log(lesson)
    assert recovered(lesson, before)
    assert lesson.wait("60s") == "FINISHED"
    assert lesson.status()["restarts"] == 1
    check(lesson)


@pytest.mark.slow
def test_a_taskmanager_dies_with_all_its_slots(lesson: wb.types.Job) -> None:
    before = running(lesson)
    lesson.faults.fail(taskmanager="tm-0")
    assert "tm-0 failed: tm-0 was failed on purpose, with numbers[0], count[0], numbers[1], count[1]" in log(lesson)
    assert recovered(lesson, before)
    assert lesson.wait("60s") == "FINISHED"
    check(lesson)


@pytest.mark.slow
def test_another_master_takes_over_from_the_one_that_failed(lesson: wb.types.Job) -> None:
    before, first = running(lesson), lesson.stepper.driver.master
    latest = first.storage.latest()
    assert latest is not None
    lesson.tune(checkpoint_interval="30ms")
    lesson.faults.fail(coordinator=True)
    assert recovered(lesson, before)
    second = lesson.stepper.driver.master
    assert second is not first
    assert second.coordinator is not first.coordinator
    assert running(lesson).number > before.number
    assert f"restored from {latest.place} (checkpoint {latest.checkpoint_id})" in log(lesson)
    assert "the coordinator failed: the coordinator was failed on purpose" in log(lesson)
    assert lesson.status()["checkpoint_interval"] == "30ms"  # what a person has set outlives it
    assert lesson.stepper.driver.next_checkpoint()
    assert lesson.wait("60s") == "FINISHED"
    assert lesson.status()["restarts"] == 1
    check(lesson)


@pytest.mark.slow
def test_the_next_master_waits_for_a_manifest_that_is_on_its_way(lesson: wb.types.Job) -> None:
    """Whoever reads the directory may find that checkpoint: to start from an older one would commit rows twice."""
    first = lesson.stepper.driver.master
    pending = first.coordinator.completed
    lesson.stepper.driver.run_until(lambda: not first.coordinator.settled)
    lesson.faults.fail(coordinator=True)
    lesson.stepper.driver.run_until(lambda: lesson.state == "RUNNING" and lesson.stepper.driver.master is not first)
    assert first.storage.highest_id() > pending
    assert any(text.startswith(f"restored from chk-{first.storage.highest_id():08d}") for text in log(lesson))
    assert lesson.wait("60s") == "FINISHED"
    check(lesson)


def test_a_master_may_fail_again_and_again_and_before_the_first_checkpoint(tmp_path: Path) -> None:
    job = counts().run("again", driver="stepping", buffer_size=10, checkpoint_interval="50ms", checkpoint_dir=tmp_path)
    for _ in range(4):
        before = running(job)
        job.faults.fail(coordinator=True)
        assert recovered(job, before)
        job.stepper.step(30)
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 4
    check(job)


def test_a_strategy_without_restarts_also_holds_for_the_coordinator() -> None:
    job = counts().run("once", driver="stepping", restart=wb.restart.no_restart())
    job.faults.fail(coordinator=True)
    with pytest.raises(JobError, match="the job 'once' failed: the coordinator was failed on purpose"):
        job.wait("60s")


def test_a_live_job_survives_each_kind_of_failure(tmp_path: Path) -> None:
    job = counts(rate=5).run("live", parallelism=2, checkpoint_interval="20ms", checkpoint_dir=tmp_path)
    for restarts, what in enumerate(["count[1]", "tm-0/slot-0", "coordinator", "tm-0", "coordinator"], start=1):
        run_verb(["fail", "live", what])
        waited = 0
        while not (job.status()["restarts"] == restarts and job.state == "RUNNING"):
            job._run.driver.wait_for(job._run.driver.ended, 0.01)
            waited += 1
            assert waited < 6000, (what, job.status())
    job.tune(rate="max")  # until here it was too slow to end meanwhile
    assert job.wait("60s") == "FINISHED"
    check(job)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"slot": "tm-0/slot-7"}, "unknown slot 'tm-0/slot-7'.*Valid: tm-0/slot-0, tm-0/slot-1, tm-1/slot-0"),
        ({"taskmanager": "tm-5"}, "unknown TaskManager 'tm-5'.*Valid: tm-0, tm-1"),
        ({"task": "count[9]"}, r"unknown task 'count\[9\]'.*Valid: count\[0\]"),
        ({}, "say what should fail"),
        ({"task": "count[0]", "coordinator": True}, "say what should fail"),
    ],
)
def test_what_does_not_exist_cannot_fail(lesson: wb.types.Job, what: dict[str, object], message: str) -> None:
    with pytest.raises(JobError, match=message):
        lesson.faults.fail(**what)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", [{"task": "count[1]"}, {"taskmanager": "tm-0"}, {"coordinator": True}])
def test_a_failed_attempt_takes_no_memory(how: dict[str, Any]) -> None:
    """Its tasks, with their state and buffers, are gone without the garbage collector, which may come much later."""
    job = counts(rate=1).run("freed", parallelism=2, checkpoint_interval="20ms")  # it does not end meanwhile
    execution = job._run.driver.master.execution
    assert execution is not None
    parts = [part for task in execution.tasks for part in (task, *(link.operator for link in task.links))]
    alive = [weakref.ref(part) for part in parts]
    gc.disable()
    try:
        del execution, parts
        job.faults.fail(**how)
        while job.status()["restarts"] == 0 or job.state != "RUNNING":
            job._run.driver.wait_for(job._run.driver.ended, 0.01)
        assert [part() for part in alive if part() is not None] == []
    finally:
        gc.enable()
        job.cancel()
        job.wait("60s")
