"""Jobs that advance one step at a time."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.api.job.job import Job
from workbench.errors import CheckpointError, JobError, SettingError, WorkbenchError

SECOND = 1_000_000


@pytest.fixture
def lesson() -> Iterator[Job]:
    """Six records, one to a buffer; windows of 2 s; two subtasks behind a hash exchange."""
    table = pa.table({"key": ["a", "b", "a", "b", "a", "b"], "t": [0, 1, 2, 3, 4, 5]})
    table = table.set_column(1, "t", pa.array([n * SECOND for n in range(6)], pa.timestamp("us")))
    stream = wb.Stream.from_table(table, event_time="t").with_parallelism(1)
    counts = stream.key_by("key").window(wb.tumbling("2s")).aggregate(n=wb.count())
    pipeline = counts.sink_to(wb.TableSink("counts"))
    job = pipeline.run(
        "lesson", driver="stepping", parallelism=2, buffer_size=1, buffer_timeout="0ms", checkpoint_interval="1h"
    )
    yield job
    if not job.over:
        job.cancel()
        job.wait()


def tasks(job: Job) -> dict[str, dict[str, object]]:
    return {row["task"]: row for row in job.metrics()}


def test_nothing_happens_by_itself(lesson: Job) -> None:
    before = threading.active_count()
    assert lesson.state == "RUNNING"
    assert tasks(lesson)["table[0]"]["numRecordsOut"] == 0
    time_us = lesson.stepper.driver.clock.now_us()
    lesson.status()
    assert lesson.stepper.driver.clock.now_us() == time_us
    assert threading.active_count() == before


def test_one_step_moves_one_record(lesson: Job) -> None:
    [step] = lesson.stepper.step()
    assert (step.actor, step.outcome) == ("table[0]", "progressed")
    assert str(step) == "table[0]: progressed"
    assert tasks(lesson)["table[0]"]["numRecordsOut"] == 1
    assert sum(int(str(row["numRecordsIn"])) for name, row in tasks(lesson).items() if "aggregate" in name) == 0


def test_next_buffer_stops_at_the_receiver(lesson: Job) -> None:
    assert lesson.stepper.driver.next_buffer()
    received = {name: row["numRecordsIn"] for name, row in tasks(lesson).items() if "aggregate" in name}
    assert sorted(map(str, received.values())) == ["0", "1"]


def test_watermark_moves_task_by_task(lesson: Job) -> None:
    driver = lesson.stepper.driver
    seen = []
    while driver.next_watermark():
        seen.append([row["currentOutputWatermark"] for row in lesson.metrics()])
    # The source's first watermark is one microsecond behind its first record, at time 0.
    assert seen[0] == [-1, None, None]
    assert seen[-1] == [2**63 - 1] * 3
    changes = [sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairwise(seen)]
    assert set(changes) == {1}


def test_barrier_is_followed_to_its_checkpoint(lesson: Job) -> None:
    driver = lesson.stepper.driver
    lesson.stepper.step(2)
    lesson.checkpoint()
    assert driver.next_barrier()
    frame = lesson.recorder.latest()
    assert frame is not None
    assert [channel.barriers for channel in frame.channels] == [(1,), (1,)]
    assert driver.next_checkpoint()
    [checkpoint] = lesson.checkpoints()
    assert (checkpoint.id, checkpoint.state, checkpoint.acknowledged) == (1, "COMPLETED", 3)


def test_step_task_takes_the_named_one(lesson: Job) -> None:
    assert lesson.stepper.driver.step_task("aggregate[1]").outcome == "no input"
    assert lesson.stepper.driver.step_task("table[0]").actor == "table[0]"
    with pytest.raises(JobError, match=r"unknown task 'table\[1\]'"):
        lesson.stepper.driver.step_task("table[1]")


def test_run_until_gives_up_at_its_limit(lesson: Job) -> None:
    assert not lesson.stepper.driver.run_until(lambda: False, limit=5)
    assert lesson.stepper.driver.run_until(lambda: lesson.state == "FINISHED")


def test_waiting_runs_the_job_to_its_end(lesson: Job) -> None:
    assert lesson.wait() == "FINISHED"
    rows = lesson.table("counts").select(["key", "window_start", "n"]).to_pylist()
    counted = sorted((row["key"], row["window_start"].second, row["n"]) for row in rows)
    assert counted == [(key, start, 1) for key in "ab" for start in (0, 2, 4)]
    assert lesson.stepper.step(3) == []
    with pytest.raises(JobError, match="has ended"):
        lesson.checkpoint()


def test_commands_are_in_force_at_once(lesson: Job) -> None:
    assert lesson.tune(buffer_timeout="5ms", checkpoint_interval="disabled")["buffer_timeout"] == "5ms"
    lesson.pause()
    lesson.stepper.driver.run_until(lambda: False, limit=200)
    assert lesson.status()["paused"]
    assert lesson.stepper.step() == []  # what was in flight has come through; nothing else can happen
    lesson.resume()
    assert lesson.wait() == "FINISHED"


def test_a_failed_task_recovers_in_steps(lesson: Job) -> None:
    driver = lesson.stepper.driver
    lesson.checkpoint()
    assert driver.next_checkpoint()
    lesson.fail("aggregate[1]")
    assert driver.run_until(lambda: lesson.state == "RESTARTING")
    assert driver.run_until(lambda: lesson.state == "RUNNING")
    assert lesson.wait() == "FINISHED"
    assert lesson.status()["restarts"] == 1
    assert lesson.table("counts").num_rows == 6


def test_a_dead_task_takes_no_steps(lesson: Job) -> None:
    lesson.fail("aggregate[1]")
    assert lesson.stepper.driver.step_task("aggregate[1]").outcome == "failed"
    with pytest.raises(JobError, match="has ended and takes no more steps"):
        lesson.stepper.driver.step_task("aggregate[1]")


def test_savepoint_is_stepped_to(lesson: Job) -> None:
    assert lesson.savepoint("here") == ""
    assert lesson.checkpoints()[-1].kind == "savepoint"


def test_a_savepoint_that_comes_too_late_is_refused_at_once(lesson: Job) -> None:
    lesson.stop(wait=False)  # asks for the last checkpoint
    with pytest.raises(JobError, match=r"was not taken: the job ended first \(FINISHED\)"):
        lesson.savepoint("late")


def test_a_stopped_job_that_read_the_rest_meanwhile_is_not_finished(lesson: Job) -> None:
    lesson.stepper.step(2)
    lesson.stop(wait=False)
    assert lesson.stepper.driver.next_barrier()
    for _ in range(20):
        lesson.stepper.driver.step_task("table[0]")
    assert lesson.wait() == "FINISHED"
    assert tasks(lesson)["table[0]"]["currentOutputWatermark"] == 2**63 - 1  # it has read everything


def test_every_step_is_a_frame(lesson: Job) -> None:
    frames = len(lesson.recorder.frames())
    lesson.stepper.step(4)
    assert len(lesson.recorder.frames()) == frames + 4


def test_wait_with_a_timeout_counts_the_clock_of_the_job() -> None:
    stream = wb.Stream.from_table(pa.table({"n": [1, 2, 3]}), rate=1.0)
    job = stream.sink_to(wb.TableSink("slow")).run("slow", driver="stepping", checkpoint_interval=None)
    with pytest.raises(JobError, match="still RUNNING after 1s"):
        job.wait("1s")
    assert job.wait("1h") == "FINISHED"


def test_a_live_job_cannot_be_stepped() -> None:
    job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.TableSink("one")).run("one")
    with pytest.raises(JobError, match="runs live and cannot be stepped"):
        job.stepper.step()
    assert job.wait("120s") == "FINISHED"


def numbers(folder: Path, sink: wb.TableSink | wb.ParquetSink, **start: object) -> Job:
    """Forty numbers, one to a step, with checkpoints in a folder."""
    pipeline = wb.Stream.from_table(pa.table({"n": list(range(40))})).sink_to(sink)
    return pipeline.run(
        "numbers", driver="stepping", buffer_size=1, checkpoint_interval=None, checkpoint_dir=folder, **start
    )


def savepoint_then_checkpoint(job: Job) -> None:
    job.stepper.step(5)
    job.savepoint("early")
    job.stepper.step(5)
    job.checkpoint()
    assert job.stepper.driver.next_checkpoint()
    job.stepper.step(2)  # the sink commits
    job.cancel()
    assert job.wait() == "CANCELED"


def test_a_job_taken_back_to_a_savepoint_is_resumed_from_there(tmp_path: Path) -> None:
    sink = wb.TableSink("numbers")
    savepoint_then_checkpoint(numbers(tmp_path, sink))
    back = numbers(tmp_path, sink, restore="early")
    rows = back.table().num_rows
    assert rows < 10
    back.cancel()  # before a checkpoint of its own, as if the process had been killed
    back.wait()
    resumed = numbers(tmp_path, sink, resume=True)
    assert resumed.table().num_rows == rows
    assert resumed.wait() == "FINISHED"
    assert sorted(resumed.table()["n"].to_pylist()) == list(range(40))


def test_a_restore_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    sink = wb.ParquetSink(tmp_path / "out")
    savepoint_then_checkpoint(numbers(tmp_path / "state", sink))
    with pytest.raises(WorkbenchError, match="would be duplicated"):
        numbers(tmp_path / "state", sink, restore="early")
    resumed = numbers(tmp_path / "state", sink, resume=True)
    assert resumed.wait() == "FINISHED"
    parts = pa.concat_tables([pq.read_table(path) for path in (tmp_path / "out").glob("part-*.parquet")])
    assert sorted(parts["n"].to_pylist()) == list(range(40))


def test_a_job_taken_back_to_a_savepoint_that_is_gone_says_so(tmp_path: Path) -> None:
    sink = wb.TableSink("numbers")
    savepoint_then_checkpoint(numbers(tmp_path, sink))
    back = numbers(tmp_path, sink, restore="early")
    back.cancel()
    back.wait()
    shutil.rmtree(tmp_path / "savepoints" / "early")
    with pytest.raises(CheckpointError, match="restored from savepoints/early, which is missing"):
        numbers(tmp_path, sink, resume=True)


def test_an_unknown_driver_is_refused() -> None:
    pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.TableSink("one"))
    with pytest.raises(SettingError, match="unknown driver 'walking'"):
        pipeline.run("one", driver="walking")  # type: ignore[arg-type]


@pytest.mark.slow
def test_who_waits_gets_no_further_in_time_than_asked(lesson: Job) -> None:
    """A record an hour: time jumps from one to the next, and over the end of the waiting."""
    numbers = wb.Stream.from_table(pa.table({"n": range(9)}), rate=1 / 3_600).sink_to(wb.TableSink("hourly"))
    job = numbers.run("hourly", driver="stepping", checkpoint_interval=None, buffer_timeout="0ms")
    clock = job.stepper.driver.clock
    begin_us = clock.now_us()
    for seconds in (60, 120):
        with pytest.raises(JobError, match="is still RUNNING after 60s"):
            job.wait("60s")
        assert clock.now_us() - begin_us == seconds * SECOND
    taken = job.stepper.driver.taken
    job.stepper.step(3)
    job.stepper.back(3)  # the same moments again
    assert job.stepper.driver.taken == taken
    assert job.stepper.driver.clock.now_us() - begin_us == 120 * SECOND
    with pytest.raises(JobError, match="is still RUNNING after 3h"):
        job.wait("3h")
    assert job.stepper.driver.clock.now_us() - begin_us == (120 + 3 * 3_600) * SECOND
    assert job.wait() == "FINISHED"
