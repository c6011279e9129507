"""What a simulation is drawn from, and what of it somebody has fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from workbench.drivers.faults.faults import FaultPlan
from workbench.lab.pipelines.topologies import TOPOLOGIES, Trial
from workbench.lab.simulation.person import Action
from workbench.runtime.settings.settings import Settings

DrawTrial = Callable[[Random, Path], Trial]
"""Draws a pipeline with its input from a source of chance, and a folder that it may use."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One simulation.

    Attributes:
        seed: of everything that is drawn.
        pipelines: to choose from, by name.
        only: names out of ``FAULTS`` to which the faults are restricted; empty: all.
        faults: instead of those that would be drawn.
        actions: of people, instead of those that would be drawn.
        rows_max: no input has more records.
        fixed_input: the input is not drawn, and so it cannot be made smaller.
        long: every input is one of the long ones.
        settings: instead of those that would be drawn.
        census: whether to count how often each crash point is reached.
        durable: whether checkpoints are on disk, where that is not left to chance.
    """

    seed: int
    pipelines: Mapping[str, DrawTrial] = field(default_factory=lambda: TOPOLOGIES)
    only: tuple[str, ...] = ()
    faults: FaultPlan | None = None
    actions: tuple[Action, ...] | None = None
    rows_max: int | None = None
    fixed_input: bool = False
    long: bool = False
    settings: Settings | None = None
    durable: bool | None = None
    census: bool = False

    def chance(self, purpose: str) -> Random:
        """A source of chance of its own for each purpose: what is fixed of one changes nothing in the others."""
        return Random(f"{self.seed} {purpose}")
