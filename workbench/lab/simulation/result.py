"""What came of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.drivers.faults.faults import FaultPlan
from workbench.lab.simulation.person import Action


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What came of one seed.

    Attributes:
        seed: reproduces the run.
        pipeline: its name in ``TOPOLOGIES``.
        settings: of the job, in words.
        steps: taken in all.
        tasks: of the largest graph that it ran with.
        faults: those that happened.
        restarts: of the job within a process.
        processes: how often the job was started; more than once after kills and stops.
        checkpoints: completed.
        overshoot: the most buffers by which a task exceeded its output pool within one step.
        trace_hash: SHA-256 over all steps; equal for equal seeds.
        violations: of the runtime's promises, one sentence each.
        story: the last steps before a violation.
        rescaled: how often the job went on at another parallelism.
        plan: the faults that were to happen.
        actions: of people, that were to be done.
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
        """Whether every promise was kept."""
        return not self.violations

    def __str__(self) -> str:
        faults = ", ".join(self.faults) or "no faults"
        head = f"seed {self.seed}: {self.pipeline}, {self.settings}; {self.steps} steps, {faults}"
        return head if self.ok else "\n".join([head, *(f"  {text}" for text in self.violations)])
