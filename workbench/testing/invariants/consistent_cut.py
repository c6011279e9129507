"""I1 and I3: what a checkpoint holds is what was sent before its barriers, and nothing else (F2-9 to F2-15)."""

from __future__ import annotations

from workbench.drivers.probes import Point
from workbench.elements import CheckpointBarrier, Element
from workbench.runtime.channel import Channel
from workbench.runtime.operator_task import OperatorTask
from workbench.testing.invariants.invariant import Invariant
from workbench.testing.invariants.model import Line, OutputModel


class Alignment(Invariant):
    """Stands before the model: what a task takes between a barrier and its snapshot."""

    def received(self, channel: Channel, element: Element) -> None:
        model = self.model
        line = model.lines[id(channel)]
        waiting = line.barrier_received
        if waiting <= model.snapshots[channel.target] or not model.in_progress(waiting):
            return
        if any(other.barrier_received > waiting for other in model.inputs[channel.target]):
            return  # a newer checkpoint took its place
        if isinstance(element, CheckpointBarrier) and element.checkpoint_id > waiting:
            return
        self.violated("I3", f"{line}: {type(element).__name__} taken between barrier {waiting} and its snapshot")

    def reached(self, point: Point, owner: str, number: int) -> None:
        if point != "snapshot begins":
            return
        task = owner.partition("/")[0]
        before = self.model.snapshots[task]
        if before == number:
            return  # a later operator of the same chain
        if number < before:
            self.violated("I3", f"{task}: snapshot {number} after {before}")
        for line in self.model.inputs[task]:
            if not line.finished and line.barrier_received != number:
                self.violated("I3", f"{task}: snapshot {number} before its barrier came from {line}")

    def after_step(self, actor: str) -> None:
        task = self.model.tasks.get(actor)
        if not isinstance(task, OperatorTask):
            return
        for item in task.gate.channels:
            if item.blocked and not task.mailbox:
                line = self.model.lines[id(item.channel)]
                if not self.model.in_progress(line.barrier_received):
                    self.violated("I3", f"{line} is held back for checkpoint {line.barrier_received}, which is over")


class ConsistentCut(Invariant):
    """Stands behind the model: counts the records on both sides of every barrier."""

    def sent(self, channel: Channel, element: Element) -> None:
        if type(element) is CheckpointBarrier:
            self._check_held_back(self.model.lines[id(channel)].output, element.checkpoint_id)

    def _check_held_back(self, output: OutputModel, checkpoint_id: int) -> None:
        """When the barrier is on all channels of an edge, everything that the operator emitted before is, too."""
        if output.side or any(line.barrier_sent != checkpoint_id for line in output.lines):
            return
        sent = sum(line.rows_before[checkpoint_id] for line in output.lines)
        emitted = output.link.counters.numRecordsOut * output.copies
        if sent != emitted:
            self.violated(
                "I1", f"{output.link.uid} emitted {emitted} records before barrier {checkpoint_id}, {sent} were sent"
            )

    def received(self, channel: Channel, element: Element) -> None:
        if type(element) is CheckpointBarrier:
            self._check_cut(self.model.lines[id(channel)], element.checkpoint_id)

    def _check_cut(self, line: Line, checkpoint_id: int) -> None:
        sent = line.rows_before.get(checkpoint_id)
        if line.rows_received != sent:
            self.violated(
                "I1", f"{line}: {line.rows_received} records received before barrier {checkpoint_id}, {sent} sent"
            )
