"""The checker: all invariants of one run, in the order in which they receive events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench.drivers.contract.probes import Probes
from workbench.lab.invariants.accounting import Accounting
from workbench.lab.invariants.batches import Batches
from workbench.lab.invariants.buffers import Buffers
from workbench.lab.invariants.channels import OrderOnChannels
from workbench.lab.invariants.commits import Commits
from workbench.lab.invariants.consistent_cut import Alignment, ConsistentCut
from workbench.lab.invariants.event_time import EventTime
from workbench.lab.invariants.idleness import Idleness
from workbench.lab.invariants.invariant import Invariant
from workbench.lab.invariants.model import Model
from workbench.lab.invariants.recovery import RestoredState
from workbench.lab.invariants.roots import Roots
from workbench.operators.contract.base import Counters
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Task


class Checker(Probes):
    """Collects violations of one run, over all its attempts and restarts.

    Args:
        on_time: whether no record of the run is late, so that no watermark may overtake one.
        folders: of the sinks that commit files, by uid.

    Attributes:
        violations: one sentence each, beginning with the invariant's number.
    """

    def __init__(self, *, on_time: bool, folders: Mapping[str, Path]) -> None:
        self.violations: list[str] = []
        report = self.violations.append
        model = self._model = Model()
        self._buffers = Buffers(model, report)
        self._accounting = Accounting(model, report)
        before: tuple[Invariant, ...] = (OrderOnChannels(model, report), Alignment(model, report))
        behind: tuple[Invariant, ...] = (
            ConsistentCut(model, report),
            EventTime(model, report, on_time=on_time),
            Idleness(model, report),
            Commits(model, report, folders=folders),
            self._buffers,
            self._accounting,
            RestoredState(model, report),
            Roots(model, report),
            Batches(model, report),
        )
        super().__init__(*before, model, *behind)
        self._invariants = (*before, *behind)
        looking = [i for i in self._invariants if type(i).after_step is not Invariant.after_step]
        kinds: tuple[type[Task], ...] = (SourceTask, OperatorTask)
        self._after_step = {
            kind: tuple(i.after_step for i in looking if issubclass(kind, i.steps_of)) for kind in kinds
        }

    @property
    def overshoot(self) -> int:
        """The largest number of buffers by which a task exceeded its output pool within one step."""
        return self._buffers.overshoot

    @property
    def totals(self) -> Counters | None:
        """The sums of all operators' counters in an ended job, if it was one attempt."""
        return self._accounting.totals

    def watch(self, master: Master) -> None:
        """A new process runs the job; the memory of an earlier one is gone, and rows become visible again."""
        self._model.watch(master)
        for invariant in self._invariants:
            invariant.process_begins()

    @property
    def master(self) -> Master:
        """The master of the job, as far as the checker knows."""
        return self._model.master

    def obey(self, master: Master) -> None:
        """Use this master from now on; a different one after a failover."""
        self._model.master = master

    def after_step(self, actor: str) -> None:
        """Compare a task that was stepped with its model."""
        task = self._model.tasks.get(actor)
        if task is not None:
            for check in self._after_step[OperatorTask if task.takes_records else SourceTask]:
                check(task)

    def let_go(self) -> None:
        """Release everything immediately; the checker cannot be used any more."""
        self._model.let_go()
        vars(self).clear()

    def finished(self) -> None:
        """Check the invariants of a job that has read everything."""
        for invariant in self._invariants:
            invariant.finished()
