"""Searches through seeds, in this process or in several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from workbench.compiled import warm_up
from workbench.errors import SettingError, unknown
from workbench.lab.pipelines.collector import what_is_there_set_apart
from workbench.lab.pipelines.topologies import TOPOLOGIES
from workbench.lab.simulation.pace import Paces, timed, together
from workbench.lab.simulation.result import SimulationResult
from workbench.lab.simulation.scenario import DrawTrial, Scenario
from workbench.lab.simulation.simulation import run_scenario
from workbench.lab.simulation.user_pipeline import load_pipeline, trial_of
from workbench.lab.simulation.worker_processes import in_processes

BLOCK = 25
"""The number of seeds that a process takes at once."""


@dataclass(frozen=True, slots=True)
class Search:
    """The parameters of a search; plain data, so that it can be sent to another process.

    Attributes:
        pipeline: a name out of ``TOPOLOGIES``, or a Python file; empty: all of ``TOPOLOGIES``.
        only: names out of ``FAULTS``; empty: all.
        architecture: of fault tolerance, a name out of ``ARCHITECTURES``; empty: checkpoints.
    """

    pipeline: str = ""
    only: tuple[str, ...] = ()
    architecture: str = ""

    def scenario(self, seed: int) -> Scenario:
        """The scenario of a seed.

        Raises:
            SettingError: no such pipeline, or its file cannot be simulated.
        """
        return Scenario(
            seed,
            _pipelines(self.pipeline),
            self.only,
            fixed_input=self.pipeline.endswith(".py"),
            architecture=self.architecture,
        )


@dataclass(frozen=True, slots=True)
class Block:
    """The result of some seeds.

    Attributes:
        seeds: number of seeds run.
        steps: total number of steps.
        faults: those that happened.
        failed: the first with a violation; later seeds were not run.
        paces: of the simulations.
    """

    seeds: int
    steps: int
    faults: int
    failed: SimulationResult | None
    paces: Paces


def run_block(search: Search, seeds: Sequence[int]) -> Block:
    """Run seeds until one fails."""
    warm_up()
    steps = faults = 0
    paces: list[Paces] = []
    with what_is_there_set_apart():
        for number, seed in enumerate(seeds, 1):
            result, pace = timed(partial(run_scenario, search.scenario(seed)))
            steps += result.steps
            faults += len(result.faults)
            paces.append(pace)
            if not result.ok:
                return Block(number, steps, faults, result, together(paces))
        return Block(len(seeds), steps, faults, None, together(paces))


def run_blocks(search: Search, seeds: range, *, jobs: int = 1) -> Iterator[Block]:
    """Run blocks of seeds, in order, in `jobs` processes."""
    blocks = [seeds[begin : begin + BLOCK] for begin in range(0, len(seeds), BLOCK)]
    return in_processes(jobs, partial(run_block, search), blocks)


@cache
def _pipelines(name: str) -> dict[str, DrawTrial]:
    if not name:
        return dict(TOPOLOGIES)
    if name.endswith(".py"):
        return {Path(name).stem: trial_of(load_pipeline(Path(name)))}
    if name not in TOPOLOGIES:
        raise SettingError(f"{unknown('pipeline', name, TOPOLOGIES)}, or a Python file")
    return {name: TOPOLOGIES[name]}
