"""The checker's own model of a running attempt: the content of each channel, and the arrival of barriers."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from workbench.drivers.contract.probes import Point, Probe
from workbench.durations import NO_TIME
from workbench.elements import (
    CheckpointBarrier,
    Element,
    EndOfInFlight,
    EndOfStream,
    Records,
    Watermark,
    WatermarkStatus,
)
from workbench.runtime.barriers.policies import policy_of
from workbench.runtime.exchange.chain import Link
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task


@dataclass(slots=True)
class OutputModel:
    """One edge's end in one task: the operator that feeds it, and how records are counted on it.

    Attributes:
        side: a side output, whose records are not counted.
        copies: of each record, on a broadcast.
        resent: in-flight records of the checkpoint from which the attempt resumes.
    """

    task: Task
    link: Link
    output: EdgeOutput
    side: bool
    copies: int
    lines: list[Line] = field(default_factory=list)
    resent: int = 0

    @property
    def emitted(self) -> int:
        """Records that the operator has emitted, with their copies; aggregated ones count as the resulting rows."""
        travelled = self.output.travelled
        return self.link.counters.numRecordsOut * self.copies if travelled is None else travelled


@dataclass(slots=True)
class Line:
    """The model of one channel.

    Attributes:
        rows_before, buffers_before: records and buffers sent before each barrier, by checkpoint.
        received_before: buffers received before each snapshot of the receiver, by checkpoint.
        records: every buffer that was sent.
        buffers: of records, queued now.
        overtaken: the last barrier has overtaken records.
        finished: the receiver has taken the end; `ended`: the sender has sent it.
    """

    channel: Channel
    output: OutputModel
    queue: deque[Element] = field(default_factory=deque)
    rows_sent: int = 0
    rows_received: int = 0
    rows_before: dict[int, int] = field(default_factory=dict)
    buffers_before: dict[int, int] = field(default_factory=dict)
    received_before: dict[int, int] = field(default_factory=dict)
    records: list[Records] = field(default_factory=list)
    buffers: int = 0
    buffers_received: int = 0
    overtaken: bool = False
    barrier_sent: int = 0
    barrier_received: int = 0
    watermark_sent: int = NO_TIME
    watermark_received: int = NO_TIME
    watermark_before: int = NO_TIME
    idle: bool = False
    ended: bool = False
    finished: bool = False

    def __str__(self) -> str:
        return f"{self.channel.source} -> {self.channel.target}"


class Model(Probe):
    """The channels of the running attempt and the elements that moved on them.

    Attributes:
        master: of the process that runs now.
        tasks: by name.
        stays: those of them that existed before this attempt: another region was restarted.
        lines: by the identity of the channel.
        inputs: of each task.
        outputs: of all tasks.
        snapshots: the last checkpoint for which each task has taken a snapshot.
        attempt: its process (from 1), and its number there.
        attempt_of: the attempt that took a checkpoint.
    """

    points = frozenset[Point](("snapshot begins",))

    def __init__(self) -> None:
        self.master: Master
        self.tasks: dict[str, Task] = {}
        self.stays: set[str] = set()
        self.lines: dict[int, Line] = {}
        self.inputs: dict[str, list[Line]] = {}
        self.outputs: list[OutputModel] = []
        self.outputs_of: dict[str, list[OutputModel]] = {}
        self.snapshots: dict[str, int] = {}
        self.attempt = (0, 0)
        self.attempt_of: dict[int, tuple[int, int]] = {}

    def watch(self, master: Master) -> None:
        """A new process runs the job."""
        self.master = master
        self.attempt = (self.attempt[0] + 1, 0)

    def in_progress(self, checkpoint_id: int) -> bool:
        """Whether a checkpoint is neither complete nor aborted."""
        return checkpoint_id in self.master.coordinator.in_progress

    def aligned(self, checkpoint_id: int) -> bool:
        """Whether channels are blocked for a checkpoint in progress."""
        record = self.master.coordinator.in_progress.get(checkpoint_id)
        return record is not None and policy_of(record.mode).aligned

    def attached(self, execution: Execution) -> None:
        self.attempt = (self.attempt[0], execution.number)
        broadcast = {edge.id for edge in self.master.graph.edges if edge.exchange == "broadcast"}
        self.stays = stays = {task.name for task in execution.tasks if self.tasks.get(task.name) is task}
        self.tasks = {task.name: task for task in execution.tasks}
        self._forget([output for output in self.outputs if output.task.name not in stays])
        self.lines = {key: line for key, line in self.lines.items() if line.channel.source in stays}
        self.inputs = {name: self.inputs[name] if name in stays else [] for name in self.tasks}
        self.outputs = [output for output in self.outputs if output.task.name in stays]
        self.outputs_of = {name: self.outputs_of[name] if name in stays else [] for name in self.tasks}
        self.snapshots = {name: self.snapshots[name] if name in stays else 0 for name in self.tasks}
        for task in (task for task in execution.tasks if task.name not in stays):
            for link in task.links:
                for output in link.edges:
                    self._add(task, link, output, broadcast, side=False)
                for output in (output for outputs in link.side_edges.values() for output in outputs):
                    self._add(task, link, output, broadcast, side=True)

    def let_go(self) -> None:
        """Release everything immediately; the model cannot be used any more."""
        self._forget(self.outputs)
        vars(self).clear()

    def _forget(self, outputs: Sequence[OutputModel]) -> None:
        for output in outputs:
            output.lines.clear()  # these refer to it

    def _add(self, task: Task, link: Link, output: EdgeOutput, broadcast: set[str], *, side: bool) -> None:
        copies = len(output.channels) if output.channels[0].edge in broadcast else 1
        model = OutputModel(task, link, output, side, copies)
        self.outputs.append(model)
        self.outputs_of[task.name].append(model)
        for channel in output.channels:
            line = self.lines[id(channel)] = Line(channel, model)
            model.lines.append(line)
            if self.tasks[channel.target].takes_records:  # what acknowledges records to a source is no input
                self.inputs[channel.target].append(line)

    def sent(self, channel: Channel, element: Element) -> None:
        line = self.lines[id(channel)]
        if type(element) is CheckpointBarrier and element.behind is not None:
            line.queue.appendleft(element)
        else:
            line.queue.append(element)
        if type(element) is Records:
            line.rows_sent += element.batch.num_rows
            line.buffers += 1
            line.records.append(element)
        elif type(element) is Watermark:
            line.watermark_sent = element.timestamp_us
        elif type(element) is CheckpointBarrier:
            if element.checkpoint_id > line.barrier_sent:
                line.barrier_sent = element.checkpoint_id
                line.rows_before[element.checkpoint_id] = line.rows_sent
                line.buffers_before[element.checkpoint_id] = len(line.records)
        elif type(element) is EndOfInFlight:
            output = line.output
            output.resent = sum(other.rows_sent for other in output.lines) - output.emitted
        elif type(element) is EndOfStream:
            line.ended = True

    def received(self, channel: Channel, element: Element) -> None:
        line = self.lines[id(channel)]
        if line.queue:
            line.queue.popleft()
        if type(element) is Records:
            line.rows_received += element.batch.num_rows
            line.buffers -= 1
            line.buffers_received += 1
        elif type(element) is Watermark:
            line.watermark_before, line.watermark_received = line.watermark_received, element.timestamp_us
        elif type(element) is WatermarkStatus:
            line.idle = element.idle
        elif type(element) is CheckpointBarrier:
            if element.checkpoint_id >= line.barrier_received:
                line.barrier_received = element.checkpoint_id
                line.overtaken = element.behind is not None
        elif type(element) is EndOfStream:
            line.finished = True

    def reached(self, point: Point, owner: str, number: int) -> None:
        task = owner.partition("/")[0]
        if self.snapshots[task] != number:
            for line in self.inputs[task]:
                line.received_before[number] = line.buffers_received
        self.snapshots[task] = number
        self.attempt_of[number] = self.attempt
