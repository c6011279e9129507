"""Simulated runs of a user's pipeline, as ``workbench simulate`` makes them."""

from __future__ import annotations

from pathlib import Path

from workbench.lab import run_scenario
from workbench.lab.simulation.result import SimulationResult
from workbench.lab.simulation.search import Search


def results_of(path: Path, seeds: int) -> list[SimulationResult]:
    search = Search(str(path))
    return [run_scenario(search.scenario(seed)) for seed in range(seeds)]
