"""I17: no root is forgotten, and it is acknowledged exactly when everything that was made of it has been processed."""

from __future__ import annotations

from collections.abc import Callable

from workbench.elements import Element, Records
from workbench.lab.invariants.invariant import Invariant
from workbench.lab.invariants.model import Model
from workbench.plan.acking import IDS
from workbench.runtime.acking.pending_roots import RootCounts
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.tasks.acked_source import AckedSourceTask
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task


class Roots(Invariant):
    """Counts the records of each root that are on their way, one by one and without their ids.

    When an acker tells a source that a root is complete, none of its records may be on its way, or come later. Each
    root is acknowledged, failed, pending or abandoned, and what failed is replayed or waits for that. At the end
    nothing is pending.
    """

    def __init__(self, model: Model, report: Callable[[str], None]) -> None:
        super().__init__(model, report)
        self._open: dict[int, int] = {}
        self._done: set[int] = set()
        self._before: dict[str, tuple[int, int]] = {}

    def attached(self, execution: Execution) -> None:
        self._open, self._done = {}, set()
        for task in execution.tasks:
            if isinstance(task, AckedSourceTask):
                self._before[task.name] = task.roots.counts.failed, task.roots.counts.replayed

    def sent(self, channel: Channel, element: Element) -> None:
        if type(element) is not Records:
            return
        if not self.model.tasks[channel.target].takes_records:  # a message from an acker
            for root in element.batch.column(0).to_pylist():
                if self._open.get(root):
                    self.violated(
                        "I17", f"root {root} is complete, but {self._open[root]} of its records are on their way"
                    )
                self._done.add(root)
            return
        for root in self._roots_of(element):
            self._open[root] = self._open.get(root, 0) + 1
            if root in self._done:
                self.violated("I17", f"{channel.source} sends a record of root {root}, which is complete")

    def received(self, channel: Channel, element: Element) -> None:
        if type(element) is Records and self.model.tasks[channel.target].takes_records:
            for root in self._roots_of(element):
                self._open[root] = self._open.get(root, 0) - 1

    def after_step(self, task: Task) -> None:
        if isinstance(task, AckedSourceTask):
            self._check_counts(task, task.roots.counts)

    def finished(self) -> None:
        for task in self.model.tasks.values():
            if isinstance(task, AckedSourceTask):
                counts = task.roots.counts
                if counts.emitted + counts.replayed != counts.acked + counts.failed + counts.abandoned:
                    self.violated("I17", f"{task.name}: at the end roots are neither acknowledged nor failed: {counts}")

    def _check_counts(self, task: AckedSourceTask, counts: RootCounts) -> None:
        known = counts.acked + counts.failed + counts.pending + counts.abandoned
        if counts.emitted + counts.replayed != known or counts.pending != len(task.roots):
            self.violated("I17", f"{task.name} has forgotten a root: {counts}")
        failed, replayed = self._before[task.name]
        if not task.finished and counts.failed - failed != counts.replayed - replayed + counts.waiting:
            self.violated("I17", f"{task.name} has not replayed a root that has failed: {counts}")

    def _roots_of(self, records: Records) -> list[int]:
        """The root of each row; none for messages to ackers, and of rows that belong to no root."""
        batch = records.batch
        if batch.num_columns < 2 or batch.schema.field(batch.num_columns - 2).name != IDS[0].name:
            return []
        return [root for root in batch.column(batch.num_columns - 2).to_pylist() if root]
