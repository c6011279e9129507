"""Seeded simulations of the whole runtime: every promise is kept, and a seed says everything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from random import Random

import pytest

from workbench.drivers.faults import POINTS, Fault, FaultInjector, FaultPlan, Killed
from workbench.errors import JobError, SettingError
from workbench.testing import TOPOLOGIES, simulate
from workbench.testing.topologies import STEP_US, _by_window, _source

SEEDS = 160
CHUNK = 20


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_promise_is_kept(first: int) -> None:
    broken = [str(result) for seed in range(first, first + CHUNK) if not (result := simulate(seed)).ok]
    assert broken == []


@pytest.mark.parametrize("name", sorted(TOPOLOGIES))
def test_every_pipeline_is_simulated(name: str) -> None:
    results = [simulate(seed, pipelines=[name]) for seed in range(4)]
    assert [str(result) for result in results if not result.ok] == []
    assert {result.pipeline for result in results} == {name}
    assert sum(result.checkpoints for result in results) >= 4  # each run ends with one at least


def test_runs_differ_and_are_disturbed() -> None:
    results = [simulate(seed) for seed in range(60)]
    assert len({result.trace_hash for result in results}) == 60
    assert sum(result.restarts for result in results) > 5
    assert sum(result.processes > 1 for result in results) > 5
    assert len({fault.rpartition(" ")[0] for result in results for fault in result.faults}) > 12


def test_a_seed_is_one_run_in_any_process() -> None:
    code = "from workbench.testing import simulate\nfor seed in (1, 2, 3, 5): print(simulate(seed).trace_hash)"
    hashes = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for hash_seed in ("0", "12345")
    ]
    assert hashes[0] == hashes[1] == [simulate(seed).trace_hash for seed in (1, 2, 3, 5)]


def test_an_unknown_pipeline_is_refused() -> None:
    with pytest.raises(SettingError, match="did you mean 'windows'"):
        simulate(1, pipelines=["window"])


def test_a_result_tells_its_run() -> None:
    result = simulate(7, pipelines=["filtered"])
    assert str(result).startswith("seed 7: filtered, buffers of ")
    assert result.story == ()


def test_a_plan_is_drawn_within_what_can_be_survived() -> None:
    chance = Random(1)
    plans = [FaultPlan.draw(chance, kills=False) for _ in range(300)]
    kinds = {fault.kind for plan in plans for fault in plan.faults}
    assert kinds == {"crash", "error"}
    assert {len(plan.faults) for plan in plans} == {0, 1, 2, 3}
    with_kills = [fault for _ in range(300) for fault in FaultPlan.draw(chance, kills=True).faults]
    assert {fault.point for fault in with_kills} == set(POINTS)
    assert all(fault.kind in POINTS[fault.point] for fault in with_kills)


def test_a_fault_happens_at_its_occurrence_and_once() -> None:
    injector = FaultInjector(FaultPlan((Fault("process", 2, "kill"), Fault("commit begins", 1, "crash"))))
    injector.reached("process", "a", 0)
    with pytest.raises(Killed):
        injector.reached("process", "a", 0)
    injector.reached("process", "a", 0)
    with pytest.raises(JobError, match="injected: crash at commit begins 1"):
        injector.reached("commit begins", "a", 1)
    assert [str(fault) for fault in injector.fired] == ["kill at process 2", "crash at commit begins 1"]


def test_a_crash_in_the_writer_falls_on_a_task() -> None:
    crashed: list[int] = []
    injector = FaultInjector(FaultPlan((Fault("manifest write ends", 1, "crash", task=5),)))
    injector.crash = crashed.append
    injector.reached("manifest write ends", "chk-00000001", 1)
    assert crashed == [5]


def test_the_input_is_disordered_within_its_bound() -> None:
    for seed in range(40):
        _, rows = _source(Random(seed), disorder=7)
        assert all(row.t is None or row.n * STEP_US - 7 <= row.t <= row.n * STEP_US for row in rows)


def test_the_model_of_windows() -> None:
    chance = Random(3)
    _, rows = next((s, r) for s, r in (_source(chance, disorder=0) for _ in range(50)) if len(r) == 7)
    expected: Counter[tuple[str | None, int]] = Counter()
    for row in rows:
        if row.t is not None:
            expected[row.key, row.t // 30 * 30] += 1
    assert {(key, start): n for key, start, _, n, _, _ in _by_window(rows, 30)} == dict(expected)
