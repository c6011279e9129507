"""Operators that are slowed down or stalled: what waits, what continues, and what the metrics show."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

import workbench as wb
from workbench.errors import JobError, SettingError
from workbench.jupyter.verbs.running import run_verb

SETTINGS = {"buffer_size": 1, "buffer_timeout": "0ms", "driver": "stepping"}


def stepping(name, rows=12, **settings):
    table = pa.table({"k": [row % 3 for row in range(rows)], "t": range(rows)})
    counts = wb.Stream.from_table(table, event_time="t").key_by("k").aggregate(n=wb.count())
    pipeline = counts.rebalance().sink_to(wb.TableSink("counts"))
    return pipeline.run(name, **{**SETTINGS, "checkpoint_interval": None, **settings})


def of(job, task, metric):
    return next(t for t in job.recorder.latest().tasks if t.name == task).metrics[metric]


def until(job, condition):
    assert job.stepper.driver.run_until(condition)


def after(job, seconds):
    """Take steps until so much of the job's time has passed since its start."""
    until(job, lambda: job.stepper.driver.clock.now_us() - job.recorder.latest().started_us >= seconds * 1e6)


def test_a_slowed_operator_takes_one_buffer_in_each_rest():
    job = stepping("slowed")
    job.faults.slow_down("aggregate", "5ms")
    took = []
    seen = 0
    while not job.over:
        job.stepper.step()
        frame = job.recorder.latest()
        now = 0 if frame is None or not frame.tasks else of(job, "aggregate[0]", "numRecordsIn")
        if now > seen:
            took.append(job.stepper.driver.clock.now_us())
            seen = now
    assert seen == 12
    gaps = [later - earlier for earlier, later in pairwise(took)]
    assert min(gaps) >= 5_000
    assert sum(gaps) == 11 * 5_000, "nothing else makes it wait"


def test_the_rest_counts_as_busy_and_those_in_front_are_back_pressured():
    job = stepping("rest", rows=200)
    job.faults.slow_down("aggregate", "100ms")
    after(job, 8)
    frame = job.recorder.latest()
    assert of(job, "aggregate[0]", "busyTimeMsPerSecond") == pytest.approx(1000, abs=1)
    assert of(job, "table[0]", "backPressuredTimeMsPerSecond") == pytest.approx(1000, abs=1)
    assert of(job, "aggregate[0]", "isBackPressured") is False
    assert frame.backpressure.startswith("aggregate is the cause (100 % busy): table is back-pressured")
    job.cancel()


def test_it_may_be_made_faster_in_the_middle_of_a_rest():
    job = stepping("faster")
    job.faults.slow_down("aggregate", "60s")
    after(job, 120)
    job.faults.slow_down("aggregate", "0ms")
    before = job.stepper.driver.clock.now_us()
    until(job, lambda: job.over)
    assert job.stepper.driver.clock.now_us() - before < 60_000_000
    assert job.table().num_rows == 12
    assert "slow_down" not in job.status()


def test_a_stalled_sink_takes_nothing_until_it_is_let_go():
    job = stepping("stalled", checkpoint_interval="1s")
    job.faults.stall("counts")
    after(job, 5)
    assert of(job, "counts[0]", "numRecordsIn") == 0
    assert of(job, "counts[0]", "busyTimeMsPerSecond") == 1000
    (checkpoint,) = job.checkpoints()
    assert checkpoint.state == "IN_PROGRESS", "its barrier waits behind the records"
    assert {task.task for task in checkpoint.subtasks if not task.acknowledged} >= {"counts[0]"}
    job.faults.stall("counts", False)
    until(job, lambda: job.over)
    assert job.state == "FINISHED"
    assert sorted(job.table()["n"].to_pylist()) == sorted([1, 2, 3, 4] * 3)


def test_a_stalled_sink_that_is_chained_with_its_source_still_lets_checkpoints_through():
    table = pa.table({"n": range(10)})
    job = wb.Stream.from_table(table).sink_to(wb.TableSink("n")).run("chained", checkpoint_interval="1s", **SETTINGS)
    job.faults.stall("n")
    until(job, lambda: any(c.state == "COMPLETED" for c in job.checkpoints()))
    assert job.table().num_rows == 0
    job.faults.stall("n", False)
    until(job, lambda: job.over)
    assert job.table().num_rows == 10


def test_a_stall_outlives_a_failure():
    job = stepping("outlives", checkpoint_interval="1s")
    job.faults.stall("counts")
    until(job, lambda: job.state == "RUNNING")
    job.fail("aggregate[0]")
    until(job, lambda: job.recorder.latest().metrics["numRestarts"] == 1 and job.state == "RUNNING")
    after(job, 9)
    assert of(job, "counts[0]", "numRecordsIn") == 0
    job.faults.stall("counts", False)
    until(job, lambda: job.over)
    assert job.table().num_rows == 12


def test_bad_values_are_refused_in_a_sentence():
    job = stepping("refused")
    with pytest.raises(JobError, match="operator 'agregate'"):
        job.faults.slow_down("agregate", "5ms")
    with pytest.raises(SettingError, match="slow_down is '2min': an operator rests at most"):
        job.faults.slow_down("aggregate", "2min")
    with pytest.raises(SettingError, match="slow_down"):
        job.faults.slow_down("aggregate", "soon")
    with pytest.raises(JobError, match="operator 'sink'"):
        job.faults.stall("sink")
    job.cancel()
    job.stepper.driver.run_until(lambda: job.over)
    with pytest.raises(JobError, match="has ended"):
        job.faults.stall("counts")


def test_the_magics_do_the_same():
    job = stepping("magics")
    run_verb(["slow-down", "magics", "aggregate", "5ms"])
    run_verb(["stall", "counts"])
    assert (job.status()["slow_down"], job.status()["stall"]) == ("aggregate:5ms", "counts")
    run_verb(["slow-down", "aggregate", "0ms"])
    run_verb(["stall", "magics", "counts", "off"])
    assert "slow_down" not in job.status()
    assert "stall" not in job.status()
    with pytest.raises(SettingError, match="'on' or 'off', not 'maybe'"):
        run_verb(["stall", "magics", "counts", "maybe"])
    assert run_verb(["savepoints", "magics"]) == []
    job.cancel()


def test_a_sink_that_is_called_like_its_job_is_stalled_and_let_go():
    """Which is what ``%%stream counts`` makes of a stream without a sink."""
    job = stepping("counts")
    run_verb(["stall", "counts", "on"])
    assert job.status()["stall"] == "counts"
    run_verb(["stall", "counts", "off"])
    assert "stall" not in job.status()
    run_verb(["stall", "counts", "aggregate"])
    run_verb(["stall", "counts", "counts", "on"])
    assert job.status()["stall"] == "aggregate, counts"
    job.cancel()


def test_a_live_job_with_a_slow_operator_finishes_with_the_same_result():
    table = pa.table({"k": [row % 3 for row in range(3000)], "t": range(3000)})
    counts = wb.Stream.from_table(table, event_time="t").key_by("k").aggregate(n=wb.count())
    job = (
        counts.rebalance()
        .sink_to(wb.TableSink("counts", upsert_key=["k"]))
        .run("slow-live", buffer_size=100, checkpoint_interval="50ms")
    )
    job.faults.slow_down("aggregate", "1ms")
    job.faults.stall("counts")
    job.faults.stall("counts", False)
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table().to_pylist(), key=lambda row: row["k"]) == [{"k": k, "n": 1000} for k in range(3)]
