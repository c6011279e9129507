"""Fault-tolerance architectures, chosen for a run: what each keeps, loses and refuses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from unwatched import run_until, wait

import workbench as wb
from workbench.api.job.job import Job

ROWS = 60
KEYS = 3


def numbers() -> wb.Stream:
    table = pa.table({"n": list(range(ROWS)), "key": [n % KEYS for n in range(ROWS)]})
    return wb.Stream.from_table(table, rate=1_000)


def counts() -> wb.types.Pipeline:
    return numbers().key_by("key").aggregate(n=wb.count()).sink_to(wb.TableSink("out", upsert_key="key"))


def stepped(pipeline: wb.types.Pipeline, name: str, **settings: Any) -> Job:
    settings = {"buffer_size": 4, "buffer_timeout": "0ms", **settings}
    return pipeline.run(name, driver="stepping", **settings)


def fail_at(job: Job, records: int, task: str) -> None:
    """Let a task fail once the source has read this many records."""
    driver = job.stepper.driver
    source = driver.execution.tasks[0]
    run_until(job, lambda: source.root.counters.numRecordsIn >= records)
    driver.master.crash(task)


def total(job: Job) -> int:
    return sum(row["n"] for row in job.table().to_pylist())


def twice_by_task(job: Job) -> dict[str, int]:
    """How many records each task counts twice."""
    return {each.task: each.records for each in job.stepper.driver.master.life.audit.found}


# changelog -------------------------------------------------------------------------------------------------------


def test_what_was_read_since_the_last_offsets_counts_twice_and_the_audit_says_how_much() -> None:
    job = stepped(counts(), "logged", fault_tolerance=wb.changelog("2ms", offset_interval="1h"))
    fail_at(job, 40, "aggregate[0]")
    assert wait(job) == "FINISHED"
    twice = twice_by_task(job)
    assert 30 <= twice["aggregate[0]"] <= 40  # the offsets are those of the first entry of the log
    assert total(job) == ROWS + twice["aggregate[0]"]


def test_state_of_the_log_and_offsets_of_the_same_moment_count_nothing_twice() -> None:
    """Each entry has new offsets, and nothing is in flight between one source and one receiver."""
    job = stepped(counts(), "together", fault_tolerance=wb.changelog("2ms", offset_interval="2ms"))
    fail_at(job, 40, "aggregate[0]")
    assert wait(job) == "FINISHED"
    assert (total(job), twice_by_task(job)) == (ROWS, {})


def test_a_savepoint_of_a_logged_job_is_exact(tmp_path: Path) -> None:
    policy = wb.changelog("2ms", offset_interval="1h")
    job = stepped(counts(), "saved", fault_tolerance=policy, checkpoint_dir=tmp_path)
    assert job.stepper.driver.run_until(lambda: job.stepper.driver.execution.tasks[0].rows_sent >= 40)
    job.savepoint("half")
    job.cancel()
    again = stepped(counts(), "saved-again", checkpoint_dir=tmp_path, restore="half")
    assert again.wait() == "FINISHED"
    assert total(again) == ROWS


def test_another_process_goes_on_from_the_log(tmp_path: Path) -> None:
    policy = wb.changelog("2ms", offset_interval="1h")
    job = stepped(counts(), "first", fault_tolerance=policy, checkpoint_dir=tmp_path)
    assert job.stepper.driver.run_until(lambda: job.stepper.driver.master.coordinator.completed >= 10)
    job.cancel()
    again = stepped(counts(), "second", fault_tolerance=policy, checkpoint_dir=tmp_path, resume=True)
    assert again.wait() == "FINISHED"
    twice = twice_by_task(again)["aggregate[0]"]
    assert twice > 10
    assert total(again) == ROWS + twice


# at most once ----------------------------------------------------------------------------------------------------


def test_state_is_lost_and_rows_that_were_flushed_stay() -> None:
    job = stepped(counts(), "lossy", fault_tolerance=wb.at_most_once("2ms"))
    fail_at(job, 40, "aggregate[0]")
    assert wait(job) == "FINISHED"
    assert total(job) == ROWS - 40  # the counts begin anew, and nothing is read again


def test_rows_are_lost_and_none_comes_twice() -> None:
    pipeline = numbers().rebalance().filter("n >= 0").sink_to(wb.TableSink("all"))
    job = stepped(pipeline, "lost", fault_tolerance=wb.at_most_once("10ms"))
    fail_at(job, 35, "filter[0]")
    assert wait(job) == "FINISHED"
    rows = Counter(job.table().column("n").to_pylist())
    assert set(rows.values()) == {1}
    lost = set(range(ROWS)) - set(rows)
    assert lost
    assert lost <= set(range(20, 40))  # read since the flush before the failure
    assert sorted(lost) == list(range(min(lost), max(lost) + 1))


def test_flushes_hold_no_state_of_operators(tmp_path: Path) -> None:
    """A process that resumes knows what the sinks have committed, and where the sources were."""
    job = stepped(counts(), "flushed", fault_tolerance=wb.at_most_once("2ms"), checkpoint_dir=tmp_path)
    driver = job.stepper.driver
    assert driver.run_until(lambda: driver.master.coordinator.completed >= 10)
    states = driver.master.storage.states
    manifest = driver.master.restart_point
    held = {uid for file in manifest.files for uid, state in states(manifest, file).items() if state}
    assert held == {driver.execution.tasks[0].root.uid, "out"}
    job.cancel()


# stop the world --------------------------------------------------------------------------------------------------


def test_sources_stand_still_at_its_own_interval() -> None:
    job = stepped(counts(), "stopped", fault_tolerance=wb.stop_the_world("10ms"), checkpoint_interval="1h")
    fail_at(job, 40, "aggregate[0]")
    assert wait(job) == "FINISHED"
    assert total(job) == ROWS
    modes = [record.mode for record in job.stepper.driver.master.coordinator.history if record.kind == "periodic"]
    assert len(modes) >= 3
    assert set(modes) == {"stop-the-world"}


# choosing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["snapshots", "at-most-once", "changelog:changelog_interval=1s,offset_interval=5s", "stop-the-world"]
)
def test_the_status_shows_what_can_be_written(text: str) -> None:
    job = stepped(counts(), "shown", fault_tolerance=text)
    shown = job.status()["fault_tolerance"]
    assert shown.startswith(text)
    assert job.stepper.driver.master.settings.with_value("fault_tolerance", shown) == job.stepper.driver.master.settings
    job.cancel()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fault_tolerance": "changlog"}, "unknown fault_tolerance 'changlog': did you mean 'changelog'"),
        ({"fault_tolerance": "changelog:every=5s"}, "unknown argument of changelog 'every'"),
        ({"fault_tolerance": "snapshots:interval=5s"}, "unknown argument of snapshots 'interval'"),
        ({"fault_tolerance": "changelog:changelog_interval=9s,offset_interval=5s"}, "shorter than changelog_interval"),
        ({"fault_tolerance": "at-most-once:flush_interval=0s"}, "flush_interval is 0"),
        ({"fault_tolerance": "changelog", "checkpoint_mode": "unaligned"}, "takes checkpoints in its own way"),
        ({"fault_tolerance": "changelog", "guarantee": "exactly-once"}, "fault_tolerance 'changelog': choose"),
        ({"fault_tolerance": "at-most-once", "guarantee": "at-least-once"}, "'at-most-once': choose"),
        ({"fault_tolerance": "stop-the-world", "max_concurrent_checkpoints": 2}, "with fault_tolerance 'stop-the-wor"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(wb.errors.SettingError, match=message):
        stepped(counts(), "refused-architectures", **settings)
    assert "refused-architectures" not in wb.jobs()


def test_a_way_to_take_checkpoints_is_no_architecture() -> None:
    policy = wb.policies.FaultTolerance(name="mine", title="mine", help="as mine")
    with pytest.raises(wb.errors.SettingError, match="write checkpoint_mode='mine'"):
        stepped(counts(), "refused-architectures", fault_tolerance=policy)
    with pytest.raises(wb.errors.SettingError, match="'changelog' is built in"):
        wb.policies.register_fault_tolerance(wb.changelog())


def test_it_holds_for_the_whole_run() -> None:
    job = stepped(counts(), "fixed", fault_tolerance=wb.changelog("2ms", offset_interval="8ms"))
    for name, value in (("fault_tolerance", "snapshots"), ("checkpoint_mode", "unaligned")):
        with pytest.raises(wb.errors.SettingError):
            job.tune(**{name: value})
    with pytest.raises(wb.errors.SettingError, match="checkpoint_interval does not apply to fault_tolerance"):
        job.tune(checkpoint_interval="1s")
    job.cancel()
    free = stepped(counts(), "free", fault_tolerance=wb.changelog(offset_interval="8ms"), checkpoint_interval="1h")
    free.tune(checkpoint_interval="2ms")
    assert free.wait() == "FINISHED"
    assert free.stepper.driver.master.coordinator.completed > 10
