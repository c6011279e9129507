"""The crash points of the reliability tests, derived from what probes observe.

The names are those of the list of crash points, plus the sync of a folder after the renaming of a file. A point belongs
to the task that reaches it, or to the coordinator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Literal, Protocol

from workbench.drivers.contract.probes import Point, Probe
from workbench.elements import CheckpointBarrier, Element, EndOfInFlight, EndOfStream, Records
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.storage.manifest import MANIFEST
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task

COORDINATOR = "coordinator"
"""Owner of the points that belong to no task."""

CrashPoint = Literal[
    "before trigger",
    "after trigger",
    "barrier emission",
    "first barrier",
    "end of alignment",
    "synchronous part",
    "mid-file",
    "fsync",
    "rename",
    "folder sync",
    "acknowledge",
    "last acknowledge",
    "metadata write",
    "metadata rename",
    "notify",
    "pre-commit",
    "commit",
    "after commit",
    "cleanup",
    "restore read",
    "in-flight replay",
    "re-commit",
]

FaultPoint = CrashPoint | Literal["step", "process", "source read", "state write", "complete", "report", "restart"]
"""Our additions: between any two steps, before an operator processes a batch, before a source is read, before a task's
state is written, when the manifest is durable but not yet announced, when a task reports its snapshot, and between two
processes."""


_TOLD_AT: dict[FaultPoint, tuple[Point, ...]] = {
    "process": ("process",),
    "source read": ("source read",),
    "before trigger": ("trigger begins",),
    "after trigger": ("trigger ends",),
    "synchronous part": ("snapshot begins",),
    "pre-commit": ("snapshot ends",),
    "state write": ("state write begins",),
    "acknowledge": ("state write ends",),
    "last acknowledge": ("state write ends",),
    "complete": ("manifest write ends",),
    "cleanup": ("cleanup", "folder sync", "cleanup ends"),
    "restore read": ("state read",),
}
"""The points of a probe that identify a crash point alone. Other points on the way of an element are derived from its
events, those between two steps are reported by the driver; the rest depend on several points."""
_SENT: frozenset[FaultPoint] = frozenset({"barrier emission", "in-flight replay"})
_RECEIVED: frozenset[FaultPoint] = frozenset({"first barrier", "end of alignment"})
_UNPROBED: frozenset[FaultPoint] = frozenset({"step", "report", "restart"})


class Tell(Protocol):
    """Called when a crash point is reached; an exception that it raises is raised there."""

    def __call__(self, point: FaultPoint, owner: str) -> None: ...


class CrashPoints(Probe):
    """Reports the crash points of one run.

    Args:
        tell: receives them.
        places: the points that matter; None: all. Events for other points are not requested, because most of what
            happens in a run is far from its few faults.

    Attributes:
        sends: whether it needs the events of sent elements.
        receives: whether it needs the events of received elements.
    """

    def __init__(self, tell: Tell, places: Collection[FaultPoint] | None = None) -> None:
        self.points = None if places is None else _points_of(places)
        self.sends = places is None or not _SENT.isdisjoint(places)
        self.receives = places is None or not _RECEIVED.isdisjoint(places)
        self._tell = tell
        self._tasks: dict[str, Task] = {}
        self._open: dict[str, int] = {}
        self._arrived: dict[str, tuple[int, int]] = {}  # by task: the latest checkpoint, and the number of its barriers
        self._ends: set[str] = set()  # operators without output: the sinks
        self._written: defaultdict[str, set[str]] = defaultdict(set)
        self._writing = ""
        self._notified = ""
        self._cleaning = False
        self._restored = 0

    def attached(self, execution: Execution) -> None:
        before = self._tasks
        new = {task.name for task in execution.tasks if before.get(task.name) is not task}
        self._tasks = {task.name: task for task in execution.tasks}
        for task in new:
            self._open[task] = sum(channel.target == task for channel in execution.channels)
            self._arrived[task] = (0, 0)
        self._ends = {
            f"{task.name}/{link.uid}"
            for task in execution.tasks
            for link in task.links
            if not (link.children or link.edges or link.side_edges)
        }

    def sent(self, channel: Channel, element: Element) -> None:
        if type(element) is CheckpointBarrier:
            self._tell("barrier emission", channel.source)
        elif type(element) is EndOfInFlight or (type(element) is Records and self._replays(channel.source)):
            self._tell("in-flight replay", channel.source)

    def _replays(self, task: str) -> bool:
        restored = self._tasks[task].restored
        return restored is not None and not restored.sent

    def received(self, channel: Channel, element: Element) -> None:
        task = channel.target
        if type(element) is EndOfStream:
            self._open[task] -= 1
        elif type(element) is CheckpointBarrier:
            latest, barriers = self._arrived[task]
            barriers = barriers + 1 if element.checkpoint_id == latest else 1
            self._arrived[task] = (element.checkpoint_id, barriers)
            if barriers == 1:
                self._tell("first barrier", task)
            if barriers == self._open[task]:
                self._tell("end of alignment", task)

    def reached(self, point: Point, owner: str, number: int) -> None:
        tell = self._tell
        match point:
            case "process":
                tell("process", owner.partition("/")[0])
            case "source read":
                tell("source read", owner)
            case "trigger begins":
                tell("before trigger", COORDINATOR)
            case "trigger ends":
                tell("after trigger", COORDINATOR)
            case "snapshot begins":
                tell("synchronous part", owner.partition("/")[0])
            case "snapshot ends" if owner in self._ends:
                tell("pre-commit", owner.partition("/")[0])
            case "state write begins":
                task = owner.rpartition("/")[2]
                tell("state write", task)
                self._writing = task
            case "state write ends":
                self._acknowledged(*owner.rpartition("/")[::2])
            case "mid-file" | "fsync" | "rename":
                self._file(point, owner)
            case "link" | "unlink" if not self._writing:
                self._committing()
            case "folder sync" if self._writing or self._notified:
                tell("folder sync", self._writing or self._notified)
            case "folder sync" if self._cleaning:  # the manifest is deleted, the rest is not
                tell("cleanup", COORDINATOR)
            case "given up":
                self._writing = self._notified = ""
            case "manifest write begins":
                tell("metadata write", COORDINATOR)
                self._writing = COORDINATOR
            case "manifest write ends":
                self._writing = ""
                tell("complete", COORDINATOR)
            case "commit begins":
                task = owner.partition("/")[0]
                tell("re-commit" if number == self._restored else "notify", task)
                self._notified = task
            case "commit ends":
                self._notified = ""
                if owner in self._ends:
                    tell("after commit", owner.partition("/")[0])
            case "rows begin" | "rows end":
                self._committing()
            case "cleanup":
                tell("cleanup", COORDINATOR)
                self._cleaning = True
            case "cleanup ends":
                self._cleaning = False
            case "state read":
                self._restored = number
                tell("restore read", owner)

    def _acknowledged(self, place: str, task: str) -> None:
        self._writing = ""
        written = self._written[place]
        written.add(task)
        self._tell("acknowledge", task)
        if len(written) == len(self._tasks):
            self._tell("last acknowledge", task)

    def _file(self, point: Literal["mid-file", "fsync", "rename"], path: str) -> None:
        if path.endswith(MANIFEST):
            self._tell("metadata rename" if point == "rename" else "metadata write", COORDINATOR)
        elif self._writing:
            self._tell(point, self._writing)
        elif point == "rename":
            self._committing()

    def _committing(self) -> None:
        """Rows become visible: a task was told to commit, or a restore finds them pre-committed."""
        if self._notified:
            self._tell("commit", self._notified)
        else:
            self._tell("re-commit", COORDINATOR)


def _points_of(places: Collection[FaultPoint]) -> frozenset[Point] | None:
    """The probe points that identify these crash points; None: all of them may be needed."""
    probed = set(places) - _SENT - _RECEIVED - _UNPROBED
    if not probed <= _TOLD_AT.keys():
        return None
    return frozenset(point for place in probed for point in _TOLD_AT[place])
