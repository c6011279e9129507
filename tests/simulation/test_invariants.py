"""The checker must be able to fail: each test plants one bug in the runtime, and simulations have to find it.

A sample runs each time; ``make mutants`` (WORKBENCH_MUTANTS=all) plants them all.
"""

from __future__ import annotations

import os
import re
import sys

import pytest
from mutants import MUTANTS, Mutant, moving
from mutants.timed import timed

from workbench.drivers.faults.faults import FaultPlan
from workbench.lab import TOPOLOGIES, Scenario, run_scenario

SEEDS = 3_000  # most bugs show within twenty; the rarest of all takes a thousand short simulations
SAMPLE = 5
ALL = os.environ.get("WORKBENCH_MUTANTS") == "all"


@pytest.mark.parametrize("mutant", MUTANTS if ALL else MUTANTS[::SAMPLE], ids=str)
def test_a_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.plant(monkeypatch)
    every = {**TOPOLOGIES, "timed": timed}
    pipelines = {mutant.pipeline: every[mutant.pipeline]} if mutant.pipeline else TOPOLOGIES
    results = (run_scenario(Scenario(seed, pipelines, mutant.only)) for seed in range(SEEDS))
    found = next((result for result in results if not result.ok), None)
    assert found is not None
    if ALL:
        sys.stdout.write(f"{mutant}: seed {found.seed}: {found.violations[0]}\n")


def test_there_are_many_of_them() -> None:
    assert len(MUTANTS) == len({str(mutant) for mutant in MUTANTS}) >= 40


def test_a_backlog_is_what_one_step_has_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a source reads without room is in no buffer of the pool, and yet in flight."""
    moving.a_source_reads_on_without_room(monkeypatch)
    pipelines = {name: TOPOLOGIES[name] for name in ("numbered", "rebalanced")}
    results = (run_scenario(Scenario(seed, pipelines, faults=FaultPlan(), actions=())) for seed in range(300))
    found = [result.violations[0] for result in results if not result.ok]
    assert any(re.search(r"I12: .*: \d+ records wait for room, but its last step emitted \d+", one) for one in found)
