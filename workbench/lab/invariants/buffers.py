"""I10 and I12: buffers are bounded, and none is lost or left behind (F2-3, F2-4).

In-flight data of a task is at most its pool, one buffer for each channel and the output of one step: a step takes one
buffer or one chunk and may emit any number of records for it, or fires all windows at once. Output without room waits
as a backlog, which counts as the number of buffers that it will become; while there is one, the task emits nothing
more.
"""

from __future__ import annotations

from collections.abc import Callable

from workbench.elements import Element, Records
from workbench.lab.invariants.invariant import Invariant
from workbench.lab.invariants.model import Model
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task


class Buffers(Invariant):
    """Buffers in flight and in output pools.

    Attributes:
        overshoot: the largest number of buffers by which a task exceeded its output pool within one step, with its
            backlog.
    """

    def __init__(self, model: Model, report: Callable[[str], None]) -> None:
        super().__init__(model, report)
        self.overshoot = 0
        self._made: dict[str, int] = {}  # by task: the number of records emitted so far
        self._sizes: dict[str, int] = {}  # and the largest size of its buffers in its last step

    def attached(self, execution: Execution) -> None:
        stays = self.model.stays
        self._made = {name: made for name, made in self._made.items() if name in stays}
        self._sizes = {task.name: task.settings.buffer_size for task in execution.tasks}
        for task in execution.tasks:
            if task.pool.used and task.name not in self.model.stays:
                self.violated("I10", f"{task.name} starts with {task.pool.used} output buffers in use")

    def received(self, channel: Channel, element: Element) -> None:
        if type(element) is Records and self.model.tasks[channel.target].takes_records:
            name = channel.target
            pool = self.model.tasks[name].pool
            if pool.total and pool.used >= pool.total:
                self.violated("I12", f"{name} takes records with {pool.used} of {pool.total} buffers used")
            for output in self.model.outputs_of[name]:
                for pending in output.output.pending:
                    if pending.rows >= pending.size:
                        self.violated("I12", f"{name} takes records while a full buffer of {pending.rows} waits")

    def after_step(self, task: Task) -> None:
        if not task.outputs:
            return
        name = task.name
        now = task.settings.buffer_size
        size = max(now, self._sizes[name])  # it may have been tuned since the waiting records were emitted
        seen = channels = made = backlog = backlogged = 0
        for output in self.model.outputs_of[name]:
            for line, pending in zip(output.lines, output.output.pending, strict=True):
                channels += 1
                made += line.rows_sent
                if line.buffers > line.channel.credit:
                    seen += line.buffers - line.channel.credit
                if rows := pending.rows:
                    seen += 1
                    made += rows
                    if rows > size:
                        backlog += rows - size
                        backlogged += (rows - 1) // size
        used, total = task.pool.used, task.pool.total
        if used != seen:
            self.violated("I10", f"{name}: {used} buffers counted as in use, {seen} are")
        # A barrier or a watermark that must be sent may ship one more buffer on each channel.
        if used > total + channels:
            self.violated("I12", f"{name}: {used} buffers in use of a pool of {total}")
        step = made - self._made.get(name, 0)
        if step and backlog > step:
            self.violated("I12", f"{name}: {backlog} records wait for room, but its last step emitted {step}")
        self._made[name], self._sizes[name] = made, now
        if used + backlogged - total > self.overshoot:
            self.overshoot = used + backlogged - total

    def finished(self) -> None:
        for line in self.model.lines.values():
            if line.channel.queued_buffers or line.queue or line.channel.elements:
                self.violated("I10", f"{line}: {line.channel.queued_buffers} buffers in flight at the end")
        for task in self.model.tasks.values():
            if task.pool.used:
                self.violated("I10", f"{task.name}: {task.pool.used} output buffers in use at the end")
