"""The base of all invariants: a probe that compares events with the model, and reports violations."""

from __future__ import annotations

from collections.abc import Callable

from workbench.drivers.contract.probes import Probe
from workbench.lab.invariants.model import Model
from workbench.runtime.tasks.task import Task


class Invariant(Probe):
    """Checks one concern; every hook does nothing by default.

    Args:
        model: of the attempt; an invariant before it in the checker's list sees its state before an element, one behind
            it the state afterwards.
        report: receives one sentence for each violation.

    Attributes:
        steps_of: the tasks whose steps it looks at.
    """

    steps_of: type[Task] = Task

    def __init__(self, model: Model, report: Callable[[str], None]) -> None:
        self.model = model
        self._report = report

    def violated(self, invariant: str, text: str) -> None:
        """Report a violation."""
        self._report(f"{invariant}: {text}")

    def process_begins(self) -> None:
        """A new process runs the job; the memory of an earlier one is gone."""

    def after_step(self, task: Task) -> None:
        """A task was stepped."""

    def finished(self) -> None:
        """The job has read everything and has ended."""
