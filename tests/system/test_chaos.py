"""E5: a state machine per entity under failures: no false alert with snapshots, false alerts without."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from bokeh.models import Span
from outputs import Collected
from sink_job import resolve

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched, WaitUntil
from workbench.dashboard.measured.chaos import ChaosRun, chaos_figures
from workbench.datasets.access_log import ALERTS, EVENTS, AccessLog, AccessRules, watch
from workbench.drivers.faults.faults import Fault, FaultPlan
from workbench.elements import Records
from workbench.lab import Scenario, run_scenario
from workbench.lab.bench.measuring import chaos
from workbench.lab.pipelines.comparing import Outputs
from workbench.lab.pipelines.topologies import Trial
from workbench.operators.contract.base import OperatorContext
from workbench.operators.process.process import Process
from workbench.runtime.settings.restart_strategies import FixedDelay
from workbench.runtime.settings.settings import Settings

AT_ONCE = FixedDelay(9, 0, counts_injected=False)


def log(*, kept: bool = True, begin_us: int = 1_000_000, violation_every: int = 5) -> AccessLog:
    return AccessLog(20_000, 240, begin_us, entities=8, violation_every=violation_every, kept=kept)


def events_of(source: AccessLog) -> dict[int, list[str]]:
    """The events of each entity, in their order."""
    rows = [row for partition in range(4) for row in source.events(partition, 0, source.length).to_pylist()]
    return {
        entity: [row["event"] for row in sorted((r for r in rows if r["entity"] == entity), key=lambda r: r["number"])]
        for entity in range(source.entities)
    }


# the log -------------------------------------------------------------------------------------------------------------


def test_the_events_of_a_log() -> None:
    found = events_of(log(violation_every=0))
    assert found == {entity: [EVENTS[number % 3] for number in range(30)] for entity in range(8)}
    assert log(violation_every=0).alerts() == []
    wrong = [
        (entity, number)
        for entity, events in events_of(log()).items()
        for number in range(30)
        if EVENTS[number % 3] != events[number]
    ]
    assert log().alerts() == sorted(wrong)
    assert len(wrong) == 16  # of 80 logins every fifth
    assert all(number % 3 == 1 for _, number in wrong)


def test_the_alerts_are_those_of_a_plain_state_machine() -> None:
    job = watch(log(begin_us=0).stream()).sink_to(wb.TableSink("alerts")).run("plain", parallelism=2)
    assert job.wait("120s") == "FINISHED"
    found = job.table().to_pylist()
    assert sorted((row["entity"], row["number"]) for row in found) == log().alerts()
    assert {(row["event"], row["after"]) for row in found} == {("service", "authenticate")}


def test_events_come_into_being_at_the_rate() -> None:
    source = AccessLog(1_000, 40, 5_000_000, entities=4)
    clock = VirtualClock(5_000_000)
    reader = source.create()
    reader.open(OperatorContext(clock=clock))
    seen = 0
    while not isinstance(polled := reader.poll(3), Exhausted):
        if isinstance(polled, WaitUntil):
            assert polled.time_us is not None
            assert polled.time_us > clock.now_us()
            clock.advance_to(polled.time_us)
            continue
        assert isinstance(polled, Fetched)
        seen += len(polled.records)
        assert seen <= (clock.now_us() - 5_000_000) // 1_000 + 1
    assert (seen, clock.now_us()) == (40, 5_039_000)


def test_a_reader_that_comes_late_catches_up_with_a_log_and_has_missed_a_feed() -> None:
    for kept, first in ((True, 0), (False, 5)):
        reader = AccessLog(1_000, 40, 0, entities=4, kept=kept).create()
        reader.open(OperatorContext(clock=VirtualClock(17_000)))  # events 0 to 17 exist: five of partitions 0 and 1
        assert reader.snapshot() == {"positions": {"0": first, "1": first, "2": min(first, 4), "3": min(first, 4)}}


@pytest.mark.parametrize("values", [{"limit": 10}, {"entities": 6}, {"rate": 0}])
def test_numbers_that_cannot_be(values: dict[str, int]) -> None:
    with pytest.raises(wb.errors.SettingError, match=f"{next(iter(values))} is"):
        AccessLog(**{"rate": 10, "limit": 40, "begin_us": 0, "entities": 8, **values})


# under failures ------------------------------------------------------------------------------------------------------


def alerts_under_failures(
    source: AccessLog, settings: Settings, crashes: int, seeds: range, parallelisms: tuple[int, ...] = (2, 3)
) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]], int]:
    """Alerts that were false, alerts that were missed, and restarts, over runs in which tasks crash."""
    false: Counter[tuple[int, int]] = Counter()
    missed: Counter[tuple[int, int]] = Counter()
    restarts = 0
    truth = Counter(source.alerts())

    def draw(chance: Random, folder: Path) -> Trial:
        def verify(outputs: Outputs) -> list[str]:
            found: Counter[tuple[int, int]] = Counter()
            for (entity, number, _, _), copies in outputs["alerts"].items():
                found[entity, number] += copies
            false.update(found - truth)
            missed.update(truth - found)
            return []

        pipeline = watch(source.stream()).sink_to(wb.TableSink("alerts"))
        return Trial(pipeline, verify, parallelisms)

    for seed in seeds:
        chance = Random(f"{seed} crashes")
        plan = FaultPlan(
            tuple(Fault("step", 300 * (at + 1) + chance.randrange(250), "crash", at) for at in range(crashes))
        )
        result = run_scenario(
            Scenario(seed, {"access": draw}, faults=plan, actions=(), settings=settings, durable=False)
        )
        restarts += result.restarts
    return false, missed, restarts


SMALL: dict[str, Callable[[], Settings]] = {
    mode: lambda mode=mode: Settings(  # type: ignore[misc]
        buffer_size=2, buffer_timeout_us=0, buffers_per_channel=1, checkpoint_interval_us=1_000, checkpoint_mode=mode
    )
    for mode in ("exactly-once", "unaligned", "stop-the-world")
}


@pytest.mark.parametrize("mode", ["exactly-once", "unaligned", "stop-the-world"])
def test_no_false_alert_with_snapshots(mode: str) -> None:
    false, missed, restarts = alerts_under_failures(log(), SMALL[mode](), 2, range(6))
    assert (false, missed) == (Counter(), Counter())
    assert restarts >= 10


def test_false_alerts_where_a_snapshot_is_no_cut() -> None:
    """At least once: an event that came behind the barrier, and whose effect is in the snapshot, comes again."""

    def rows_of(found: Collected) -> list[dict[str, Any]]:
        return [row for records in found.records for row in records.batch.to_pylist()]

    def alerts_after_recovery(early: int) -> list[tuple[int, int]]:
        source, found = log(violation_every=0), Collected()
        operators = [Process(("entity",), AccessRules(), ALERTS).create([source.schema]) for _ in range(2)]
        for operator in operators:
            operator.open(OperatorContext())
        operators[0].process(Records(source.events(0, 0, 10)), 0, found)  # the barrier comes behind these
        operators[0].process(Records(source.events(0, 10, early)), 0, found)
        assert rows_of(found) == []
        operators[1].restore([resolve(operators[0].snapshot(1))])
        operators[1].process(Records(source.events(0, 10, 20)), 0, found)
        return [(row["entity"], row["number"]) for row in rows_of(found)]

    assert alerts_after_recovery(early=0) == []
    # Of entity 0 events 5 and 6 come early: it used the service and authenticated, and now uses the service again.
    assert alerts_after_recovery(early=3) == [(0, 5)]


def test_false_alerts_without_snapshots() -> None:
    """At most once: nobody keeps what an entity did last, nor the events that came during the failure."""
    settings = Settings(buffer_size=2, buffer_timeout_us=0, checkpoint_interval_us=None, restart=AT_ONCE)
    false, missed, restarts = alerts_under_failures(log(kept=False), settings, 1, range(12))
    assert false.total() > 0
    assert missed.total() > 0
    assert restarts >= 10


def test_the_same_seeds_give_the_same_alerts() -> None:
    settings = Settings(buffer_size=2, buffer_timeout_us=0, checkpoint_interval_us=None, restart=AT_ONCE)
    runs = [alerts_under_failures(log(kept=False), settings, 1, range(2)) for _ in range(2)]
    assert runs[0] == runs[1]


def test_a_feed_cannot_promise_exactly_once() -> None:
    pipeline = watch(log(kept=False).stream()).sink_to(wb.TableSink("alerts"))
    with pytest.raises(wb.errors.PlanError, match="cannot keep exactly-once, only at-most-once"):
        pipeline.run("feed", guarantee="exactly-once")


# live ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("snapshots", [True, False])
def test_the_benchmark(monkeypatch: pytest.MonkeyPatch, snapshots: bool) -> None:
    monkeypatch.setattr(chaos, "LEAD_US", 500_000)
    seen: list[chaos.Moment] = []
    run = chaos.run_chaos(snapshots=snapshots, rate=2_000, seconds=3, failure_every_s=0.8, on_moment=seen.append)
    assert run.as_told, run.describe()
    assert run.events == 6_000
    assert len(run.failures) >= 1
    assert tuple(seen) == run.moments
    line = json.loads(run.to_json())
    assert (line["workload"], line["config"]["snapshots"], line["checked"]) == ("E5", snapshots, True)
    assert run.alerts - run.false_alerts + run.missed_alerts == run.true_alerts


def chaotic(false_alerts: int, missed_alerts: int, snapshots: bool) -> chaos.Chaos:
    moments = (chaos.Moment(0.5, 100.0, 90, 0), chaos.Moment(1.0, 100.0, 0, false_alerts))
    return chaos.Chaos(snapshots, 100, 400, 8, 8, false_alerts, missed_alerts, (0.75,), moments)


def test_what_counts_as_told() -> None:
    assert chaotic(0, 0, snapshots=True).as_told
    assert not chaotic(1, 0, snapshots=True).as_told
    assert not chaotic(0, 1, snapshots=True).as_told
    assert chaotic(1, 1, snapshots=False).as_told
    assert not chaotic(0, 1, snapshots=False).as_told


def test_the_picture(tmp_path: Path) -> None:
    runs = [chaotic(0, 0, snapshots=True), chaotic(3, 1, snapshots=False)]
    page = chaos.save(runs, tmp_path / "chaos.html").read_text(encoding="utf-8")
    assert "With snapshots every 1s, from a log: 0 false alerts" in page
    run = ChaosRun("t", "l", (0.75,), (0.5, 1.0), (100.0, 100.0), (90, 0), (0, 3))
    speed, _, alerts = chaos_figures([run, run])
    [failure] = speed.select(type=Span)
    assert failure.location == 0.75
    data = [line.data_source.data for line in speed.renderers]
    assert [list(data[0]["throughput"]), list(data[1]["generated"])] == [[90, 0], [100.0, 100.0]]
    assert [list(line.data_source.data["alerts"]) for line in alerts.renderers] == [[0, 3], [0, 3]]
