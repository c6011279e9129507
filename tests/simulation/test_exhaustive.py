"""Crashes at every crash point: the enumeration, and a sample of it; ``workbench simulate --exhaustive`` runs all of
them."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from workbench.cli.entry import main
from workbench.drivers.faults.crash_points import COORDINATOR, CrashPoint
from workbench.drivers.faults.fault_names import POINTS
from workbench.drivers.faults.faults import Fault, FaultPlan
from workbench.lab import simulating
from workbench.lab.simulation import exhaustive
from workbench.lab.simulation.crash_places import Owners, missing, required
from workbench.lab.simulation.exhaustive import MODES, NAMES, Case, _singles, census, run_case, way_back

# Those with many tasks take most of the time; the command looks at all of them.
FEW_TASKS = [name for name in NAMES if name not in ("united", "layered", "exchanged")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FEW_TASKS)
def test_every_crash_point_is_reached_in_every_task(name: str, mode: str) -> None:
    _, owners, places, _ = census(name, mode)
    _, back = way_back(name, mode)
    assert missing({**places, **back}, owners, mode) == []
    reached = {point for point, _ in (*places, *back)}
    absent = set() if mode == "unaligned" else {"in-flight replay"}  # aligned checkpoints hold nothing in flight
    if name == "in files":  # a source and a sink in one chain: no barrier travels
        assert not owners.senders
        absent = {"barrier emission", "first barrier", "end of alignment", "in-flight replay"}
    else:
        assert owners.senders | owners.receivers == owners.tasks
    assert set(get_args(CrashPoint)) - reached == absent


def test_the_tasks_of_each_crash_point() -> None:
    _, owners, places, _ = census("latest", "unaligned")
    sources, sinks = {"table[0]", "table[1]"}, {"aggregate[0]", "aggregate[1]"}
    assert owners == Owners(frozenset(sources | sinks), frozenset(sources), frozenset(sinks), frozenset(sinks))
    table = required(owners, "unaligned")
    assert set(table) == set(get_args(CrashPoint))
    assert set(required(owners, "exactly-once")) == set(table) - {"in-flight replay"}
    assert table["restore read"] == sources | sinks
    assert table["re-commit"] == sources | sinks | {COORDINATOR}
    places = {place: 1 for place in places if place != ("mid-file", "table[1]") and place[0] != "last acknowledge"}
    lacking = missing(places, owners, "exactly-once")
    assert ("mid-file", "table[1]") in lacking
    assert {owner for point, owner in lacking if point == "last acknowledge"} == sources | sinks
    places["last acknowledge", "table[0]"] = 1
    assert all(point != "last acknowledge" for point, _ in missing(places, owners, "exactly-once"))


def test_the_command_fails_when_not_every_crash_happens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(_singles("latest", "exactly-once"))
    never = replace(case, faults=FaultPlan((Fault("restore read", 99, "kill"),)))
    monkeypatch.setattr(simulating, "single_crashes", lambda: [case, never])
    monkeypatch.setattr(simulating, "places_missed", list)
    assert main(["simulate", "--exhaustive"]) == 1
    said = capsys.readouterr().out
    assert f"{never}: this crash did not happen." in said
    assert "2 crashes: 1 were reached, 0 violated an invariant" in said
    monkeypatch.setattr(simulating, "single_crashes", lambda: [case])
    assert main(["simulate", "--exhaustive"]) == 0
    monkeypatch.setattr(simulating, "places_missed", lambda: ["latest, unaligned: fsync of table[0]"])
    assert main(["simulate", "--exhaustive"]) == 1
    assert "No run reaches this place: latest, unaligned: fsync of table[0]." in capsys.readouterr().out


@pytest.mark.parametrize("mode", MODES)
def test_a_sample_of_all_crashes(mode: str) -> None:
    cases = list(_singles("latest", mode))
    assert len(cases) > 100
    outcomes = [run_case(case) for case in cases[::16]]
    assert [outcome for outcome in outcomes if outcome.violations or not outcome.reached] == []
    failures = [case for case in cases if case.faults.faults[-1].kind == "power"]
    outcomes = [run_case(case) for case in failures[::8]]
    assert [outcome for outcome in outcomes if outcome.violations or not outcome.reached] == []


def test_where_the_coordinator_is_each_task_crashes() -> None:
    cases = [case for case in _singles("latest", "exactly-once") if case.faults.faults[-1].point == "after trigger"]
    assert sorted((fault.kind, fault.task) for case in cases for fault in case.faults.faults) == [
        ("crash", 0),
        ("crash", 1),
        ("crash", 2),
        ("crash", 3),
        ("kill", 0),
    ]  # the power does not fail here: nothing is on its way to the disk
    assert {case.faults.faults[-1].owner for case in cases} == {COORDINATOR}


def test_the_power_fails_wherever_something_is_on_the_disk() -> None:
    cases = list(_singles("latest", "exactly-once"))
    places = {kind: set[tuple[str, str]]() for kind in ("kill", "power")}
    for case in cases:
        fault = case.faults.faults[-1]
        if fault.kind in places:
            places[fault.kind].add((fault.point, fault.owner))
    assert places["power"] == {(point, owner) for point, owner in places["kill"] if "power" in POINTS[point]}
    assert {point for point, _ in places["kill"] - places["power"]} == {
        *("before trigger", "after trigger", "barrier emission", "first barrier", "end of alignment"),
        *("synchronous part", "mid-file", "pre-commit", "restore read"),
    }
    again = [case.faults for case in cases if [fault.kind for fault in case.faults.faults] == ["kill", "power"]]
    assert {plan.faults[-1].point for plan in again} == {"re-commit"}  # a killed process, its successor, no power


def test_pairs_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustive, "MODES", ("exactly-once",))
    cases = exhaustive.pairs_of_crashes()
    assert len(cases) == len({str(case) for case in cases}) > 5_000
    sample = cases[:: len(cases) // 15]
    outcomes = [run_case(case) for case in sample]
    assert [outcome for outcome in outcomes if outcome.violations] == []
    assert sum(outcome.reached for outcome in outcomes) > len(sample) // 2


def test_a_case_says_how_to_find_it() -> None:
    case = next(_singles("latest", "unaligned"))
    assert isinstance(case, Case)
    assert str(case).startswith(f"latest, unaligned, seed {case.seed}: crash at acknowledge of ")
