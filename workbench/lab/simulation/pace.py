"""The speed of simulations, by pipeline: in CPU seconds, which other work hardly changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from workbench.lab.simulation.result import SimulationResult


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of some simulations.

    Attributes:
        simulations: their number.
        steps: of all of them.
        cpu_s: CPU seconds; two paces that differ only in this are equal, because the work was the same.
    """

    simulations: int = 0
    steps: int = 0
    cpu_s: float = field(default=0.0, compare=False)

    def __add__(self, other: Pace) -> Pace:
        return Pace(self.simulations + other.simulations, self.steps + other.steps, self.cpu_s + other.cpu_s)

    @property
    def per_cpu_s(self) -> float:
        """Simulations per CPU second.

        Example:
            >>> Pace(simulations=30, steps=4_000, cpu_s=0.5).per_cpu_s
            60.0
        """
        return self.simulations / self.cpu_s if self.cpu_s else 0.0


SMALL = 2
"""A graph with at most this many tasks is small."""


@dataclass(frozen=True, slots=True, order=True)
class Graphs:
    """A group of simulations whose pace is reported separately.

    Attributes:
        pipeline: its name.
        small: its graph had at most `SMALL` tasks, at every parallelism of the job.
    """

    pipeline: str
    small: bool


Paces = Mapping[Graphs, Pace]


def timed(run: Callable[[], SimulationResult]) -> tuple[SimulationResult, Paces]:
    """The result of a simulation, and its pace."""
    begun_s = time.process_time()
    result = run()
    pace = Pace(1, result.steps, time.process_time() - begun_s)
    return result, {Graphs(result.pipeline, result.tasks <= SMALL): pace}


def together(parts: Iterable[Paces]) -> dict[Graphs, Pace]:
    """Merge the paces of several parts of a search."""
    found: dict[Graphs, Pace] = {}
    for part in parts:
        for graphs, pace in part.items():
            found[graphs] = found.get(graphs, Pace()) + pace
    return found


def of_all(paces: Paces, pipeline: str | None = None, *, small: bool | None = None) -> Pace:
    """The pace of one pipeline or all, of small graphs, others, or both.

    Example:
        >>> paces = {Graphs("windows", True): Pace(2, 80, 0.01), Graphs("windows", False): Pace(1, 90, 0.01)}
        >>> of_all(paces).simulations, of_all(paces, "windows", small=True).per_cpu_s, of_all(paces, "late").steps
        (3, 200.0, 0)
    """
    chosen = (
        pace for graphs, pace in paces.items() if pipeline in (None, graphs.pipeline) and small in (None, graphs.small)
    )
    return sum(chosen, Pace())
