"""I10 and I12: buffers are bounded, and none is lost or left behind (F2-3, F2-4)."""

from __future__ import annotations

from collections.abc import Callable

from workbench.elements import Element, Records
from workbench.runtime.channel import Channel
from workbench.runtime.deployment import Execution
from workbench.runtime.task import Task
from workbench.testing.invariants.invariant import Invariant
from workbench.testing.invariants.model import Model


class Buffers(Invariant):
    """Buffers in flight and in output pools.

    Attributes:
        overshoot: the most buffers by which a task exceeded its output pool within one step.
    """

    def __init__(self, model: Model, report: Callable[[str], None]) -> None:
        super().__init__(model, report)
        self.overshoot = 0

    def attached(self, execution: Execution) -> None:
        for task in execution.tasks:
            if task.pool.used and task.name not in self.model.stays:
                self.violated("I10", f"{task.name} begins with {task.pool.used} output buffers in use")

    def received(self, channel: Channel, element: Element) -> None:
        if type(element) is Records:
            pool = self.model.tasks[channel.target].pool
            if pool.total and pool.used >= pool.total:
                self.violated("I12", f"{channel.target} takes records with {pool.used} of {pool.total} buffers used")

    def after_step(self, task: Task) -> None:
        if not task.outputs:
            return
        seen = channels = 0
        for output in self.model.outputs_of[task.name]:
            for line, partial in zip(output.lines, output.output.partials, strict=True):
                channels += 1
                if line.buffers > line.channel.credit:
                    seen += line.buffers - line.channel.credit
                if partial.rows:
                    seen += 1
        used, total = task.pool.used, task.pool.total
        if used != seen:
            self.violated("I10", f"{task.name}: {used} buffers counted as in use, {seen} are")
        # A barrier or a watermark that must go may ship one more buffer on each channel.
        if used > total + channels:
            self.violated("I12", f"{task.name}: {used} buffers in use of a pool of {total}")
        if used - total > self.overshoot:
            self.overshoot = used - total

    def finished(self) -> None:
        for line in self.model.lines.values():
            if line.channel.queued_buffers or line.queue or line.channel.elements:
                self.violated("I10", f"{line}: {line.channel.queued_buffers} buffers in flight in the end")
        for task in self.model.tasks.values():
            if task.pool.used:
                self.violated("I10", f"{task.name}: {task.pool.used} output buffers in use in the end")
