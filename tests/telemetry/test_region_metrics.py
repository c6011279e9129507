"""The metrics of a job in which only a region restarts: no count decreases, and tasks that do not run have no rate."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import workbench as wb
from workbench.clock import VirtualClock
from workbench.runtime.tasks.load import Load
from workbench.telemetry.frames import Frame
from workbench.telemetry.tasks import TaskSampler


@pytest.fixture
def job(tmp_path: Path) -> wb.types.Job:
    """Two regions that have run for a while: a replay, a thousand records a second, and a table, a hundred."""
    times = pa.array([i * 1_000_000 for i in range(10_000)], pa.timestamp("us"))
    table = pa.table({"n": range(10_000), "e": times, "a": times})
    history = wb.History.from_arrow(table, tmp_path / "log", event_time="e", arrival_time="a", progress=False)
    fast = wb.Stream.replay(history, speed="1000x").uid("fast").key_by("n").aggregate(c=wb.count()).uid("counts")
    slow = wb.Stream.from_table(pa.table({"m": range(10_000)}), rate=100).uid("slow")
    sums = slow.key_by("m").aggregate(s=wb.sum("m")).uid("sums")
    job = (fast.sink_to(wb.TableSink("a")) + sums.sink_to(wb.TableSink("b"))).run(
        "regions",
        driver="stepping",
        checkpoint_interval="500ms",
        buffer_timeout="5ms",
        restart=wb.restart.fixed_delay(1, "1s"),
    )
    run_for(job, 2_000_000)
    return job


def run_for(job: wb.types.Job, us: int) -> None:
    clock = job.stepper.driver.clock
    until_us = clock.now_us() + us
    assert job.stepper.driver.run_until(lambda: clock.now_us() >= until_us)


def latest(job: wb.types.Job) -> Frame:
    frame = job.recorder.latest()
    assert frame is not None
    return frame


@pytest.mark.slow
def test_a_region_that_waits_for_its_restart_leaves_the_rates_and_the_progress_true(job: wb.types.Job) -> None:
    before = latest(job)
    assert before.metrics["numRecordsInPerSecond"] == pytest.approx(1_100, rel=0.1)
    job.fail("fast[0]")
    assert job.stepper.driver.run_until(lambda: job.status()["restart_due"] is not None)
    at = latest(job).sequence
    run_for(job, 900_000)
    down = [frame for frame in job.recorder.frames() if frame.sequence > at]
    assert all({task.name for task in frame.tasks} == {"slow[0]", "sums[0]"} for frame in down)
    for frame in down:
        assert frame.state == "RUNNING"
        assert frame.metrics["numRecordsInPerSecond"] == pytest.approx(100, rel=0.2)
        rates = {channel.source: channel.records_per_second for channel in frame.channels}
        assert rates == {"slow[0]": pytest.approx(100, rel=0.2)}
        own = {operator.uid: operator.metrics["numRecordsInPerSecond"] for operator in frame.operators}
        assert own["fast"] == own["counts"] == own["a"] == 0
        assert [own["slow"], own["sums"]] == pytest.approx([100, 100], rel=0.2)
        assert frame.replay is not None
        assert before.replay is not None
        assert before.replay.records_read <= frame.replay.records_read < 3_000


@pytest.mark.slow
def test_a_region_that_runs_on_keeps_its_rates_when_another_one_is_back(job: wb.types.Job) -> None:
    job.fail("fast[0]")
    assert job.stepper.driver.run_until(lambda: job.status()["restart_due"] is not None)
    assert job.stepper.driver.run_until(lambda: job.status()["restart_due"] is None)
    frame = latest(job)
    tasks = {task.name: task.metrics["numRecordsInPerSecond"] for task in frame.tasks}
    assert tasks["fast[0]"] == tasks["counts[0]"] == 0
    assert tasks["slow[0]"] == pytest.approx(100, rel=0.2)
    rates = {channel.source: channel.records_per_second for channel in frame.channels}
    assert rates == {"fast[0]": 0, "slow[0]": pytest.approx(100, rel=0.2)}


@pytest.mark.slow
def test_a_step_that_turns_out_to_have_been_without_work_makes_no_time_negative(job: wb.types.Job) -> None:
    execution = job.stepper.driver.execution
    assert execution is not None
    task = execution.task("sums[0]")
    assert task is not None
    clock = VirtualClock(0)
    task.load = Load(0)
    sampler = TaskSampler()
    shares = []
    for worked in (False, True, False):
        task.load.begin(clock.now_us())
        for _ in range(2):
            clock.advance_to(clock.now_us() + 100_000)
            sampler.sample(execution, clock.now_us(), {})
        task.load.end(clock.now_us(), worked=worked, held_back=False)
        frames = sampler.sample(execution, clock.now_us(), {})
        metrics = next(frame.metrics for frame in frames if frame.name == task.name)
        shares.append([metrics[f"{name}TimeMsPerSecond"] for name in ("busy", "idle", "backPressured")])
    assert all(share >= 0 for each in shares for share in each if share is not None)
    assert [sum(share for share in each if share is not None) for each in shares] == pytest.approx([1_000] * 3)
