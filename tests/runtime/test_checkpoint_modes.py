"""Checkpoint modes of whole jobs, one step at a time: the content of the checkpoint, and results after a failure."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job.job import Job
from workbench.api.running.pipeline import Pipeline
from workbench.errors import CheckpointError, JobError, SettingError
from workbench.telemetry.checkpoint_frames import CheckpointFrame, SubtaskCheckpointFrame

LEFT, RIGHT = list(range(1, 61)), list(range(101, 161))
TOTALS = {parity: sum(n for n in [*LEFT, *RIGHT] if n % 2 == parity) for parity in (0, 1)}


def two_numbers() -> Pipeline:
    """Two sources of sixty numbers each, in two tasks, summed up by parity in one (F2-7)."""
    left = wb.Stream.from_table(pa.table({"n": LEFT})).with_parallelism(1)
    right = wb.Stream.from_table(pa.table({"n": RIGHT})).with_parallelism(1)
    both = left.union(right).with_columns(parity=wb.col("n") % 2)
    sums = both.key_by("parity").aggregate(total=wb.sum("n"), count=wb.count())
    return sums.sink_to(wb.TableSink("sums", upsert_key=["parity"]))


def stepped(pipeline: Pipeline, name: str = "modes", **settings: Any) -> Job:
    defaults: dict[str, Any] = {"buffer_size": 1, "buffer_timeout": "0ms", "checkpoint_interval": None}
    return pipeline.run(name, driver="stepping", **{**defaults, **settings})


def totals(job: Job) -> dict[int, int]:
    return {row["parity"]: row["total"] for row in job.table("sums").to_pylist()}


def tasks(job: Job) -> list[str]:
    return [str(row["task"]) for row in job.metrics()]


def last(job: Job) -> CheckpointFrame:
    return job.checkpoints()[-1]


def part(job: Job, task: str) -> SubtaskCheckpointFrame:
    return next(item for item in last(job).subtasks if item.task.startswith(task))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["exactly-once", "unaligned", "stop-the-world"])
@pytest.mark.parametrize("moment", [3, 12, 40, 90])
def test_a_failure_counts_nothing_twice(mode: Any, moment: int) -> None:
    job = stepped(two_numbers(), checkpoint_mode=mode)
    job.stepper.step(moment)
    job.checkpoint()
    assert job.stepper.driver.next_checkpoint()
    assert last(job).mode == mode
    job.stepper.step(7)
    job.fail(tasks(job)[-1])
    assert job.wait() == "FINISHED"
    assert job.status()["restarts"] == 1
    assert totals(job) == TOTALS
    assert job.audit() == []


@pytest.mark.slow
def test_at_least_once_counts_twice_what_came_too_early_and_says_how_much() -> None:
    job = stepped(two_numbers(), checkpoint_mode="at-least-once")
    step = job.stepper.driver.step_task
    job.checkpoint()
    for _ in range(3):
        step("table[0]")  # the barrier, 1, 2 and 3
    while received(job, "union[0]") < 3:
        step("union[0]")  # takes them all: nothing is held back for the other source
    assert job.stepper.driver.next_checkpoint()
    assert part(job, "union").early_records == 3
    before = job.audit()
    job.fail("union[0]")
    assert job.stepper.driver.run_until(lambda: job.status()["restarts"] == 1 and job.state == "RUNNING")
    assert (before, [(row["task"], row["records"]) for row in job.audit()]) == ([], [("union[0]", 3)])
    assert job.wait() == "FINISHED"
    # They had gone on to the sums before the barrier did, so they are in those of the checkpoint; and they came again,
    # because their source had sent its barrier before them.
    assert totals(job) == {0: TOTALS[0] + 2, 1: TOTALS[1] + 1 + 3}


def test_what_goes_back_to_one_checkpoint_several_times_is_counted_twice_and_not_thrice() -> None:
    job = stepped(two_numbers(), checkpoint_mode="at-least-once")
    step = job.stepper.driver.step_task
    job.checkpoint()
    for _ in range(3):
        step("table[0]")
    while received(job, "union[0]") < 3:
        step("union[0]")
    assert job.stepper.driver.next_checkpoint()
    for _ in range(3):
        job.fail("union[0]")
        assert job.stepper.driver.run_until(lambda: job.state == "RESTARTING")
        assert job.stepper.driver.run_until(lambda: job.state == "RUNNING")
        job.stepper.step(20)
    assert job.status()["restarts"] == 3
    assert job.wait() == "FINISHED"
    assert totals(job) == {0: TOTALS[0] + 2, 1: TOTALS[1] + 1 + 3}  # 1, 2 and 3 again, once
    assert [(row["task"], row["records"]) for row in job.audit()] == [("union[0]", 3)]


def test_at_least_once_without_a_failure_is_exact() -> None:
    job = stepped(two_numbers(), checkpoint_mode="at-least-once", checkpoint_interval="1ms", guarantee="at-least-once")
    assert job.wait() == "FINISHED"
    assert (totals(job), job.audit()) == (TOTALS, [])


def test_an_unaligned_barrier_overtakes_and_what_it_overtakes_is_kept() -> None:
    job = stepped(two_numbers(), checkpoint_mode="unaligned")
    step = job.stepper.driver.step_task
    for _ in range(3):
        step("table[0]")  # 1, 2, 3 are in flight
    job.checkpoint()
    step("table[0]")  # the barrier goes before them, 4 behind
    frame = job.recorder.latest()
    assert frame is not None
    assert [channel.barriers for channel in frame.channels] == [(1,), (), ()]
    step("union[0]")
    assert received(job, "union[0]") == 0  # the first thing that it took was the barrier
    step("union[0]")
    assert received(job, "union[0]") == 1  # and it goes on; what it takes from now on is logged
    step("table-2[0]")
    step("union[0]")
    assert job.stepper.driver.next_checkpoint()
    assert (last(job).mode, last(job).unaligned) == ("unaligned", True)
    assert [part(job, task).persisted_records for task in ("table[", "table-2[", "union")] == [0, 0, 3]
    assert part(job, "union").persisted_bytes == last(job).persisted_bytes == 3 * 8
    assert (part(job, "union").processed_records, part(job, "union").processed_bytes) == (1, 8)
    assert last(job).processed_bytes == 8, "the sources take in nothing, and the sums took their one barrier"
    job.fail("union[0]")
    assert job.wait() == "FINISHED"
    assert totals(job) == TOTALS


def received(job: Job, task: str) -> int:
    return int(next(row["numRecordsIn"] for row in job.metrics() if row["task"] == task))


def in_flight_until_stalled(job: Job) -> None:
    """Nothing can move any more, because the sums take nothing."""
    job.faults.stall("aggregate")
    assert job.stepper.driver.run_until(lambda: job.stepper.step() == [])


@pytest.mark.slow
def test_under_backpressure_only_an_unaligned_checkpoint_completes() -> None:
    aligned = stepped(two_numbers(), "aligned")
    in_flight_until_stalled(aligned)
    aligned.checkpoint()
    assert not aligned.stepper.driver.next_checkpoint()
    aligned.faults.stall("aggregate", stalled=False)
    assert aligned.wait() == "FINISHED"

    job = stepped(two_numbers(), checkpoint_mode="unaligned")
    in_flight_until_stalled(job)
    job.checkpoint()
    assert job.stepper.driver.next_checkpoint()
    assert last(job).duration_ms == 0.0  # in the job's time; nothing had to move for it
    kept = sum(task.persisted_records for task in last(job).subtasks)
    assert kept == sum(channel.queued_records for channel in frame_of(job).channels) > 4
    job.fail("aggregate[0]")
    job.faults.stall("aggregate", stalled=False)
    assert job.wait() == "FINISHED"
    assert totals(job) == TOTALS


def frame_of(job: Job) -> Any:
    frame = job.recorder.latest()
    assert frame is not None
    return frame


def test_an_aligned_checkpoint_goes_over_to_unaligned_after_its_timeout() -> None:
    job = stepped(two_numbers(), aligned_checkpoint_timeout="2s")
    in_flight_until_stalled(job)
    job.checkpoint()
    assert job.stepper.driver.next_checkpoint()
    assert (last(job).mode, last(job).unaligned, last(job).duration_ms) == ("exactly-once", True, 2_000.0)
    assert last(job).persisted_bytes > 0
    job.fail("union[0]")
    job.faults.stall("aggregate", stalled=False)
    assert job.wait() == "FINISHED"
    assert totals(job) == TOTALS


def test_an_aligned_checkpoint_that_is_quick_stays_aligned() -> None:
    job = stepped(two_numbers(), aligned_checkpoint_timeout="2s")
    job.stepper.step(8)
    job.checkpoint()
    assert job.stepper.driver.next_checkpoint()
    assert (last(job).unaligned, last(job).persisted_bytes) == (False, 0)
    assert job.wait() == "FINISHED"
    assert totals(job) == TOTALS


def test_under_stop_the_world_nothing_is_read_until_the_checkpoint_is_complete() -> None:
    job = stepped(two_numbers(), checkpoint_mode="stop-the-world")
    job.stepper.step(6)
    job.checkpoint()
    job.stepper.driver.step_task("table[0]")
    job.stepper.driver.step_task("table-2[0]")
    read = [row["numRecordsOut"] for row in job.metrics()][:2]
    while last(job).state == "IN_PROGRESS":
        job.stepper.step()
        assert [row["numRecordsOut"] for row in job.metrics()][:2] == read
    assert last(job).state == "COMPLETED"
    assert last(job).stall_ms == 0.0  # virtual time did not pass
    assert [channel.queued_records for channel in frame_of(job).channels] == [0, 0, 0]
    assert job.wait() == "FINISHED"
    assert totals(job) == TOTALS


def test_savepoints_and_the_last_checkpoint_are_aligned_in_every_mode() -> None:
    job = stepped(two_numbers(), checkpoint_mode="unaligned")
    job.stepper.step(9)
    job.savepoint("here")
    assert (last(job).kind, last(job).mode, last(job).unaligned) == ("savepoint", "exactly-once", False)
    assert job.wait() == "FINISHED"
    assert (last(job).kind, last(job).unaligned) == ("final", False)
    assert totals(job) == TOTALS


def test_the_mode_is_tuned_between_two_checkpoints() -> None:
    job = stepped(two_numbers())
    seen = []
    for mode in ("unaligned", "at-least-once", "stop-the-world", "exactly-once"):
        job.stepper.step(2)
        assert job.tune(checkpoint_mode=mode)["checkpoint_mode"] == mode
        job.checkpoint()
        assert job.stepper.driver.next_checkpoint()
        seen.append((last(job).mode, last(job).unaligned))
    assert seen == [
        ("unaligned", True),
        ("at-least-once", False),
        ("stop-the-world", False),
        ("exactly-once", False),
    ]
    assert job.wait() == "FINISHED"
    assert totals(job) == TOTALS


# at another parallelism ------------------------------------------------------------------------------------------


def counted(parallelism: int, folder: Path, **settings: Any) -> Job:
    """Numbers in order, by key, through two exchanges: the sink keeps the latest count of each key."""
    numbers = pa.table({"n": list(range(210)), "key": [f"k{n % 7}" for n in range(210)]})
    stream = wb.Stream.from_table(numbers).with_parallelism(1).filter("n >= 0").rebalance().with_columns(m=wb.col("n"))
    counts = stream.key_by("key").aggregate(count=wb.count(), total=wb.sum("m"))
    pipeline = counts.sink_to(wb.TableSink("counts", upsert_key=["key"]))
    return stepped(pipeline, "counted", parallelism=parallelism, checkpoint_dir=folder, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1), (2, 2), (1, 2)])
@pytest.mark.parametrize("stalled", ["aggregate", "with_columns"])
def test_what_was_in_flight_goes_on_at_another_parallelism(
    tmp_path: Path, before: int, after: int, stalled: str
) -> None:
    job = counted(before, tmp_path, checkpoint_mode="unaligned")
    job.stepper.step(15)
    job.faults.stall(stalled)
    assert job.stepper.driver.run_until(lambda: job.stepper.step() == [])
    job.checkpoint()
    assert job.stepper.driver.next_checkpoint()
    kept = sum(task.persisted_records for task in last(job).subtasks)
    shown = wb.Snapshot.open(last(job).path).in_flight
    assert sum(piece["records"].num_rows for piece in shown) == kept > 0
    job.cancel()
    job.wait()
    again = counted(after, tmp_path, resume=True)
    assert again.wait() == "FINISHED"
    found = {row["key"]: (row["count"], row["total"]) for row in again.table("counts").to_pylist()}
    assert found == {f"k{key}": (len(range(key, 210, 7)), sum(range(key, 210, 7))) for key in range(7)}


def follow(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    return {**now, "gaps": before["gaps"] + (now["count"] != before["count"] + 1)}


def newest(parallelism: int, folder: Path, **settings: Any) -> Job:
    """Counts of each key, and behind another exchange how often one does not follow the other."""
    numbers = pa.table({"key": [f"k{n % 5}" for n in range(60)]})
    counts = wb.Stream.from_table(numbers).with_parallelism(1).key_by("key").aggregate(count=wb.count())
    last = counts.with_columns(gaps=wb.col("count") * 0).key_by("key").reduce(follow)
    sink = wb.TableSink("newest", upsert_key=["key"])
    return stepped(last.sink_to(sink), "newest", parallelism=parallelism, checkpoint_dir=folder, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_key_keeps_its_order_when_another_subtask_sends_it(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    job = newest(3, tmp_path, checkpoint_mode="unaligned")
    job.faults.stall("reduce")
    assert job.stepper.driver.run_until(lambda: job.stepper.step() == [])
    job.checkpoint()
    assert job.stepper.driver.next_checkpoint()
    assert part(job, "reduce").persisted_records + part(job, "aggregate").persisted_records > 5
    job.cancel()
    job.wait()
    again = newest(2, tmp_path, resume=True)
    names = [name for name in tasks(again) if not name.startswith("reduce")]
    favourite = chance.choice(names)
    for _ in range(80):
        again.stepper.driver.step_task(chance.choice([favourite, *names]))
        again.stepper.driver.step_task(f"reduce[{chance.randrange(2)}]")
    assert again.wait() == "FINISHED"
    found = {row["key"]: (row["count"], row["gaps"]) for row in again.table("newest").to_pylist()}
    assert found == {f"k{k}": (12, 0) for k in range(5)}


def test_what_was_broadcast_cannot_go_to_more_subtasks(tmp_path: Path) -> None:
    def run(parallelism: int, **settings: Any) -> Job:
        stream = wb.Stream.from_table(pa.table({"n": list(range(8))})).with_parallelism(1)
        pipeline = stream.broadcast().filter("n >= 0").sink_to(wb.TableSink("copies"))
        return stepped(pipeline, "broadcast", parallelism=parallelism, checkpoint_dir=tmp_path, **settings)

    job = run(2, checkpoint_mode="unaligned")
    for _ in range(3):
        job.stepper.driver.step_task("table[0]")
    job.stepper.driver.step_task("filter[0]")
    job.checkpoint()
    assert job.stepper.driver.next_checkpoint()
    assert sum(task.persisted_records for task in last(job).subtasks) == 5  # one of six copies had arrived
    job.cancel()
    job.wait()
    with pytest.raises(CheckpointError, match="continue at parallelism 2 and rescale the running job"):
        run(3, resume=True)
    again = run(2, resume=True)
    assert again.wait() == "FINISHED"
    copies = Counter(row["n"] for row in again.table("copies").to_pylist())
    assert copies == Counter(dict.fromkeys(range(8), 2))


# several at a time, pauses, failures -----------------------------------------------------------------------------


def test_several_checkpoints_are_in_progress() -> None:
    job = stepped(two_numbers(), max_concurrent_checkpoints=2)
    job.stepper.step(4)
    for _ in range(3):
        job.checkpoint()
    assert [c.state for c in frames(job)] == ["IN_PROGRESS", "IN_PROGRESS"]  # the third waits
    assert job.stepper.driver.run_until(lambda: [c.state for c in frames(job)] == ["COMPLETED"] * 3)
    assert job.wait() == "FINISHED"
    assert totals(job) == TOTALS


def frames(job: Job) -> list[CheckpointFrame]:
    return job.checkpoints()


def test_a_checkpoint_that_fails_leaves_the_others() -> None:
    job = stepped(two_numbers(), max_concurrent_checkpoints=2, checkpoint_timeout="10s")
    job.stepper.step(4)
    job.faults.stall("union")
    job.checkpoint()
    job.stepper.driver.run_until(lambda: job.stepper.step() == [], limit=200)
    states = [c.state for c in frames(job)]
    assert states == ["FAILED"]
    assert frames(job)[0].reason == "timed out"
    job.checkpoint()
    job.faults.stall("union", stalled=False)
    assert job.wait() == "FINISHED"
    assert [c.state for c in frames(job)] == ["FAILED", "COMPLETED", "COMPLETED"]
    assert totals(job) == TOTALS


def paced(name: str, **settings: Any) -> Job:
    stream = wb.Stream.from_table(pa.table({"n": list(range(60))}), rate=1.0)
    return stepped(stream.sink_to(wb.TableSink("out")), name, **settings)


def test_the_minimum_pause_keeps_checkpoints_apart() -> None:
    job = paced("paced", checkpoint_interval="2s", min_pause="5s")
    assert job.wait() == "FINISHED"
    taken = frames(job)[:-1]
    ended = [c.triggered_us / 1e6 + c.duration_ms / 1e3 for c in taken]
    pauses = [c.triggered_us / 1e6 - end for c, end in zip(taken[1:], ended, strict=False)]
    assert len(pauses) >= 9
    assert all(round(pause, 3) == 5.0 for pause in pauses)


@pytest.mark.parametrize(("tolerable", "failures"), [(0, 1), (2, 3)])
def test_the_job_fails_when_more_checkpoints_fail_than_it_tolerates(tolerable: int, failures: int) -> None:
    job = stepped(
        two_numbers(),
        checkpoint_interval="1s",
        checkpoint_timeout="1s",
        tolerable_failed_checkpoints=tolerable,
        restart="none",
    )
    job.faults.stall("union")
    with pytest.raises(JobError, match=f"{failures} checkpoints in a row failed, the last one: timed out"):
        job.wait()
    assert [c.state for c in frames(job)] == ["FAILED"] * failures


def test_by_default_any_number_of_failed_checkpoints_is_tolerated() -> None:
    job = stepped(two_numbers(), checkpoint_interval="1s", checkpoint_timeout="1s")
    job.faults.stall("union")
    assert job.stepper.driver.run_until(lambda: job.status()["checkpoints"] == 0 and len(frames(job)) > 8)
    job.faults.stall("union", stalled=False)
    assert job.wait() == "FINISHED"
    assert totals(job) == TOTALS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"checkpoint_mode": "aligned"}, "unknown checkpoint_mode 'aligned'"),
        ({"checkpoint_mode": "unaligned", "max_concurrent_checkpoints": 2}, "each of them would store"),
        ({"checkpoint_mode": "stop-the-world", "max_concurrent_checkpoints": 2}, "the sources stand still"),
        ({"aligned_checkpoint_timeout": "1s", "max_concurrent_checkpoints": 2}, "may continue unaligned"),
        ({"checkpoint_timeout": "0s"}, "checkpoint_timeout is 0"),
        ({"tolerable_failed_checkpoints": -1}, "must be above zero"),
        ({"max_concurrent_checkpoints": 0}, "must be above zero"),
        ({"retained_checkpoints": 0}, "must be above zero"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        stepped(two_numbers(), "refused-checkpoint-modes", **settings)
    job = stepped(two_numbers(), "tuned")
    with pytest.raises(SettingError, match=message):
        job.tune(**settings)
    assert job.wait() == "FINISHED"


def test_exactly_once_cannot_be_guaranteed_at_least_once() -> None:
    with pytest.raises(SettingError, match="lower the guarantee"):
        stepped(two_numbers(), checkpoint_mode="at-least-once", guarantee="exactly-once")
    job = stepped(two_numbers(), guarantee="exactly-once")
    with pytest.raises(SettingError, match="lower the guarantee"):
        job.tune(checkpoint_mode="at-least-once")
    assert job.wait() == "FINISHED"
