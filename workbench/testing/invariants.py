"""The promises of the runtime, checked at every element, snapshot and commit of a run.

The checker sees what its probes tell it and keeps a model of its own: what lies on each channel, which barrier came
where, what each task's watermark must be, which checkpoints are durable. The numbers are those of the list of
invariants:

====  ===================================================================================================
I1    records received before a barrier are those sent before it, and before it an output holds nothing back
I2    a channel is first in, first out, without a gap
I3    barriers increase, once per channel; nothing behind a barrier is taken before the task's snapshot
I4    watermarks grow, an operator's is the minimum over its active inputs, none overtakes a record
I7    rows become visible only when their checkpoint is durable; in the end they are what a plain model says
I8    a completed checkpoint commits everything before it
I10   in the end no buffer is in use
I12   a task takes no records while its output pool is used up
I13   a checkpoint is complete only when the state of every task is written
I15   what went in came out, at every barrier and in the end
====  ===================================================================================================
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from workbench.drivers.probes import Point, Probe
from workbench.durations import NO_TIME
from workbench.elements import CheckpointBarrier, Element, EndOfStream, Records, Watermark, WatermarkStatus
from workbench.runtime.chain import Link
from workbench.runtime.channel import Channel
from workbench.runtime.deployment import Execution
from workbench.runtime.master import Master
from workbench.runtime.operator_task import OperatorTask
from workbench.runtime.output import EdgeOutput
from workbench.runtime.task import Task

_PART = re.compile(r"part-(\d+)-\d+-\d+\.parquet")


@dataclass(slots=True)
class _Output:
    """One edge's end in one task: which operator feeds it, and what a record becomes on it."""

    task: Task
    link: Link
    output: EdgeOutput
    side: bool
    copies: int
    channels: list[_Line] = field(default_factory=list)


@dataclass(slots=True)
class _Line:
    """The model of one channel."""

    channel: Channel
    output: _Output
    queue: deque[Element] = field(default_factory=deque)
    rows_sent: int = 0
    rows_received: int = 0
    rows_before: dict[int, int] = field(default_factory=dict)
    barrier_sent: int = 0
    barrier_received: int = 0
    watermark_sent: int = NO_TIME
    watermark_received: int = NO_TIME
    idle: bool = False
    ended: bool = False
    finished: bool = False

    def __str__(self) -> str:
        return f"{self.channel.source} -> {self.channel.target}"


class Checker(Probe):
    """Collects violations of one run, over all its attempts and restarts.

    Args:
        on_time: whether no record of the run is late, so that no watermark may overtake one.
        folders: of the sinks that commit files, by uid.

    Attributes:
        violations: one sentence each, beginning with the invariant's number.
        overshoot: the most buffers by which a task exceeded its output pool within one step.
    """

    def __init__(self, *, on_time: bool, folders: Mapping[str, Path]) -> None:
        self._on_time = on_time
        self._folders = folders
        self.violations: list[str] = []
        self.overshoot = 0
        self._master: Master | None = None
        self._broadcast: set[str] = set()
        self._durable: set[int] = set()
        self._written: defaultdict[str, set[str]] = defaultdict(set)
        self._tasks: dict[str, Task] = {}
        self._lines: dict[int, _Line] = {}
        self._inputs: dict[str, list[_Line]] = {}
        self._outputs: list[_Output] = []
        self._watermarks: dict[str, int] = {}
        self._snapshots: dict[str, int] = {}
        self._attempt = (0, 0)  # of which process, and its number there
        self._attempt_of: dict[int, tuple[int, int]] = {}
        self._pending_rows: dict[str, int] = {}
        self._epochs: dict[str, dict[int, int]] = {}
        self._visible: defaultdict[str, set[int]] = defaultdict(set)

    # what the probes tell ----------------------------------------------------------------------------------------

    def attached(self, execution: Execution) -> None:
        self._attempt = (self._attempt[0], execution.number)
        assert self._master is not None
        self._broadcast = {edge.id for edge in self._master.graph.edges if edge.exchange == "broadcast"}
        self._tasks = {task.name: task for task in execution.tasks}
        self._lines = {}
        self._inputs = {task.name: [] for task in execution.tasks}
        self._outputs = []
        self._watermarks = dict.fromkeys(self._tasks, NO_TIME)
        self._snapshots = dict.fromkeys(self._tasks, 0)
        self._pending_rows = {}
        self._epochs = {}
        for task in execution.tasks:
            for link in task.links:
                for output in link.edges:
                    self._add_output(task, link, output, side=False)
                for output in (output for outputs in link.side_edges.values() for output in outputs):
                    self._add_output(task, link, output, side=True)

    def _add_output(self, task: Task, link: Link, output: EdgeOutput, *, side: bool) -> None:
        copies = len(output.channels) if output.channels[0].edge in self._broadcast else 1
        model = _Output(task, link, output, side, copies)
        self._outputs.append(model)
        for channel in output.channels:
            line = self._lines[id(channel)] = _Line(channel, model)
            model.channels.append(line)
            self._inputs[channel.target].append(line)

    def sent(self, channel: Channel, element: Element) -> None:
        line = self._lines[id(channel)]
        line.queue.append(element)
        if line.ended:
            self._violated("I2", f"{line}: {type(element).__name__} after the end of the stream")
        match element:
            case Records():
                line.rows_sent += len(element)
                self._check_overtaken(line, element)
            case Watermark(timestamp_us):
                if timestamp_us < line.watermark_sent:
                    self._violated("I4", f"{line}: watermark {timestamp_us} after {line.watermark_sent}")
                line.watermark_sent = timestamp_us
            case CheckpointBarrier(checkpoint_id):
                if checkpoint_id <= line.barrier_sent:
                    self._violated("I3", f"{line}: barrier {checkpoint_id} after {line.barrier_sent}")
                line.barrier_sent = checkpoint_id
                line.rows_before[checkpoint_id] = line.rows_sent
                self._check_held_back(line.output, checkpoint_id)
            case EndOfStream():
                line.ended = True

    def received(self, channel: Channel, element: Element) -> None:
        line = self._lines[id(channel)]
        if not line.queue or line.queue.popleft() is not element:
            self._violated("I2", f"{line}: {type(element).__name__} out of order")
            return
        self._check_alignment(line, element)
        match element:
            case Records():
                line.rows_received += len(element)
                pool = self._tasks[channel.target].pool
                if pool.total and pool.used >= pool.total:
                    self._violated(
                        "I12", f"{channel.target} takes records with {pool.used} of {pool.total} buffers used"
                    )
            case Watermark(timestamp_us):
                line.watermark_received = timestamp_us
            case WatermarkStatus(idle):
                line.idle = idle
            case CheckpointBarrier(checkpoint_id):
                if line.rows_received != line.rows_before.get(checkpoint_id):
                    self._violated(
                        "I1",
                        f"{line}: {line.rows_received} records received before barrier {checkpoint_id},"
                        f" {line.rows_before.get(checkpoint_id)} sent",
                    )
                line.barrier_received = checkpoint_id
            case EndOfStream():
                line.finished = True

    def reached(self, point: Point, owner: str, number: int) -> None:
        match point:
            case "process":
                self._pending_rows[owner] = self._pending_rows.get(owner, 0) + number
            case "snapshot begins":
                self._on_snapshot(owner, number)
            case "snapshot ends":
                self._check_files(owner.rpartition("/")[2])
            case "state write ends":
                place, _, task = owner.rpartition("/")
                self._written[place].add(task)
            case "manifest write begins":
                missing = sorted(self._tasks.keys() - self._written[owner])
                if missing:
                    self._violated("I13", f"checkpoint {number} is completed without the state of {missing[0]}")
            case "manifest write ends":
                self._durable.add(number)
                if self._attempt_of.get(number) != self._attempt:
                    self._violated("I13", f"checkpoint {number} was completed when the job had gone on without it")
            case "commit begins":
                if number not in self._durable:
                    self._violated("I13", f"{owner} is told that checkpoint {number} is complete, and it is not")
            case "commit ends":
                self._on_committed(owner, number)
            case "rows begin":
                self._check_visible(owner, number)
            case "rows end":
                self._visible[owner].add(number)

    # one invariant each ------------------------------------------------------------------------------------------

    def _check_overtaken(self, line: _Line, records: Records) -> None:
        if not self._on_time or line.output.side or records.timestamps is None or line.watermark_sent == NO_TIME:
            return
        times = records.timestamps[records.timestamps != NO_TIME]
        if len(times) and int(np.min(times)) <= line.watermark_sent:
            self._violated("I4", f"{line}: watermark {line.watermark_sent} overtook a record of {int(np.min(times))}")

    def _check_held_back(self, output: _Output, checkpoint_id: int) -> None:
        """When the barrier is on all channels of an edge, everything that the operator emitted before is, too."""
        if output.side or any(line.barrier_sent != checkpoint_id for line in output.channels):
            return
        sent = sum(line.rows_before[checkpoint_id] for line in output.channels)
        emitted = output.link.counters.numRecordsOut * output.copies
        if sent != emitted:
            self._violated(
                "I1", f"{output.link.uid} emitted {emitted} records before barrier {checkpoint_id}, {sent} were sent"
            )

    def _check_alignment(self, line: _Line, element: Element) -> None:
        target = line.channel.target
        waiting = line.barrier_received
        if waiting <= self._snapshots[target] or not self._in_progress(waiting):
            return
        if any(other.barrier_received > waiting for other in self._inputs[target]):
            return  # a newer checkpoint took its place
        if isinstance(element, CheckpointBarrier) and element.checkpoint_id > waiting:
            return
        self._violated("I3", f"{line}: {type(element).__name__} taken between barrier {waiting} and its snapshot")

    def _in_progress(self, checkpoint_id: int) -> bool:
        assert self._master is not None
        pending = self._master.coordinator.pending
        return pending is not None and pending.checkpoint_id == checkpoint_id

    def _on_snapshot(self, owner: str, checkpoint_id: int) -> None:
        task = owner.partition("/")[0]
        self._epochs.setdefault(owner, {})[checkpoint_id] = self._pending_rows.pop(owner, 0)
        if self._snapshots[task] == checkpoint_id:
            return  # a later operator of the same chain
        if checkpoint_id < self._snapshots[task]:
            self._violated("I3", f"{task}: snapshot {checkpoint_id} after {self._snapshots[task]}")
        self._snapshots[task] = checkpoint_id
        self._attempt_of[checkpoint_id] = self._attempt
        for line in self._inputs[task]:
            if not line.finished and line.barrier_received != checkpoint_id:
                self._violated("I3", f"{task}: snapshot {checkpoint_id} before its barrier came from {line}")

    def _on_committed(self, owner: str, checkpoint_id: int) -> None:
        task, _, uid = owner.partition("/")
        shard = f"{uid}/{task[task.rindex('[') + 1 : -1]}"
        if shard in self._visible:
            for epoch, rows in self._epochs.get(owner, {}).items():
                if epoch <= checkpoint_id and rows and epoch not in self._visible[shard]:
                    self._violated(
                        "I8", f"{owner}: checkpoint {checkpoint_id} left the rows of epoch {epoch} uncommitted"
                    )
        self._check_files(uid)

    def _check_files(self, uid: str) -> None:
        folder = self._folders.get(uid)
        if folder is not None and folder.exists():
            for path in folder.iterdir():
                if match := _PART.fullmatch(path.name):
                    self._check_visible(uid, int(match[1]))

    def _check_visible(self, owner: str, epoch: int) -> None:
        if epoch > max(self._durable, default=0):
            self._violated("I7", f"{owner}: the rows of epoch {epoch} are visible before a checkpoint covers them")

    # between steps -----------------------------------------------------------------------------------------------

    def after_step(self, actor: str) -> None:
        """Compare a task that was stepped with its model."""
        task = self._tasks.get(actor)
        if task is None:
            return
        # A barrier or a watermark that must go may ship one more buffer on each channel.
        channels = sum(len(output.channels) for output in task.outputs)
        if task.pool.used > task.pool.total + channels:
            self._violated("I12", f"{actor}: {task.pool.used} buffers in use of a pool of {task.pool.total}")
        self.overshoot = max(self.overshoot, task.pool.used - task.pool.total)
        if isinstance(task, OperatorTask):
            lines = self._inputs[actor]
            active = [line.watermark_received for line in lines if not line.idle and not line.finished]
            combined = min(active) if active else max(line.watermark_received for line in lines)
            expected = self._watermarks[actor] = max(self._watermarks[actor], combined)
            if task.valve.output_us != expected:
                self._violated("I4", f"{actor}: watermark {task.valve.output_us}, the minimum is {expected}")
            for item in task.gate.channels:
                line = self._lines[id(item.channel)]
                if item.blocked and not task.mailbox and not self._in_progress(line.barrier_received):
                    self._violated("I3", f"{line} is held back for checkpoint {line.barrier_received}, which is over")

    def watch(self, master: Master) -> None:
        """A new process runs the job; what an earlier one kept in memory is gone, and rows become visible anew."""
        self._master = master
        self._attempt = (self._attempt[0] + 1, 0)
        self._visible.clear()

    def finished(self) -> None:
        """Check what must hold when a job has read everything."""
        for line in self._lines.values():
            if line.channel.queued_buffers or line.queue or line.channel.elements:
                self._violated("I10", f"{line}: {line.channel.queued_buffers} buffers in flight in the end")
            if line.rows_sent != line.rows_received:
                self._violated("I15", f"{line}: {line.rows_sent} records sent, {line.rows_received} received")
        for task in self._tasks.values():
            received = sum(line.rows_received for line in self._inputs[task.name])
            if self._inputs[task.name] and received != task.root.counters.numRecordsIn:
                self._violated(
                    "I15", f"{task.name}: {received} records came in, {task.root.counters.numRecordsIn} counted"
                )
            if task.pool.used:
                self._violated("I10", f"{task.name}: {task.pool.used} output buffers in use in the end")
        for output in self._outputs:
            sent = sum(line.rows_sent for line in output.channels)
            emitted = output.link.counters.numRecordsOut * output.copies
            if not output.side and sent != emitted:
                self._violated("I15", f"{output.link.uid}: {emitted} records emitted, {sent} sent")

    def _violated(self, invariant: str, text: str) -> None:
        self.violations.append(f"{invariant}: {text}")
