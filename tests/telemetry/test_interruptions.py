"""Reports of failures, rescalings and restores, compared with counts kept by user functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.telemetry.effects.interruption_frames import InterruptionFrame
from workbench.telemetry.effects.interruption_log import InterruptionLog
from workbench.telemetry.frames import Frame

COUNT = 400
MS = 1_000


def counting(read: list[int], **source: Any) -> wb.types.Pipeline:
    """Every record that the source reads is put into `read`, in the step that reads it."""

    def note(n: int) -> bool:
        read.append(n)
        return True

    table = pa.table({"n": range(COUNT)})
    numbers = wb.Stream.from_table(table, rate=1_000, **source).uid("numbers").filter(note, columns=["n"])
    return numbers.key_by("n").aggregate(c=wb.count()).uid("count").sink_to(wb.TableSink("counts"))


def frame_of(job: wb.types.Job) -> Frame:
    frame = job.recorder.latest()
    assert frame is not None
    return frame


def last(job: wb.types.Job) -> InterruptionFrame:
    return frame_of(job).interruptions[-1]


def run_on(job: wb.types.Job, until: Any) -> None:
    assert job.stepper.driver.run_until(until)


def fail(job: wb.types.Job, task: str, read: list[int]) -> list[int]:
    """What was read when the task failed; returns when what comes back is where it was."""
    count = len(frame_of(job).interruptions)
    job.faults.fail(task=task)
    run_on(job, lambda: len(frame_of(job).interruptions) > count)
    before = list(read)
    run_on(job, lambda: last(job).state == "over")
    return before


@pytest.mark.parametrize("fault", [{"task": "count[1]"}, {"coordinator": True}])
def test_a_failure_is_told_with_its_phases_and_the_records_that_are_read_again(
    fault: dict[str, Any], tmp_path: Path
) -> None:
    read: list[int] = []
    job = counting(read).run(
        "story", driver="stepping", parallelism=2, buffer_size=10, checkpoint_interval="50ms", checkpoint_dir=tmp_path
    )
    driver = job.stepper.driver
    for _ in range(2):  # the second recovery counts on from what the first one restored
        known = len(frame_of(job).interruptions)
        driver.next_checkpoint()
        passed = len(read)
        run_on(job, lambda passed=passed: len(read) > passed + 20)
        checkpoint = driver.master.restart_point.checkpoint_id
        job.faults.fail(**fault)
        run_on(job, lambda: job.state == "RESTARTING")
        failed_at, due_us, before = driver.master.services.clock.now_us(), driver.master.restart_due_us, set(read)
        restore_from = len(read)
        told = last(job)
        assert told.state == "lasts"
        assert told.due_us == due_us == failed_at + 100 * MS
        assert "restarts in 100 ms" in told.sentence
        run_on(job, lambda: last(job).state == "over")
        told = last(job)
        assert len(frame_of(job).interruptions) == known + 1
        again = [n for n in read[restore_from:] if n in before]
        assert told.records_again == len(again) > 0
        assert told.checkpoint == checkpoint
        assert [phase.name for phase in told.phases] == ["canceling", "waiting", "restoring", "catching up"]
        assert told.phases[1].end_us == due_us
        assert told.sentence.startswith("count[1] was failed on purpose; " if "task" in fault else "the coordinator ")
        assert f"restored checkpoint {checkpoint}" in told.sentence
        assert f"{len(again):,} records read again, caught up after" in told.sentence
    assert job.wait("60s") == "FINISHED"


def test_a_region_comes_back_beside_the_others_and_reads_only_its_own_again() -> None:
    read: list[int] = []
    table = pa.table({"m": range(COUNT)})
    others = wb.Stream.from_table(table, rate=1_000).uid("others").sink_to(wb.TableSink("others"))
    job = (counting(read) + others).run(
        "regions", driver="stepping", parallelism=2, buffer_size=10, checkpoint_interval="50ms"
    )
    job.stepper.driver.next_checkpoint()
    passed = len(read)
    run_on(job, lambda: len(read) > passed + 20)
    before = fail(job, "count[1]", read)
    told = last(job)
    again = [n for n in read[len(before) :] if n in before]
    assert told.records_again == len(again) > 0
    assert any("restarts, the rest continues" in event.text for event in frame_of(job).events)
    assert [phase.name for phase in told.phases] == ["canceling", "waiting", "restoring", "catching up"]
    waiting = told.phases[1]
    assert waiting.end_us is not None
    assert waiting.end_us - waiting.start_us == 100 * MS
    job.cancel()


def test_a_rescaling_reads_nothing_again_and_a_failure_after_it_counts_on() -> None:
    read: list[int] = []
    job = counting(read).run("rescaled", driver="stepping", parallelism=2, buffer_size=10, checkpoint_interval="30ms")
    driver = job.stepper.driver
    driver.next_checkpoint()
    job.rescale(3)
    told = last(job)
    assert (told.kind, told.state, told.records_again) == ("rescaling", "over", 0)
    assert told.sentence.startswith("rescaled, parallelism = 3, it was 2; ")
    assert told.sentence.endswith("no record is read again")
    driver.next_checkpoint()
    passed = len(read)
    run_on(job, lambda: len(read) > passed + 20)
    before, at = set(read), len(read)
    job.faults.fail(slot="tm-0/slot-0")
    run_on(job, lambda: last(job).state == "over")
    assert last(job).records_again == len([n for n in read[at:] if n in before]) > 0
    assert job.wait("60s") == "FINISHED"


def test_without_a_checkpoint_the_sources_begin_from_the_start() -> None:
    read: list[int] = []
    job = counting(read).run("afresh", driver="stepping", buffer_size=10, checkpoint_interval="disabled")
    run_on(job, lambda: len(read) > 30)
    before = fail(job, "count[0]", read)
    assert last(job).records_again == len(before) > 30
    assert last(job).checkpoint is None
    assert "began from the start, because no checkpoint was complete" in last(job).sentence
    job.cancel()


def test_sources_that_replay_nothing_go_on_although_sinks_restore_a_checkpoint() -> None:
    read: list[int] = []
    job = counting(read).run(
        "lossy", driver="stepping", buffer_size=10, checkpoint_interval="20ms", fault_tolerance="at-most-once"
    )
    run_on(job, lambda: len(read) > 60 and bool(frame_of(job).metrics["numberOfCompletedCheckpoints"]))
    fail(job, "count[0]", read)
    assert last(job).records_again == 0
    sentence = last(job).sentence
    assert "the sources continue after the last record that they had read; no record is read again" in sentence
    job.wait("60s")
    assert len(read) == len(set(read))


def test_under_transactions_no_source_reads_again() -> None:
    read: list[int] = []
    job = counting(read).run(
        "durable", driver="stepping", buffer_size=10, checkpoint_interval="20ms", fault_tolerance="transactions"
    )
    run_on(job, lambda: len(read) > 60)
    fail(job, "count[0]", read)
    assert last(job).records_again == 0
    assert "no record is read again" in last(job).sentence
    assert "from the start" not in last(job).sentence
    job.cancel()


@pytest.mark.parametrize(
    "architecture", ["acks", "at-most-once", "changelog", "micro-batches", "stop-the-world", "transactions"]
)
def test_a_job_is_seen_to_its_end_under_every_architecture(architecture: str) -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(COUNT)}), rate=100).sink_to(wb.DiscardSink())
    job = numbers.run("seen", driver="stepping", checkpoint_interval="200ms", fault_tolerance=architecture)
    assert job.wait("60s") == "FINISHED"
    assert frame_of(job).state == "FINISHED"
    assert any("checkpoint_interval" in frame.effects for frame in job.recorder.frames())


def test_a_job_that_begins_with_a_savepoint_says_so(tmp_path: Path) -> None:
    job = counting([]).run("saved", driver="stepping", checkpoint_interval="20ms", checkpoint_dir=tmp_path)
    job.stepper.driver.next_checkpoint()
    job.stop()
    job.wait("60s")
    again = counting([]).run("saved", driver="stepping", checkpoint_dir=tmp_path, resume=True)
    told = last(again)
    assert (told.kind, told.state, told.records_again) == ("restore", "over", None)
    assert told.sentence == f"started from a checkpoint; restored checkpoint {told.checkpoint}"
    again.cancel()


def test_a_restart_that_fails_belongs_to_the_same_interruption() -> None:
    log = InterruptionLog()
    log.failed(0, "sum[0] failed", "sum[0] was failed on purpose")
    log.waits(2 * MS, 102 * MS)
    log.restores(102 * MS)
    log.failed(110 * MS, "could not start again", "database is locked")
    log.waits(111 * MS, 211 * MS)
    log.restores(211 * MS)
    log.deployed(220 * MS, 4, 10, {"read[0]": 90})
    log.sample(320 * MS, {"read[0]": 100})
    [told] = log.interruptions
    assert told.end_us == 270 * MS  # half of what came in the last 100 ms were read before
    assert told.sentence == (
        "sum[0] was failed on purpose; could not start again: database is locked; canceled in 3 ms, restart after "
        "200 ms; restored checkpoint 4 in 17 ms; 10 records read again, caught up after 270 ms"
    )


def test_a_failure_while_it_catches_up_begins_another_one() -> None:
    log = InterruptionLog()
    log.failed(0, "sum[0] failed", "no")
    log.waits(0, 100 * MS)
    log.restores(100 * MS)
    log.deployed(100 * MS, 4, 10, {"read[0]": 90})
    log.sample(200 * MS, {"read[0]": 83})
    log.failed(300 * MS, "sum[0] failed", "again")
    first, second = log.interruptions
    assert (first.state, first.records_left) == ("failed again", 7)
    assert first.sentence.endswith("10 records are read again, 7 left at the next failure")
    assert (second.state, second.start_us) == ("lasts", 300 * MS)


def test_a_restart_waits_as_long_as_it_was_told_so_that_people_see_it() -> None:
    read: list[int] = []
    job = counting(read).run("delayed", driver="stepping", buffer_size=10, checkpoint_interval="20ms")
    job.stepper.driver.next_checkpoint()
    assert job.tune(restart_delay="5s")["restart_delay"] == "5s"
    fail(job, "count[0]", read)
    waiting = last(job).phases[1]
    assert waiting.end_us is not None
    assert waiting.end_us - waiting.start_us == 5_000 * MS
    assert "restart after 5.0 s" in last(job).sentence
    assert job.status()["last_interruption"] == last(job).sentence
    job.tune(restart_delay="0ms")
    fail(job, "count[0]", read)
    assert "restart after 100 ms" in last(job).sentence  # as the strategy says
    job.cancel()


def test_late_records_count_on_over_a_recovery() -> None:
    """Every fifth record is far behind; those after the checkpoint are dropped again, and count once."""
    table = pa.table({"n": range(COUNT), "t": [(0 if n % 5 == 4 else n * 1_000_000) for n in range(COUNT)]})
    numbers = wb.Stream.from_table(table, event_time="t", out_of_orderness="0s", rate=1_000)
    counted = numbers.key_by("n").window(wb.tumbling("1s")).aggregate(c=wb.count()).uid("count")
    last_told = []
    for fails in (False, True):
        job = counted.sink_to(wb.TableSink("counts")).run(
            "late", driver="stepping", buffer_size=10, checkpoint_interval="50ms"
        )
        job.stepper.driver.next_checkpoint()
        run_on(job, lambda job=job: job.status()["late_records"] > 20)
        if fails:
            job.faults.fail(task="count[0]")
        told: list[int] = []
        run_on(job, lambda job=job, told=told: told.append(job.status()["late_records"]) or job.over)
        assert told == sorted(told)
        assert job.status()["restarts"] == fails
        last_told.append(told[-1])
    assert last_told[0] == last_told[1] > 50


def test_a_recovery_is_over_with_the_attempt_that_a_rescaling_ends() -> None:
    log = InterruptionLog()
    log.failed(0, "sum[1] failed", "no")
    log.waits(1 * MS, 101 * MS)
    log.restores(101 * MS)
    log.deployed(110 * MS, 13, 2_340, {"read[0]": 5_000})
    log.sample(500 * MS, {"read[0]": 3_900})
    log.rescaled(600 * MS)
    first, second = log.interruptions
    assert (first.state, first.end_us, second.state) == ("rescaled", 600 * MS, "lasts")
    assert first.sentence.endswith("; 2,340 records are read again, 1,100 left when the job was rescaled")
