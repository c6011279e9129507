"""Extensions from outside the package are used like built-in ones: a policy and a window assigner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job.job import Job
from workbench.dashboard.contract.steps import KNOBS
from workbench.dashboard.views.checkpoints import checkpoints_configuration, checkpoints_overview
from workbench.jupyter.completion import VALUES
from workbench.lab import simulate
from workbench.lab.pipelines import drawing
from workbench.runtime.barriers.policies import POLICIES
from workbench.runtime.settings.settings import Settings
from workbench.telemetry.frames import Frame
from workbench.windows import WindowAssigner

# one module and one registration ---------------------------------------------------------------------------------

AT_MOST_ONCE = wb.policies.FaultTolerance(
    name="forgetful",
    title="on demand",
    help="no periodic checkpoints; after a failure what was in flight is lost",
    guarantee="at-most-once",
    periodic=False,
    replays=False,
    tunable=False,
)


@dataclass(frozen=True)
class CalendarMonths(WindowAssigner):
    """The months of the Gregorian calendar, in UTC."""

    def windows(self, time_us: int) -> list[tuple[int, int]]:
        day = datetime.fromtimestamp(time_us // 1_000_000, UTC)
        begin = datetime(day.year, day.month, 1, tzinfo=UTC)
        end = datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=UTC)
        return [(int(begin.timestamp()) * 1_000_000, int(end.timestamp()) * 1_000_000)]

    def layout(self) -> str:
        return "calendar months"


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    wb.policies.register_fault_tolerance(AT_MOST_ONCE)
    yield
    del POLICIES[AT_MOST_ONCE.name]


# the policy ------------------------------------------------------------------------------------------------------

ROWS = 60


def numbers() -> wb.Stream:
    table = pa.table({"n": list(range(ROWS)), "key": [n % 3 for n in range(ROWS)]})
    return wb.Stream.from_table(table, rate=1_000)


def stepped(pipeline: wb.types.Pipeline, name: str, **settings: Any) -> Job:
    settings = {"checkpoint_mode": AT_MOST_ONCE, "buffer_size": 4, "buffer_timeout": "0ms", **settings}
    return pipeline.run(name, driver="stepping", checkpoint_interval="1ms", **settings)


def test_a_job_runs_by_it_and_takes_no_periodic_checkpoints() -> None:
    job = stepped(numbers().sink_to(wb.TableSink("all")), "most")
    assert job.wait() == "FINISHED"
    assert job.table().column("n").to_pylist() == list(range(ROWS))
    assert [(each.kind, each.mode) for each in job.stepper.driver.master.coordinator.history] == [
        ("final", "forgetful")
    ]


def test_after_a_failure_sources_go_on_behind_what_they_have_read() -> None:
    counts = numbers().key_by("key").aggregate(n=wb.count()).sink_to(wb.TableSink("counts", upsert_key="key"))
    job = stepped(counts, "lossy")
    source = job.stepper.driver.execution.tasks[0]
    assert job.stepper.driver.run_until(lambda: source.rows_sent >= ROWS // 2)
    job.stepper.driver.master.crash("aggregate[0]")
    assert job.wait() == "FINISHED"
    total = sum(row["n"] for row in job.table().to_pylist())
    assert 0 < total <= ROWS // 2  # what the operator had counted is lost, and nothing is read again


def test_a_failure_is_followed_by_the_next_record_at_every_place() -> None:
    job = stepped(numbers().rebalance().filter("n >= 0").sink_to(wb.PrintSink(limit=0)), "positions")
    source = job.stepper.driver.execution.tasks[0]
    assert job.stepper.driver.run_until(lambda: source.rows_sent >= 20)
    read = source.source_state()["positions"]
    job.stepper.driver.master.lose("a slot", [source.name])
    assert job.stepper.driver.run_until(
        lambda: job.stepper.driver.master.state == "RUNNING" and job.stepper.driver.execution.number == 1
    )
    assert job.stepper.driver.execution.tasks[0].source_state()["positions"] == read
    assert job.wait() == "FINISHED"


def test_a_stronger_guarantee_refuses_it() -> None:
    with pytest.raises(wb.errors.SettingError, match="guarantee is 'at-least-once' and checkpoint_mode 'forgetful'"):
        stepped(numbers().sink_to(wb.TableSink("all")), "refused", guarantee="at-least-once")


def test_a_running_job_changes_neither_to_it_nor_from_it() -> None:
    job = stepped(numbers().sink_to(wb.TableSink("all")), "whole-run")
    with pytest.raises(wb.errors.SettingError, match="'forgetful' applies to a whole run"):
        job.tune(checkpoint_mode="unaligned")
    assert job.tune(checkpoint_mode="forgetful")["checkpoint_mode"] == "forgetful"
    job.cancel()


def test_a_savepoint_restores_into_another_policy(tmp_path: Path) -> None:
    pipeline = numbers().rebalance().filter("n >= 0").sink_to(wb.TableSink("all"))
    job = stepped(pipeline, "before", checkpoint_dir=tmp_path)
    assert job.stepper.driver.run_until(lambda: job.stepper.driver.execution.tasks[0].rows_sent >= 20)
    job.savepoint("half")
    job.cancel()
    again = stepped(pipeline, "after", checkpoint_dir=tmp_path, restore="half", checkpoint_mode="exactly-once")
    assert again.wait() == "FINISHED"
    assert sorted(again.table().column("n").to_pylist()) == list(range(ROWS))


def test_completion_and_dashboard_know_it() -> None:
    assert "forgetful" in VALUES["checkpoint_mode"]
    knob = next(knob for knob in KNOBS if knob.name == "checkpoint_mode")
    assert knob.choices == (*knob.choices[:4], "forgetful")
    assert knob.scale("forgetful") == 4
    frame = Frame("j", "RUNNING", 0, 0, 0, {"checkpoint_mode": "forgetful"}, {})
    assert dict(checkpoints_configuration.options(frame))["Checkpointing Mode"] == "At Most Once (forgetful)"
    job = stepped(numbers().sink_to(wb.TableSink("all")), "shown")
    assert job.wait() == "FINISHED"
    shown = job.recorder.latest().checkpoints[-1]
    assert checkpoints_overview.kind(shown) == "Checkpoint, final, on demand"


def test_the_simulation_draws_it_and_nothing_counts_twice_under_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.lab.pipelines.checkpointing import draw_checkpointing

    drawn = Counter(draw_checkpointing(Random(seed), Settings()).checkpoint_mode for seed in range(200))
    assert drawn["forgetful"] > 10
    monkeypatch.setattr(
        drawing, "draw_checkpointing", lambda chance, settings: settings.with_value("checkpoint_mode", "forgetful")
    )
    results = [simulate(seed, pipelines=["exchanged", "rebalanced", "numbered"]) for seed in range(40)]
    assert [str(result) for result in results if not result.ok] == []
    assert sum(result.restarts for result in results) > 10


# the window assigner ---------------------------------------------------------------------------------------------


def days(tmp_path: Path, name: str, window: WindowAssigner, **settings: Any) -> Job:
    times = [datetime(2024, month, day, tzinfo=UTC) for month in (1, 2, 12) for day in (1, 15, 29)]
    table = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC")), "key": [0] * len(times)})
    stream = wb.Stream.from_table(table, event_time="t", rate=100).key_by("key").window(window)
    pipeline = stream.aggregate(n=wb.count()).sink_to(wb.TableSink("months"))
    return pipeline.run(name, driver="stepping", checkpoint_dir=tmp_path, **settings)


def test_calendar_months_are_counted(tmp_path: Path) -> None:
    job = days(tmp_path, "months", CalendarMonths())
    assert job.wait() == "FINISHED"
    found = [(row["window_start"].month, row["window_end"].month, row["n"]) for row in job.table().to_pylist()]
    assert found == [(1, 2, 3), (2, 3, 3), (12, 1, 3)]


def test_a_restore_goes_on_with_the_same_windows_and_refuses_others(tmp_path: Path) -> None:
    job = days(tmp_path, "months", CalendarMonths())
    assert job.stepper.driver.run_until(lambda: job.stepper.driver.execution.tasks[0].rows_sent >= 4)
    job.savepoint("spring")
    job.cancel()
    with pytest.raises(wb.errors.CheckpointError, match="calendar months"):
        days(tmp_path, "others", wb.tumbling("30d"), restore="spring").wait()
    again = days(tmp_path, "again", CalendarMonths(), restore="spring")
    assert again.wait() == "FINISHED"
    assert [row["n"] for row in again.table().to_pylist()] == [3, 3, 3]


def test_two_streams_join_by_calendar_month(tmp_path: Path) -> None:
    times = pa.array([datetime(2024, month, 3, tzinfo=UTC) for month in (1, 2, 3)], pa.timestamp("us", "UTC"))
    left = wb.Stream.from_table(pa.table({"t": times, "k": [1, 1, 1], "a": [1, 2, 3]}), event_time="t")
    right = wb.Stream.from_table(pa.table({"u": times, "k": [1, 1, 1], "b": [1, 2, 3]}), event_time="u")
    job = left.join(right, on="k", window=CalendarMonths()).sink_to(wb.TableSink("pairs")).run("pairs")
    assert job.wait("60s") == "FINISHED"
    assert sorted((row["a"], row["b"]) for row in job.table().to_pylist()) == [(1, 1), (2, 2), (3, 3)]
