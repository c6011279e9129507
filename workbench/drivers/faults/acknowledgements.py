"""Acknowledgements on their way to the coordinator: delayed, duplicated or reordered."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.drivers.faults.faults import FaultInjector
from workbench.runtime.barriers.snapshots import SnapshotTaken
from workbench.runtime.messages.messages import Report
from workbench.runtime.tasks.task import TaskHost

_DELAY_STEPS = 40


@dataclass(slots=True)
class _Letter:
    """A report that is delayed for this many steps; None: until another one has overtaken it."""

    host: TaskHost
    report: Report
    steps: int | None


class Acknowledgements:
    """The tasks' reports of their snapshots, disturbed by a fault plan.

    Args:
        faults: the faults at ``"report"``.
    """

    def __init__(self, faults: FaultInjector) -> None:
        self._faults = faults
        self._letters: list[_Letter] = []

    def send(self, host: TaskHost, task: str, report: Report) -> None:
        """Deliver a report to `host`, now or later."""
        if not isinstance(report, SnapshotTaken):
            host.report(report)
            return
        kinds = [fault.kind for fault in self._faults.due("report", task)]
        if "late" in kinds or "twice" in kinds:
            self._letters.append(_Letter(host, report, _DELAY_STEPS))
        elif "swapped" in kinds:
            self._letters.append(_Letter(host, report, None))
        if "twice" in kinds or not kinds:
            host.report(report)
            self._deliver([letter for letter in self._letters if letter.steps is None])

    def step(self) -> None:
        """A step was taken."""
        if self._letters:
            for letter in self._letters:
                letter.steps = None if letter.steps is None else letter.steps - 1
            self._deliver([letter for letter in self._letters if letter.steps == 0])

    def deliver_all(self) -> bool:
        """Nothing else can happen: deliver everything that is delayed; returns whether there was anything."""
        letters = self._letters
        self._deliver(letters)
        return bool(letters)

    def _deliver(self, letters: list[_Letter]) -> None:
        self._letters = [letter for letter in self._letters if letter not in letters]
        for letter in letters:
            letter.host.report(letter.report)


class Post:
    """Passes the reports of one task to its host.

    Args:
        acknowledgements: may disturb them.
        host: receives them.
        task: its name.
    """

    def __init__(self, acknowledgements: Acknowledgements, host: TaskHost, task: str) -> None:
        self._acknowledgements = acknowledgements
        self._host = host
        self._task = task

    @property
    def dropped(self) -> int:
        """As of its host."""
        return self._host.dropped

    def report(self, report: Report) -> None:
        """Receive a report (see `TaskHost`)."""
        self._acknowledgements.send(self._host, self._task, report)
