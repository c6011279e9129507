"""Crashes at every place: what is enumerated, and a sample of it; ``workbench simulate --exhaustive`` runs them all."""

from __future__ import annotations

from typing import get_args

import pytest

from workbench.drivers.crash_points import COORDINATOR, CrashPoint
from workbench.elements import CheckpointMode
from workbench.testing import exhaustive
from workbench.testing.exhaustive import MODES, Case, _singles, census, run_case, way_back


@pytest.mark.parametrize("mode", MODES)
def test_every_crash_point_is_reached(mode: CheckpointMode) -> None:
    _, tasks, places = census("latest", mode)
    _, back = way_back("latest", mode)
    reached = {point for point, _ in places} | {point for point, _ in back}
    absent = set() if mode == "unaligned" else {"in-flight replay"}  # aligned checkpoints hold nothing in flight
    assert set(get_args(CrashPoint)) - reached == absent
    assert tasks == 4
    everywhere = {owner for point, owner in places if point == "acknowledge"}
    assert {owner for point, owner in places if point == "synchronous part"} == everywhere
    assert len(everywhere) == tasks


@pytest.mark.parametrize("mode", MODES)
def test_a_sample_of_all_crashes(mode: CheckpointMode) -> None:
    cases = list(_singles("latest", mode))
    assert len(cases) > 100
    outcomes = [run_case(case) for case in cases[::16]]
    assert [outcome for outcome in outcomes if outcome.violations or not outcome.reached] == []


def test_where_the_coordinator_is_each_task_crashes() -> None:
    cases = [case for case in _singles("latest", "exactly-once") if case.faults.faults[-1].point == "after trigger"]
    assert sorted((fault.kind, fault.task) for case in cases for fault in case.faults.faults) == [
        ("crash", 0),
        ("crash", 1),
        ("crash", 2),
        ("crash", 3),
        ("kill", 0),
    ]
    assert {case.faults.faults[-1].owner for case in cases} == {COORDINATOR}


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
