"""How fast simulations are, by pipeline: in seconds of the processor, which other work hardly changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from workbench.testing.result import SimulationResult


@dataclass(frozen=True, slots=True)
class Pace:
    """Of some simulations.

    Attributes:
        simulations: how many.
        steps: of all of them.
        cpu_s: what they took of the processor; two that differ in this alone are equal, because the work was the same.
    """

    simulations: int = 0
    steps: int = 0
    cpu_s: float = field(default=0.0, compare=False)

    def __add__(self, other: Pace) -> Pace:
        return Pace(self.simulations + other.simulations, self.steps + other.steps, self.cpu_s + other.cpu_s)

    @property
    def per_cpu_s(self) -> float:
        """Simulations in a second of the processor.

        Example:
            >>> Pace(simulations=30, steps=4_000, cpu_s=0.5).per_cpu_s
            60.0
        """
        return self.simulations / self.cpu_s if self.cpu_s else 0.0


Paces = Mapping[str, Pace]
"""By the name of the pipeline."""


def timed(run: Callable[[], SimulationResult]) -> tuple[SimulationResult, Pace]:
    """What came of a simulation, and its pace."""
    begun_s = time.process_time()
    result = run()
    return result, Pace(1, result.steps, time.process_time() - begun_s)


def together(parts: Iterable[Paces]) -> dict[str, Pace]:
    """The pace of each pipeline over several parts of a search."""
    found: dict[str, Pace] = {}
    for part in parts:
        for name, pace in part.items():
            found[name] = found.get(name, Pace()) + pace
    return found
