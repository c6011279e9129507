"""A job that stays open after its sources have been read to the end: it recovers, and ends on request."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.api.job.job import Job
from workbench.errors import JobError, SettingError


def held(name: str, **options: Any) -> Job:
    """A job of 1,000 numbers that has read all of them."""
    numbers = wb.Stream.from_table(pa.table({"k": [0, 1] * 500, "t": range(1_000)}), event_time="t")
    counts = numbers.key_by("k").window(wb.tumbling("100us")).aggregate(n=wb.count())
    job = counts.sink_to(wb.TableSink("counts")).run(name, at_end="hold", parallelism=2, **options)
    until(lambda: job._run.master.held_open)
    return job


def counted(job: Job) -> int:
    return sum(job.table("counts")["n"].to_pylist())


def test_it_recovers_takes_checkpoints_and_ends_when_it_is_told_to() -> None:
    job = held("held")
    assert (job.state, counted(job)) == ("RUNNING", 0)  # nothing is committed without a checkpoint
    job.checkpoint()
    until(lambda: counted(job) == 1_000)  # and its last windows have fired
    job.fail(task="aggregate[1]")
    until(lambda: job.status()["restarts"] == 1 and job._run.master.held_open)
    until(lambda: "stays open: at_end = finish ends it" in job.recorder.latest().events[-1].text)
    with pytest.raises(JobError, match=r"still RUNNING after 10ms: all input has been read, and at_end is 'hold'"):
        job.wait("10ms")
    job.tune(at_end="finish")
    assert job.wait("60s") == "FINISHED"
    assert counted(job) == 1_000


def test_one_that_fails_after_it_was_told_to_end_ends_all_the_same() -> None:
    job = held("told", checkpoint_interval="50ms")
    job.faults.stall("counts")
    job.tune(at_end="finish")
    job.fail(task="counts[0]")
    job.faults.stall("counts", False)
    assert job.wait("60s") == "FINISHED"
    assert counted(job) == 1_000


def test_it_can_be_told_before_it_has_read_everything() -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(1_000)}), rate=10)
    job = numbers.sink_to(wb.TableSink("numbers")).run("early", at_end="hold")
    job.tune(at_end="finish", rate="max")
    assert job.wait("60s") == "FINISHED"


def test_it_can_be_stopped() -> None:
    job = held("stopped")
    job.stop()
    assert counted(job) == 1_000


def test_another_word_is_refused() -> None:
    numbers = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink())
    with pytest.raises(SettingError, match=r"unknown at_end 'loop'.*finish, hold"):
        numbers.run("refused", at_end="loop")
