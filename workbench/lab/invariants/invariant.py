"""What every invariant is: a probe that compares what happens with the model, and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable

from workbench.drivers.contract.probes import Probe
from workbench.lab.invariants.model import Model
from workbench.runtime.tasks.task import Task


class Invariant(Probe):
    """Watches one concern; every hook has a do-nothing default.

    Args:
        model: of the attempt; an invariant that stands before it in the checker's list sees it as it was before an
            element, one behind it as it is afterwards.
        report: takes one sentence on each violation.

    Attributes:
        steps_of: the tasks whose steps it looks at.
    """

    steps_of: type[Task] = Task

    def __init__(self, model: Model, report: Callable[[str], None]) -> None:
        self.model = model
        self._report = report

    def violated(self, invariant: str, text: str) -> None:
        """Say what is wrong."""
        self._report(f"{invariant}: {text}")

    def process_begins(self) -> None:
        """A new process runs the job; what an earlier one kept in memory is gone."""

    def after_step(self, task: Task) -> None:
        """A task was stepped."""

    def finished(self) -> None:
        """The job has read everything and has ended."""
