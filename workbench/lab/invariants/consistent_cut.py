"""I1 and I3: a checkpoint contains exactly what was sent before its barriers (F2-9 to F2-15)."""

from __future__ import annotations

from collections.abc import Callable

from workbench.drivers.contract.probes import Point
from workbench.elements import CheckpointBarrier, Element, Records
from workbench.lab.invariants.invariant import Invariant
from workbench.lab.invariants.model import Line, Model, OutputModel
from workbench.runtime.barriers.snapshots import SnapshotTaken
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.task import Task


class Alignment(Invariant):
    """Runs before the model: what a task takes between a barrier and its snapshot."""

    points = frozenset[Point](("snapshot begins",))
    steps_of = OperatorTask

    def received(self, channel: Channel, element: Element) -> None:
        model = self.model
        line = model.lines[id(channel)]
        waiting = line.barrier_received
        if waiting <= model.snapshots[channel.target] or not model.aligned(waiting) or line.overtaken:
            return
        if any(other.barrier_received > waiting for other in model.inputs[channel.target]):
            return  # a newer checkpoint has replaced it
        if isinstance(element, CheckpointBarrier) and element.checkpoint_id + (element.behind is not None) > waiting:
            return
        self.violated("I3", f"{line}: {type(element).__name__} taken between barrier {waiting} and its snapshot")

    def reached(self, point: Point, owner: str, number: int) -> None:
        task = owner.partition("/")[0]
        before = self.model.snapshots[task]
        if before == number:
            return  # a later operator of the same chain
        if number < before:
            self.violated("I3", f"{task}: snapshot {number} after {before}")
        lines = self.model.inputs[task]
        if any(line.overtaken and line.barrier_received == number for line in lines):
            return  # only the first barrier that has overtaken matters
        for line in lines:
            if not line.finished and line.barrier_received < number:
                self.violated("I3", f"{task}: snapshot {number} before its barrier arrived from {line}")

    def after_step(self, task: Task) -> None:
        assert isinstance(task, OperatorTask)
        if task.restored is not None:
            return
        for item in task.gate.channels:
            if item.blocked and not task.mailbox:
                line = self.model.lines[id(item.channel)]
                if not self.model.in_progress(line.barrier_received):
                    self.violated("I3", f"{line} is blocked for checkpoint {line.barrier_received}, which has ended")


class ConsistentCut(Invariant):
    """Runs after the model: counts the records on both sides of every barrier."""

    def __init__(self, model: Model, report: Callable[[str], None]) -> None:
        super().__init__(model, report)
        self._emitted: dict[tuple[int, int], int] = {}

    def attached(self, execution: Execution) -> None:
        self._emitted = {}

    def sent(self, channel: Channel, element: Element) -> None:
        if type(element) is not CheckpointBarrier:
            return
        output = self.model.lines[id(channel)].output
        if element.behind is None:
            self._check_held_back(output, element.checkpoint_id, 0, output.emitted)
        else:  # the task's report contains what has not been sent
            self._emitted.setdefault((id(output), element.checkpoint_id), output.emitted)

    def _check_held_back(self, output: OutputModel, checkpoint_id: int, held: int, emitted: int) -> None:
        """When the barrier is on all channels of an edge, so is everything that the operator emitted before."""
        if output.side or any(line.barrier_sent != checkpoint_id for line in output.lines):
            return
        sent = sum(line.rows_before[checkpoint_id] for line in output.lines)
        if sent + held != emitted + output.resent:
            self.violated(
                "I1",
                f"{output.link.uid} emitted {emitted} records before barrier {checkpoint_id}, {sent} were sent"
                f" and {held} kept",
            )

    def received(self, channel: Channel, element: Element) -> None:
        if type(element) is CheckpointBarrier and element.behind is None:
            self._check_cut(self.model.lines[id(channel)], element.checkpoint_id)

    def _check_cut(self, line: Line, checkpoint_id: int) -> None:
        sent = line.rows_before.get(checkpoint_id)
        if line.rows_received != sent:
            self.violated(
                "I1", f"{line}: {line.rows_received} records received before barrier {checkpoint_id}, {sent} sent"
            )

    def snapshot_taken(self, taken: SnapshotTaken) -> None:
        """An unaligned checkpoint stores exactly what was sent before the barrier and not received before the snapshot,
        buffer by buffer."""
        checkpoint_id = taken.barrier.checkpoint_id
        kept = {piece.flow: piece.buffers for piece in taken.in_flight if not piece.held}
        for line in self.model.inputs[taken.task]:
            buffers = kept.pop(line.channel.flow, ())
            expected: list[Records] = []
            if taken.barrier.behind is not None:
                expected = line.records[line.received_before[checkpoint_id] : line.buffers_before[checkpoint_id]]
            if list(map(id, buffers)) != list(map(id, expected)):
                self.violated(
                    "I1",
                    f"{line}: {len(buffers)} buffers are kept for checkpoint {checkpoint_id}, {len(expected)} were in"
                    " flight",
                )
        for flow in kept:
            self.violated("I1", f"{taken.task} keeps records of {flow}, which is not one of its channels")
        for output in self.model.outputs_of[taken.task]:
            if (emitted := self._emitted.pop((id(output), checkpoint_id), None)) is not None and taken.unaligned:
                flows = {line.channel.flow for line in output.lines}
                held = sum(piece.rows for piece in taken.in_flight if piece.held and piece.flow in flows)
                self._check_held_back(output, checkpoint_id, held, emitted)
