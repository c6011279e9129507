"""The result of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.drivers.faults.faults import FaultPlan
from workbench.lab.simulation.person import Action


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """The result of one seed.

    Attributes:
        seed: reproduces the run.
        pipeline: its name in ``TOPOLOGIES``.
        settings: of the job, in words.
        steps: total number of steps.
        tasks: of the largest graph that it ran with.
        faults: those that happened.
        restarts: of the job within a process.
        processes: how often the job was started; more than once after kills and stops.
        checkpoints: number of completed ones.
        overshoot: the largest number of buffers by which a task exceeded its output pool within one step.
        trace_hash: SHA-256 over all steps; equal for equal seeds.
        violations: of the invariants, one sentence each.
        story: the last steps before a violation.
        rescaled: how often the job was rescaled.
        plan: the planned faults.
        actions: the planned actions of users.
    """

    seed: int
    pipeline: str
    settings: str
    steps: int
    tasks: int
    faults: tuple[str, ...]
    restarts: int
    processes: int
    checkpoints: int
    overshoot: int
    trace_hash: str
    violations: tuple[str, ...]
    story: tuple[str, ...]
    rescaled: int = 0
    plan: FaultPlan = field(default_factory=FaultPlan)
    actions: tuple[Action, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no invariant was violated."""
        return not self.violations

    def __str__(self) -> str:
        faults = ", ".join(self.faults) or "no faults"
        head = f"seed {self.seed}: {self.pipeline}, {self.settings}; {self.steps} steps, {faults}"
        return head if self.ok else "\n".join([head, *(f"  {text}" for text in self.violations)])
