"""The views of transactions and of changelogs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict

import pytest
from stepped_counts import Starts, starts
from telling import words_until

import workbench as wb
from workbench.api.job.job import Job
from workbench.dashboard.contract.view_table import VIEWS
from workbench.dashboard.shown.playback import PlaybackView
from workbench.dashboard.views.architectures import changelog_part, transactions_part
from workbench.telemetry.architectures.transactions import transactions_frame
from workbench.telemetry.frames import Frame


@pytest.fixture
def start() -> Starts:
    return starts("architecture-view")


def latest(job: Job) -> Frame:
    frame = job.recorder.latest()
    assert frame is not None
    return frame


def rows(text: str) -> list[list[str]]:
    found = re.findall(r"<tr>(<td.*?)</tr>", text)
    return [[re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in found]


def sampled_after(job: Job, condition: Callable[[], bool]) -> Frame:
    """The frame that is sampled once the condition holds."""
    assert job.stepper.driver.run_until(condition)
    before = latest(job).sequence
    assert job.stepper.driver.run_until(lambda: latest(job).sequence > before)
    return latest(job)


def test_what_is_durable_and_what_is_sent(start: Starts) -> None:
    job = start(wb.transactions(coalesce=10))
    tasks = {task.name: task for task in job.stepper.driver.execution.tasks}
    job.stepper.driver.run_until(lambda: tasks["aggregate[0]"].transaction.written >= 5)
    job.faults.fail("table[0]")
    frame = sampled_after(job, lambda: job.status()["transactions"]["duplicates"] >= 1)
    found = frame.transactions
    assert found is not None
    counted = job.status()["transactions"]
    assert (found.records, found.writes, found.duplicates) == tuple(
        counted[name] for name in ("records", "writes", "duplicates")
    )
    assert (found.coalesce, found.strong, found.store) == (10, True, "memory")
    by_task = {each.task: each for each in found.tasks}
    assert by_task["table[0]"].sequencer > by_task["aggregate[0]"].sequencer  # it was replaced
    assert by_task["table[0]"].resent >= 1
    assert by_task["aggregate[0]"].duplicates == found.duplicates
    assert by_task["aggregate[0]"].state_bytes > by_task["table[0]"].state_bytes > 0
    shown = rows(transactions_part.html(frame))
    assert [row[0] for row in shown] == ["table[0]", "aggregate[0]"]
    assert shown[1][3] == f"{by_task['aggregate[0]'].writes:,}"
    assert f"{found.duplicates} duplicates refused" in transactions_part.html(frame)
    assert "productions are durable before they are sent" in transactions_part.summary(found)


def test_what_a_task_has_made_and_sent_is_counted(start: Starts) -> None:
    job = start(wb.transactions())
    words_until(job, "not sent yet")
    found = transactions_frame(job.stepper.driver.master)
    assert found is not None
    assert [(each.task, each.phase, each.held, each.unacked) for each in found.tasks] == [
        ("table[0]", "acknowledge", 1, 0),
        ("aggregate[0]", "process", 0, 0),
    ]
    words_until(job, "sent record")
    found = transactions_frame(job.stepper.driver.master)
    assert found is not None
    assert (found.tasks[0].held, found.tasks[0].unacked) == (0, 1)


def test_weak_productions_are_told(start: Starts) -> None:
    found = transactions_frame(start(wb.transactions(strong=False)).stepper.driver.master)
    assert found is not None
    assert "productions are sent before they are durable (weak)" in transactions_part.summary(found)


def test_the_log_runs_ahead_of_the_positions(start: Starts) -> None:
    job = start(wb.changelog("50ms", offset_interval="200ms"))
    assert changelog_part.html(latest(job)).count("No entry is complete.") == 1
    coordinator = job.stepper.driver.master.coordinator
    frame = sampled_after(job, lambda: coordinator.completed == 4)
    log = frame.changelog
    assert log is not None
    assert [entry.checkpoint_id for entry in log.entries] == [1, 2, 3, 4]
    assert [dict(entry.twice).get("aggregate[0]", 0) for entry in log.entries] == [0, 5, 10, 15]
    assert log.twice == 15
    [position] = log.positions
    assert position.saved == 5
    assert position.read - position.saved >= 15
    text = changelog_part.html(frame)
    assert changelog_part.summary(log) == (
        "the log is complete to entry 4; a failure now applies 15 records twice; an entry every 50ms, positions every "
        "200ms"
    )
    assert [row[:2] for row in rows(text)[1:]] == [["4", "15"], ["3", "10"], ["2", "5"], ["1", "0"]]
    assert "title='aggregate[0]: 15, table[0]: 15'" in text
    frame = sampled_after(job, lambda: coordinator.completed == 5)
    assert frame.changelog is not None
    assert frame.changelog.twice == 0  # new positions


def test_a_failure_applies_as_much_twice_as_the_view_says(start: Starts) -> None:
    job = start(wb.changelog("50ms", offset_interval="10s"))
    frame = sampled_after(job, lambda: job.stepper.driver.master.coordinator.completed == 3)
    assert frame.changelog is not None
    job.faults.fail("aggregate[0]")
    words_until(job, "Operators load")
    assert {row["task"]: row["records"] for row in job.audit()} == dict(frame.changelog.entries[-1].twice)


@pytest.mark.parametrize("part", [transactions_part, changelog_part])
def test_a_job_without_it_says_how_to_get_it(start: Starts, part: object) -> None:
    job = start("snapshots")
    assert "start the job with fault_tolerance=wb." in part.html(latest(job))


def test_a_recording_has_the_view_of_its_own_architecture_only(start: Starts) -> None:
    job = start(wb.changelog("50ms", offset_interval="200ms"))
    sampled_after(job, lambda: job.stepper.driver.master.coordinator.completed == 2)
    recorded = PlaybackView(job.recording()).parts
    assert {name for name in recorded if VIEWS[name].architecture} == {"changelog"}
    assert "subtasks" in recorded


def test_the_frames_are_recorded(start: Starts) -> None:
    job = start(wb.changelog("50ms", offset_interval="200ms"))
    frame = sampled_after(job, lambda: job.stepper.driver.master.coordinator.completed == 2)
    assert asdict(frame)["changelog"]["entries"][1]["twice"] == (("aggregate[0]", 5), ("table[0]", 5))
