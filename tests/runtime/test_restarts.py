"""Restart strategies, and what restarts: the whole job, or the region of the task that failed (F2-2, F2-7)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import JobError, SettingError
from workbench.lab import simulate
from workbench.plan.physical import build_physical_graph
from workbench.plan.regions import regions_of
from workbench.runtime.job.attempts import Attempts
from workbench.runtime.job.restarts import Restarts
from workbench.runtime.settings.restart_strategies import DEFAULT_STRATEGY, RestartStrategy, parse_restart
from workbench.runtime.settings.settings import Settings

S = 1_000_000


def delays(strategy: RestartStrategy, *times: int) -> list[int | None]:
    logic = strategy.begin("job")
    return [logic.failed(time) for time in times]


# strategies ----------------------------------------------------------------------------------------------------------


def test_a_fixed_delay_gives_up_at_the_failure_after_its_attempts() -> None:
    assert delays(wb.restart.fixed_delay(2, "3s"), 0, 100 * S, 200 * S) == [3 * S, 3 * S, None]
    assert delays(wb.restart.fixed_delay(0), 0) == [None]


def test_without_restarts_the_first_failure_is_the_last() -> None:
    assert delays(wb.restart.no_restart(), 0) == [None]


def test_a_backoff_grows_up_to_its_maximum_and_begins_anew_after_a_time_without_failures() -> None:
    strategy = wb.restart.exponential_delay("1s", "5s", 2, "10s", 0)
    # Each time counts from the restart: the fourth attempt begins at 9 + 5 and fails 10 s later.
    assert delays(strategy, 0, 2 * S, 5 * S, 9 * S, 24 * S) == [1 * S, 2 * S, 4 * S, 5 * S, 1 * S]
    assert delays(strategy, 0, 10 * S) == [1 * S, 2 * S]  # at 10 s the second attempt has run for 9 s only
    assert delays(wb.restart.exponential_delay("1s", attempts=2, jitter_factor=0), 0, 1, 2) == [1 * S, 1_500_000, None]


def test_jitter_stays_within_its_fraction_and_is_the_same_for_the_same_job() -> None:
    strategy = wb.restart.exponential_delay("1s", "1s", 1, "1h", 0.25)
    times = range(0, 500)
    first, again = (delays(strategy, *times) for _ in range(2))
    assert first == again
    assert all(0.75 * S <= delay <= 1.25 * S for delay in first if delay is not None)
    assert min(filter(None, first)) < 0.8 * S
    assert max(filter(None, first)) > 1.2 * S
    other = strategy.begin("another job")
    assert [other.failed(time) for time in times] != first


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 4), st.integers(1, 30))
def test_a_failure_rate_counts_the_failures_of_the_interval_before_each(gaps: list[int], most: int, width: int) -> None:
    times = [sum(gaps[: index + 1]) * S for index in range(len(gaps))]
    found = delays(wb.restart.failure_rate(most, f"{width}s", "1s"), *times)
    for index, (time, delay) in enumerate(zip(times, found, strict=True)):
        within = sum(time - width * S < earlier for earlier in times[: index + 1])
        assert delay == (1 * S if within <= most else None)


@pytest.mark.parametrize(
    "strategy",
    [
        wb.restart.no_restart(),
        wb.restart.fixed_delay(7, "250ms"),
        wb.restart.failure_rate(2, "3min", "4s"),
        wb.restart.exponential_delay("10ms", "2min", 1.25, "1h", 0.5),
        wb.restart.exponential_delay(attempts=4),
    ],
)
def test_a_strategy_can_be_read_as_it_is_written(strategy: RestartStrategy) -> None:
    assert parse_restart(str(strategy)) == parse_restart(strategy) == strategy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fixed-dely", "did you mean 'fixed-delay'"),
        ("fixed-delay:tries=3", "unknown argument of fixed-delay 'tries'.*attempts, delay"),
        ("fixed-delay:attempts=2,attempts=3", "attempts of fixed-delay is both '2' and '3': write it once"),
        ("fixed-delay:3", "'3' is not an argument of fixed-delay"),
        ("fixed-delay:attempts=many", "attempts is 'many'"),
        ("fixed-delay:attempts=-1", "at least 0"),
        ("fixed-delay:attempts=inf", "attempts is 'inf': write a whole number"),
        ("fixed-delay:attempts=nan", "attempts is 'nan': write a whole number"),
        ("fixed-delay:attempts=1e300", "attempts is '1e300': write a whole number"),
        ("fixed-delay:delay=nans", "delay is 'nans': write a number with a unit"),
        ("failure-rate:max_failures_per_interval=inf", "max_failures_per_interval is 'inf'"),
        ("failure-rate:max_failures_per_interval=1e30", "at most 2147483647"),
        ("exponential-delay:backoff_multiplier=nan", "backoff_multiplier is 'nan'"),
        ("exponential-delay:backoff_multiplier=inf", "backoff_multiplier is 'inf'"),
        ("exponential-delay:jitter_factor=nan", "jitter_factor is 'nan'"),
        ("exponential-delay:attempts=inf", "attempts is 'inf'"),
        ("exponential-delay:max_backoff=" + "9" * 400 + "s", "more than the maximum of 73,000 years"),
        ("fixed-delay:delay=5", "delay is '5': write a number with a unit"),
        ("failure-rate:max_failures_per_interval=0", "at least 1"),
        ("exponential-delay:backoff_multiplier=0.5", "at least 1"),
        ("exponential-delay:jitter_factor=2", "between 0 and 1"),
        ("exponential-delay:initial_backoff=2h", "longer than max_backoff"),
        ("failure-rate:failure_rate_interval=0s", "failure_rate_interval is 0: no failures fall into it"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        parse_restart(text)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 10**400])
def test_numbers_that_are_none_are_refused_from_python_too(bad: float) -> None:
    for make in (
        lambda: wb.restart.fixed_delay(bad),  # type: ignore[arg-type]
        lambda: wb.restart.failure_rate(bad),  # type: ignore[arg-type]
        lambda: wb.restart.exponential_delay(backoff_multiplier=bad),
        lambda: wb.restart.exponential_delay(jitter_factor=bad),
        lambda: wb.restart.exponential_delay(attempts=bad),  # type: ignore[arg-type]
    ):
        with pytest.raises(SettingError, match=rf"is {bad}: "):
            make()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_settings_that_count_refuse_what_is_no_number(bad: float) -> None:
    for name in ("buffer_size", "parallelism", "retained_checkpoints"):
        with pytest.raises(SettingError, match=f"{name} is {bad}: write a whole number"):
            Settings().with_value(name, bad)


def test_failures_that_a_person_injects_count_only_where_a_strategy_was_chosen() -> None:
    injected, real = JobError("on purpose"), ValueError("poison")
    unchosen = Restarts(DEFAULT_STRATEGY, "job")
    assert [unchosen.allowed(injected, 0) for _ in range(9)] == [True] * 9
    assert [unchosen.allowed(real, 0) for _ in range(4)] == [True, True, True, False]
    chosen = Restarts(wb.restart.fixed_delay(1), "job")
    assert [chosen.allowed(injected, 0) for _ in range(2)] == [True, False]
    assert (chosen.count, chosen.failures, chosen.due_us) == (1, 2, 1 * S)


def test_a_job_keeps_to_its_strategy_and_says_when_it_starts_again() -> None:
    job = (
        numbers("n")
        .sink_to(wb.TableSink("out"))
        .run("kept", driver="stepping", restart=wb.restart.fixed_delay(1, "7s"))
    )
    assert job.status()["restart"] == "fixed-delay:attempts=1,delay=7s"
    assert job.status()["restart_due"] is None
    job.fail("table[0]")
    job.stepper.driver.run_until(lambda: job.state == "RESTARTING")
    failed_us = job.recorder.latest().time_us  # type: ignore[union-attr]
    assert job.recorder.latest().metrics["restartDue"] == failed_us + 7 * S  # type: ignore[union-attr]
    assert "restart_due" in repr(job.status())
    job.stepper.driver.run_until(lambda: job.state == "RUNNING")
    assert job.stepper.driver.clock.now_us() >= failed_us + 7 * S
    assert job.status()["restart_due"] is None
    job.fail("table[0]")
    with pytest.raises(JobError, match="failed on purpose"):
        job.wait("60s")
    log = [event.text for event in job.recorder.latest().events]  # type: ignore[union-attr]
    assert "gave up at failure 2 (restart=fixed-delay:attempts=1,delay=7s)" in log


def test_a_strategy_may_be_given_as_text() -> None:
    job = numbers("n").sink_to(wb.TableSink("out")).run("text", restart="none")
    assert job.status()["restart"] == "none"
    assert job.wait("60s") == "FINISHED"
    with pytest.raises(SettingError, match="Valid: exponential-delay"):
        numbers("n").sink_to(wb.DiscardSink()).run("text", restart="never")


# regions -------------------------------------------------------------------------------------------------------------


def numbers(column: str, count: int = 400) -> wb.Stream:
    return wb.Stream.from_table(pa.table({column: range(count)}), rate=1000)


def two_regions() -> wb.types.Pipeline:
    left = numbers("a").uid("left").rebalance().filter("a >= 0").uid("keep").sink_to(wb.TableSink("left-rows"))
    right = numbers("b").uid("right").rebalance().filter("b >= 0").uid("hold").sink_to(wb.TableSink("right-rows"))
    return left + right


def test_what_exchanges_records_is_one_region() -> None:
    def names(pipeline: wb.types.Pipeline, parallelism: int = 2) -> list[str]:
        return [str(region) for region in regions_of(build_physical_graph(pipeline.logical_graph(), parallelism))]

    assert names(two_regions()) == ["left -> keep", "right -> hold"]
    shared = numbers("a").uid("one")
    both = shared.filter("a > 1").sink_to(wb.TableSink("x")) + shared.filter("a > 2").sink_to(wb.TableSink("y"))
    assert len(names(both)) == 1
    united = numbers("a").uid("one").union(numbers("a").uid("two")).sink_to(wb.TableSink("x"))
    assert len(names(united)) == 1


def test_sources_that_wait_for_each_other_are_one_region() -> None:
    def stream(uid: str, group: str) -> wb.types.Pipeline:
        source = wb.Stream.from_table(pa.table({"t": [1]}), event_time="t", align=group, max_drift="1s")
        return source.uid(uid).sink_to(wb.TableSink(uid + "-rows"))

    graph = build_physical_graph((stream("a", "g") + stream("b", "h") + stream("c", "g")).logical_graph(), 1)
    assert [region.tasks for region in regions_of(graph)] == [("a[0]", "c[0]"), ("b[0]",)]


@pytest.fixture
def lesson() -> Iterator[wb.types.Job]:
    job = two_regions().run("regions", driver="stepping", buffer_size=10, parallelism=2, checkpoint_interval="20ms")
    yield job
    if not job.over:
        job.cancel()


@pytest.mark.slow
def test_only_the_region_of_a_failed_task_restarts(lesson: wb.types.Job) -> None:
    driver = lesson.stepper.driver
    assert driver.next_checkpoint()
    before = {task.name: task for task in driver.master.execution.tasks}  # type: ignore[union-attr]
    lesson.fail("keep[1]")
    driver.run_until(lambda: len(driver.master.execution.tasks) == 4)  # type: ignore[union-attr]
    assert lesson.state == "RUNNING"
    assert {task.name for task in driver.master.execution.tasks} == {"right[0]", "right[1]", "hold[0]", "hold[1]"}  # type: ignore[union-attr]
    driver.run_until(lambda: len(driver.master.execution.tasks) == 8)  # type: ignore[union-attr]
    after = {task.name: task for task in driver.master.execution.tasks}  # type: ignore[union-attr]
    assert {name for name in before if before[name] is after[name]} == {"right[0]", "right[1]", "hold[0]", "hold[1]"}
    assert lesson.wait("60s") == "FINISHED"
    assert lesson.status()["restarts"] == 1
    assert sorted(lesson.table("left-rows")["a"].to_pylist()) == list(range(400))
    assert sorted(lesson.table("right-rows")["b"].to_pylist()) == list(range(400))
    log = [event.text for event in lesson.recorder.latest().events]  # type: ignore[union-attr]
    assert "only left -> keep restarts, the rest continues" in log
    assert any(text.startswith("the region left -> keep was restored from chk-") for text in log)


def test_no_checkpoint_is_taken_while_a_region_is_down(lesson: wb.types.Job) -> None:
    driver = lesson.stepper.driver
    assert driver.next_checkpoint()
    lesson.fail("keep[1]")
    driver.run_until(lambda: len(driver.master.execution.tasks) == 4)  # type: ignore[union-attr]
    lesson.checkpoint()
    taken = [record.checkpoint_id for record in driver.master.coordinator.history]
    driver.run_until(lambda: len(driver.master.execution.tasks) == 8)  # type: ignore[union-attr]
    assert [record.checkpoint_id for record in driver.master.coordinator.history] == taken
    driver.next_checkpoint()
    assert driver.master.coordinator.history[-1].checkpoint_id > taken[-1]


@pytest.mark.slow
def test_an_interval_that_is_tuned_while_a_region_is_down_counts_from_its_return() -> None:
    job = two_regions().run("regions", driver="stepping", buffer_size=10, restart=wb.restart.fixed_delay(1, "50ms"))
    driver = job.stepper.driver
    begun_us = driver.clock.now_us()
    driver.run_until(lambda: driver.clock.now_us() >= begun_us + 20_000)
    job.fail("keep[0]")
    driver.run_until(lambda: len(driver.master.execution.tasks) == 2)  # type: ignore[union-attr]
    back_us = driver.clock.now_us() + 50_000
    job.tune(checkpoint_interval="5ms")
    assert driver.master.next_due_us() == back_us  # a checkpoint that cannot begin is not what the master waits for
    assert driver.run_until(lambda: len(driver.master.execution.tasks) == 4, limit=5_000)  # type: ignore[union-attr]
    assert driver.clock.now_us() == back_us
    assert driver.next_checkpoint()
    assert driver.master.coordinator.history[-1].triggered_us == back_us + 5_000
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table("left-rows")["a"].to_pylist()) == list(range(400))
    assert sorted(job.table("right-rows")["b"].to_pylist()) == list(range(400))


def test_a_second_region_that_fails_meanwhile_makes_it_a_restart_of_the_whole(lesson: wb.types.Job) -> None:
    driver = lesson.stepper.driver
    with driver.unwatched():  # frames take most of a step's time
        assert driver.next_checkpoint()
        lesson.fail("keep[1]")
        driver.run_until(lambda: len(driver.master.execution.tasks) == 4)  # type: ignore[union-attr]
        lesson.fail("hold[0]")
        assert driver.run_until(lambda: lesson.state == "RESTARTING")
        assert lesson.wait("60s") == "FINISHED"
    assert lesson.status()["restarts"] == 2
    assert sorted(lesson.table("left-rows")["a"].to_pylist()) == list(range(400))
    assert sorted(lesson.table("right-rows")["b"].to_pylist()) == list(range(400))


def test_regions_keep_their_promises_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    back = []
    bring_back = Attempts.bring_back
    monkeypatch.setattr(Attempts, "bring_back", lambda self, *rest: (bring_back(self, *rest), back.append(1))[0])
    results = [simulate(seed, pipelines=["islands"]) for seed in range(30)]
    assert [str(result) for result in results if not result.ok] == []
    assert len(back) >= 5


# stopped meanwhile ---------------------------------------------------------------------------------------------------


def stopping(**options: object) -> wb.types.Job:
    """A job whose last checkpoint has begun and waits for an operator."""
    job = numbers("n").key_by("n").aggregate(c=wb.count()).sink_to(wb.TableSink("rows"))
    begun = job.run("stopping", driver="stepping", buffer_size=10, checkpoint_interval="5ms", **options)
    driver = begun.stepper.driver
    assert driver.next_checkpoint()
    begun.tune(checkpoint_interval="disabled")
    driver.run_until(lambda: not driver.master.coordinator.in_progress)
    begun.faults.stall("aggregate")
    begun.stop(wait=False)
    assert driver.run_until(lambda: bool(driver.master.coordinator.in_progress))
    return begun


@pytest.mark.parametrize("part", [{"task": "aggregate[0]"}, {"slot": "tm-0/slot-0"}, {"coordinator": True}], ids=repr)
def test_a_job_that_fails_while_it_is_stopped_starts_again_and_is_stopped_then(part: dict[str, object]) -> None:
    job = stopping()
    job.faults.fail(**part)  # type: ignore[arg-type]
    assert job.stepper.driver.run_until(lambda: job.state == "RESTARTING")
    complete = job.stepper.driver.master.coordinator.completed
    job.faults.stall("aggregate", False)
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 1
    assert job.stepper.driver.master.coordinator.completed == (1 if "coordinator" in part else complete + 1)
    rows = job.table("rows")["n"].to_pylist()
    assert sorted(rows) == list(range(len(rows)))
    assert rows


def test_a_job_that_fails_behind_its_last_checkpoint_commits_it() -> None:
    job = stopping()
    driver = job.stepper.driver
    job.faults.stall("aggregate", False)
    assert driver.run_until(lambda: driver.master._ending.agreed)
    job.faults.fail(slot="tm-0/slot-0")  # before the sink has been told
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 1
    rows = job.table("rows")["n"].to_pylist()
    assert sorted(rows) == list(range(len(rows)))


def test_a_job_that_may_not_start_again_fails_while_it_is_stopped() -> None:
    job = stopping(restart=wb.restart.no_restart())
    job.fail("aggregate[0]")
    with pytest.raises(JobError, match=r"the job 'stopping' failed: aggregate\[0\] was failed on purpose"):
        job.wait("60s")


def test_a_job_that_waits_for_its_restart_ends_at_once_when_it_is_stopped_again() -> None:
    job = stopping(restart=wb.restart.fixed_delay(1, "1h"))
    job.fail("aggregate[0]")
    assert job.stepper.driver.run_until(lambda: job.state == "RESTARTING")
    job.stop(wait=False)
    assert job.wait("60s") == "CANCELED"
    assert job.status()["restarts"] == 1
