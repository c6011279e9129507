"""A scenario: the seed of a simulation, and the parts of it that are fixed."""

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
"""Draws a pipeline with its input, given a random source and a folder that it may use."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One simulation.

    Attributes:
        seed: of all random choices.
        pipelines: to choose from, by name.
        only: names out of ``FAULTS`` to which the faults are restricted; empty: all.
        faults: fixed faults, instead of drawn ones.
        actions: fixed actions of users, instead of drawn ones.
        rows_max: the maximum number of records of an input.
        fixed_input: the input is not drawn, and so it cannot be shrunk.
        long: every input is a long one.
        settings: fixed settings, instead of drawn ones.
        architecture: of fault tolerance, a name out of ``ARCHITECTURES``; empty: checkpoints.
        census: whether to count how often each crash point is reached.
        durable: whether checkpoints are on disk; None: drawn.
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
    architecture: str = ""

    def chance(self, purpose: str) -> Random:
        """A separate random source for each purpose: fixing one choice does not change the others."""
        return Random(f"{self.seed} {purpose}")
