"""A scenario: the seed of a simulation, the parts of it that are fixed, and what is drawn for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from workbench.drivers.faults.faults import FaultPlan
from workbench.lab.pipelines.checkpointing import draw_architecture, draw_store
from workbench.lab.pipelines.drawing import draw_aggregation, draw_settings
from workbench.lab.pipelines.inputs import Chance
from workbench.lab.pipelines.topologies import TOPOLOGIES, Trial
from workbench.lab.simulation.person import Action, draw_actions
from workbench.runtime.settings.settings import Settings

DrawTrial = Callable[[Random, Path], Trial]
"""Draws a pipeline with its input, given a random source and a folder that it may use."""
_DURABLE = 0.3
"""The share of trials with checkpoints on disk; those whose sinks write files always have them there."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one run of a scenario consists of.

    Attributes:
        name: of the pipeline.
        trial: the pipeline, its input and what must come out.
        durable: whether checkpoints are on disk.
        settings: except for the parallelism, which each process draws.
        faults: to inject.
        actions: of users.
    """

    name: str
    trial: Trial
    durable: bool
    settings: Settings
    faults: FaultPlan
    actions: tuple[Action, ...]


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

    def draw(self, folder: Path) -> Drawn:
        """Draw what is not fixed.

        Args:
            folder: that the pipeline, its sinks and a store may use.
        """
        drawn = Chance(f"{self.seed} input", self.rows_max, long=self.long)
        name = drawn.choice(sorted(self.pipelines))
        trial = self.pipelines[name](drawn, folder)
        plan = self.chance("plan")
        lasting = plan.random() < _DURABLE if self.durable is None else self.durable
        durable = bool(trial.folders or trial.outside) or lasting
        fixed = {**trial.settings, "local_aggregation": draw_aggregation(self.chance("aggregation"))}
        settings = draw_settings(plan, durable, fixed)
        settings = settings if self.settings is None else self.settings
        if self.architecture:
            of_architecture = self.chance("architecture")
            settings = draw_architecture(of_architecture, settings, self.architecture)
            if durable:
                settings = draw_store(of_architecture, settings, folder)
        faults = FaultPlan.draw(plan, kills=durable, only=self.only)
        actions = draw_actions(plan, may_stop=durable)
        return Drawn(
            name,
            trial,
            durable,
            settings,
            faults if self.faults is None else self.faults,
            actions if self.actions is None else self.actions,
        )
