"""Observation of a running attempt: probed channels, operators, storage and tables.

The runtime does not know about probes. A serial driver adds them to an attempt before its first step; then every
element that is sent or received, and every named point that is reached, is reported to a `Probe`, which may observe (a
checker) or raise (an injected fault).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import pyarrow as pa

from workbench.connectors.contract.base import Exhausted, Fetched, WaitUntil
from workbench.connectors.tables.tables import Tables
from workbench.elements import CheckpointBarrier, Element, Records
from workbench.operators.contract.base import EventTimeOutput, Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.runtime.barriers.snapshots import Snapshots, SnapshotTaken
from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.storage import CheckpointStorage, Manifest, StateFile
from workbench.runtime.storage.encoding import Encoded
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.source_task import SourceTask

Point = Literal[
    "process",
    "source read",
    "trigger begins",
    "trigger ends",
    "snapshot begins",
    "snapshot ends",
    "commit begins",
    "commit ends",
    "rows begin",
    "rows end",
    "state write begins",
    "state write ends",
    "manifest write begins",
    "manifest write ends",
    "offsets write ends",
    "mid-file",
    "fsync",
    "rename",
    "link",
    "unlink",
    "folder sync",
    "given up",
    "cleanup",
    "cleanup ends",
    "state read",
]
"""Named points: in a task (process, snapshot, commit of a completed checkpoint), in the coordinator (trigger), where
rows become visible, in the writer and within the files that it writes, and in a restore. A write or commit that raises,
or is killed, is given up."""


class Probe:
    """Observes a job; every hook does nothing by default. An exception from a hook is raised at that point.

    Attributes:
        points: the points to report; None: all.
    """

    points: frozenset[Point] | None = None
    _channel_type: type[Channel] | None = None

    @property
    def channel_type(self) -> type[Channel]:
        """The class of the channels that report to it."""
        if self._channel_type is None:
            self._channel_type = type("ProbedChannel", (_ProbedChannel,), {"__slots__": (), "probe": self})
        return self._channel_type

    def attached(self, execution: Execution) -> None:
        """An attempt is about to be stepped for the first time."""

    def sent(self, channel: Channel, element: Element) -> None:
        """An element was pushed to a channel."""

    def received(self, channel: Channel, element: Element) -> None:
        """An element was taken from a channel."""

    def snapshot_taken(self, taken: SnapshotTaken) -> None:
        """A task has reported its part of a checkpoint."""

    def state_read(self, task: str, states: dict[str, Snapshot]) -> None:
        """A former task's state was read, by operator."""

    def reached(self, point: Point, owner: str, number: int) -> None:
        """A point was reached.

        Args:
            point: the point.
            owner: ``"task/uid"`` in an operator, ``"table/subtask"`` where rows become visible, ``"folder/task"`` where
                state is written, the task where state or a source is read, the folder of a manifest and of what is
                removed, the path of a file.
            number: rows in ``process``, bytes of the state to be written (0 before), otherwise the checkpoint.
        """


_HOOKS = ("attached", "sent", "received", "snapshot_taken", "state_read", "reached")


class Probes(Probe):
    """Several probes, called in their order; each receives only the events that it handles."""

    def __init__(self, *probes: Probe) -> None:
        self._hooks: dict[str, list[Any]] = {name: [] for name in _HOOKS}
        for probe in probes:
            for name, itself in _listens_to(type(probe)):
                if itself:
                    self._hooks[name].append(getattr(probe, name))
                else:  # combined probes are taken apart
                    self._hooks[name] += cast(Probes, probe)._hooks[name]
        self._attached, self._sent, self._received = (self._hooks[name] for name in ("attached", "sent", "received"))
        self._snapshot_taken, self._state_read = self._hooks["snapshot_taken"], self._hooks["state_read"]
        self._reached: dict[Point, list[Any]] = {}  # filled as points are looked up

    def attached(self, execution: Execution) -> None:
        for hook in self._attached:
            hook(execution)

    def sent(self, channel: Channel, element: Element) -> None:
        for hook in self._sent:
            hook(channel, element)

    def received(self, channel: Channel, element: Element) -> None:
        for hook in self._received:
            hook(channel, element)

    def snapshot_taken(self, taken: SnapshotTaken) -> None:
        for hook in self._snapshot_taken:
            hook(taken)

    def state_read(self, task: str, states: dict[str, Snapshot]) -> None:
        for hook in self._state_read:
            hook(task, states)

    def reached(self, point: Point, owner: str, number: int) -> None:
        hooks = self._reached.get(point)
        if hooks is None:
            listening = [(hook.__self__.points, hook) for hook in self._hooks["reached"]]
            hooks = self._reached[point] = [hook for points, hook in listening if points is None or point in points]
        for hook in hooks:
            hook(point, owner, number)


# Cached per class: a run of a simulation creates a dozen probes, always of the same classes.
_LISTENS: dict[type, tuple[tuple[str, bool], ...]] = {}


def _listens_to(kind: type) -> tuple[tuple[str, bool], ...]:
    """The hooks that such a probe overrides, and whether it does more than forward them to its parts."""
    if kind not in _LISTENS:
        own = [name for name in _HOOKS if getattr(kind, name) is not getattr(Probe, name)]
        _LISTENS[kind] = tuple((name, getattr(kind, name) is not getattr(Probes, name)) for name in own)
    return _LISTENS[kind]


class _ProbedChannel(Channel):
    """A channel that reports to `probe`; each probe has its own class, because channels have no attribute for one."""

    __slots__ = ()
    probe: Probe

    def push(self, element: Element) -> None:
        super().push(element)
        self.probe.sent(self, element)

    def overtake(self, barrier: CheckpointBarrier) -> None:
        super().overtake(barrier)
        self.probe.sent(self, barrier)

    def poll(self) -> Element | None:
        element = super().poll()
        if element is not None:
            self.probe.received(self, element)
        return element


class _ProbedOperator(Operator):
    def __init__(self, operator: Operator, probe: Probe, owner: str) -> None:
        self._operator = operator
        self._probe = probe
        self._owner = owner
        self.tells_event_time = operator.tells_event_time

    @property
    def outage(self) -> Outage | None:
        return self._operator.outage

    def hurry(self) -> None:
        self._operator.hurry()

    def give_up(self) -> None:
        self._operator.give_up()

    def open(self, context: OperatorContext) -> None:
        self._operator.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        self._probe.reached("process", self._owner, len(records))
        self._operator.process(records, port, out)

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        self._operator.on_watermark(watermark_us, out)

    def on_idle(self, idle: bool, out: EventTimeOutput) -> None:
        self._operator.on_idle(idle, out)

    def ready(self) -> bool:
        return self._operator.ready()

    def next_time_us(self) -> int | None:
        return self._operator.next_time_us()

    def on_time(self, now_us: int, out: Output) -> None:
        self._operator.on_time(now_us, out)

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        return self._operator.query(key)

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        return self._operator.query_keys(limit)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        self._probe.reached("snapshot begins", self._owner, checkpoint_id)
        snapshot = self._operator.snapshot(checkpoint_id)
        self._probe.reached("snapshot ends", self._owner, checkpoint_id)
        return snapshot

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._operator.restore(snapshots)

    def notify_complete(self, checkpoint_id: int) -> None:
        self._probe.reached("commit begins", self._owner, checkpoint_id)
        try:
            self._operator.notify_complete(checkpoint_id)
        except BaseException:
            self._probe.reached("given up", self._owner, checkpoint_id)
            raise
        self._probe.reached("commit ends", self._owner, checkpoint_id)

    def close(self) -> None:
        self._operator.close()


def unprobed(operator: Operator) -> Operator:
    """The operator itself, without the probe around it."""
    return operator._operator if isinstance(operator, _ProbedOperator) else operator


def attach(execution: Execution, probe: Probe) -> None:
    """Probe the channels and operators of an attempt, for tasks that have not been stepped yet."""
    channel_type = probe.channel_type
    for channel in (*execution.channels, *execution.returns):
        if type(channel) is Channel:
            channel.__class__ = channel_type
    for task in execution.tasks:
        if not isinstance(task.root.operator, _ProbedOperator):
            _attach_snapshots(task.snapshots, probe)
        for link in task.links:
            if not isinstance(link.operator, _ProbedOperator):
                if isinstance(task, SourceTask) and link is task.root:
                    _attach_reader(task, probe)
                link.operator = _ProbedOperator(link.operator, probe, f"{task.name}/{link.uid}")
    probe.attached(execution)


def _attach_snapshots(snapshots: Snapshots, probe: Probe) -> None:
    send = snapshots.send

    def probed(taken: SnapshotTaken) -> None:
        probe.snapshot_taken(taken)
        send(taken)

    snapshots.send = probed


def _attach_reader(task: SourceTask, probe: Probe) -> None:
    poll = task.reader.poll

    def probed(max_records: int) -> Fetched | WaitUntil | Exhausted:
        probe.reached("source read", task.name, 0)
        return poll(max_records)

    task.reader.poll = probed  # type: ignore[method-assign]


def detach(execution: Execution) -> None:
    """Remove the probes from the sources of an ended attempt: a probed reader is a reference cycle."""
    for task in execution.sources:
        vars(task.reader).pop("poll", None)


def attach_coordinator(coordinator: CheckpointCoordinator, probe: Probe) -> None:
    """Probe the triggering of checkpoints; before the job's first step."""
    trigger = coordinator.trigger

    def probed(*arguments: Any, **options: Any) -> CheckpointRecord | None:
        probe.reached("trigger begins", "coordinator", 0)
        record = trigger(*arguments, **options)
        if record is not None:
            probe.reached("trigger ends", "coordinator", record.checkpoint_id)
        return record

    coordinator.trigger = probed  # type: ignore[method-assign]


class ProbedStorage:
    """A checkpoint storage that reports writes and reads."""

    def __init__(self, storage: CheckpointStorage, probe: Probe) -> None:
        self._storage = storage
        self._probe = probe

    @property
    def incremental(self) -> bool:
        return self._storage.incremental

    def write(self, place: str, task: str, state: Encoded) -> StateFile:
        self._probe.reached("state write begins", f"{place}/{task}", 0)
        try:
            file = self._storage.write(place, task, state)
        except BaseException:
            self._probe.reached("given up", f"{place}/{task}", 0)
            raise
        self._probe.reached("state write ends", f"{place}/{task}", file.size)
        return file

    def complete(self, place: str, manifest: Manifest) -> None:
        self._probe.reached("manifest write begins", place, manifest.checkpoint_id)
        try:
            self._storage.complete(place, manifest)
        except BaseException:
            self._probe.reached("given up", place, manifest.checkpoint_id)
            raise
        self._probe.reached("manifest write ends", place, manifest.checkpoint_id)

    def discard(self, place: str) -> None:
        self._probe.reached("cleanup", place, 0)
        try:
            self._storage.discard(place)
        finally:
            self._probe.reached("cleanup ends", place, 0)

    def keep(self, name: str, content: bytes) -> None:
        self._storage.keep(name, content)
        self._probe.reached("offsets write ends", name, 0)

    def kept(self, name: str) -> bytes:
        return self._storage.kept(name)

    def manifests(self) -> Sequence[Manifest]:
        return self._storage.manifests()

    def savepoint(self, name: str) -> Manifest | None:
        return self._storage.savepoint(name)

    def latest(self) -> Manifest | None:
        return self._storage.latest()

    def highest_id(self) -> int:
        return self._storage.highest_id()

    def savepoints(self) -> Sequence[Manifest]:
        return self._storage.savepoints()

    def states(self, manifest: Manifest, file: StateFile) -> dict[str, Snapshot]:
        self._probe.reached("state read", file.task, manifest.checkpoint_id)
        states = self._storage.states(manifest, file)
        self._probe.state_read(file.task, states)
        return states

    def path_of(self, place: str) -> str:
        return self._storage.path_of(place)


class ProbedTables(Tables):
    """Committed tables that report when rows become visible."""

    def __init__(self, probe: Probe) -> None:
        super().__init__()
        self._probe = probe

    def commit(self, name: str, subtask: int, epoch: int, table: pa.Table) -> None:
        self._probe.reached("rows begin", f"{name}/{subtask}", epoch)
        super().commit(name, subtask, epoch, table)
        self._probe.reached("rows end", f"{name}/{subtask}", epoch)
