"""The checkpoint coordinator: triggers checkpoints, collects acknowledgements, makes them complete, keeps the history.

It is stepped by the job's master and lives as long as the job; tasks come and go with each attempt. A checkpoint is
complete when every task has acknowledged it and its manifest is durable, and only then are the tasks told to commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from workbench.elements import CheckpointBarrier
from workbench.operators.base import Snapshot
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.background import Background
from workbench.runtime.deployment import Execution
from workbench.runtime.encoding import encode
from workbench.runtime.messages import Abort, SnapshotTaken, Trigger
from workbench.runtime.settings import Settings
from workbench.runtime.storage import CheckpointStorage, Manifest, StateFile, folder_of

Kind = Literal["periodic", "manual", "savepoint", "final"]
HISTORY = 50


@dataclass(slots=True)
class Acknowledgement:
    """What one task did for a checkpoint; times in microseconds."""

    start_delay_us: int
    alignment_us: int
    sync_us: int
    taken_us: int
    written_us: int | None = None
    file: StateFile | None = None


@dataclass(slots=True)
class CheckpointRecord:
    """One checkpoint in the job's history."""

    checkpoint_id: int
    kind: Kind
    triggered_us: int
    tasks: tuple[str, ...]
    savepoint: str | None = None
    state: Literal["IN_PROGRESS", "COMPLETED", "FAILED"] = "IN_PROGRESS"
    ended_us: int | None = None
    reason: str = ""
    acknowledgements: dict[str, Acknowledgement] = field(default_factory=dict)
    completing: bool = False

    @property
    def place(self) -> str:
        """Its folder within the storage."""
        return folder_of(self.checkpoint_id, self.savepoint)

    @property
    def acknowledged(self) -> int:
        """Tasks whose state is written."""
        return sum(ack.file is not None for ack in self.acknowledgements.copy().values())

    @property
    def size_bytes(self) -> int:
        """Bytes written so far."""
        return sum(ack.file.written for ack in self.acknowledgements.copy().values() if ack.file is not None)

    @property
    def full_size_bytes(self) -> int:
        """Bytes that a restore reads: what earlier checkpoints wrote for it is among them."""
        return sum(ack.file.full_size for ack in self.acknowledgements.copy().values() if ack.file is not None)


class CheckpointCoordinator:
    """Checkpoints of one job.

    Args:
        job: its name.
        storage: where they go.
        background: does the writing.
        graph: the plan; its operators' parallelism goes into the manifest.
        first_id: id of the first checkpoint.

    Attributes:
        on_complete: told of a checkpoint that has become complete, unless its attempt is over.
        on_failed: told of one that was given up.
    """

    def __init__(
        self,
        *,
        job: str,
        storage: CheckpointStorage,
        background: Background,
        graph: PhysicalGraph,
        first_id: int,
    ) -> None:
        self._job = job
        self._storage = storage
        self._background = background
        self._parallelism = graph.parallelism
        self._next_id = first_id
        self.on_complete: Callable[[CheckpointRecord], None] = lambda record: None
        self.on_failed: Callable[[CheckpointRecord], None] = lambda record: None
        self._attempt: Execution | None = None
        self._due_us: int | None = None
        self._retained: deque[str] = deque(manifest.place for manifest in storage.manifests())
        self.pending: CheckpointRecord | None = None
        self.history: deque[CheckpointRecord] = deque(maxlen=HISTORY)
        self.latest: Manifest | None = None
        self.completed = 0
        self.failed = 0

    def plan_changed(self, graph: PhysicalGraph) -> None:
        """Further attempts run by another plan."""
        self._parallelism = graph.parallelism

    def start(self, attempt: Execution, settings: Settings, now_us: int) -> None:
        """A new attempt runs; the first periodic checkpoint is due after one interval."""
        self._attempt = attempt
        self.reschedule(settings, now_us)

    def stop(self, reason: str, now_us: int) -> None:
        """The attempt is over: what is in progress is given up, unless its manifest is on its way to the disk.

        Such a checkpoint may already be complete for whoever reads the directory; until it is known whether it is,
        ``settled`` is False and no new attempt may start from an older one.
        """
        if self.pending is not None and not self.pending.completing:
            self._fail(self.pending, reason, now_us)
        self._attempt = None
        self._due_us = None

    @property
    def settled(self) -> bool:
        """Whether it is known which checkpoint is the latest complete one."""
        return self.pending is None or not self.pending.completing

    def reschedule(self, settings: Settings, now_us: int) -> None:
        """Another interval is in force."""
        interval = settings.checkpoint_interval_us
        self._due_us = None if interval is None else now_us + interval

    def next_due_us(self, settings: Settings) -> int | None:
        """When ``step`` has something to do."""
        if self.pending is not None:
            return self.pending.triggered_us + settings.checkpoint_timeout_us
        return self._due_us

    def step(self, settings: Settings, now_us: int) -> None:
        """Trigger what is due, and give up what takes too long."""
        pending = self.pending
        if pending is not None:
            if not pending.completing and now_us - pending.triggered_us >= settings.checkpoint_timeout_us:
                self._fail(pending, "timed out", now_us)
            return
        if self._due_us is not None and now_us >= self._due_us and self._attempt is not None:
            self.trigger("periodic", settings, now_us)

    def trigger(
        self, kind: Kind, settings: Settings, now_us: int, savepoint: str | None = None
    ) -> CheckpointRecord | None:
        """Begin a checkpoint now; None when one is in progress or no attempt runs."""
        if self.pending is not None or self._attempt is None:
            return None
        tasks = tuple(task.name for task in self._attempt.tasks)
        record = CheckpointRecord(self._next_id, kind, now_us, tasks, savepoint)
        self._next_id += 1
        self.pending = record
        self.history.append(record)
        self.reschedule(settings, now_us)
        self._attempt.tell_sources(Trigger(CheckpointBarrier(record.checkpoint_id, now_us)))
        return record

    def snapshot_taken(self, report: SnapshotTaken, now_us: Callable[[], int]) -> None:
        """A task has copied its state: write it in the background, and count it when it is written."""
        record = self.pending
        if record is None or record.checkpoint_id != report.barrier.checkpoint_id:
            return  # of a checkpoint that was given up
        ack = Acknowledgement(report.start_delay_us, report.alignment_us, report.sync_us, report.taken_us)
        record.acknowledgements[report.task] = ack
        states: dict[str, Snapshot] = report.states

        def write() -> StateFile:
            return self._storage.write(record.place, report.task, encode(states))

        def written(result: StateFile | Exception) -> None:
            if isinstance(result, Exception):
                self._fail(record, f"{report.task} could not be written: {result}", now_us())
                return
            ack.file = result
            ack.written_us = now_us()
            if record.state == "IN_PROGRESS" and record.acknowledged == len(record.tasks):
                self._make_complete(record, now_us)

        self._background.submit(write, written)

    def _make_complete(self, record: CheckpointRecord, now_us: Callable[[], int]) -> None:
        record.completing = True
        files = tuple(ack.file for ack in record.acknowledgements.values() if ack.file is not None)
        manifest = Manifest(
            checkpoint_id=record.checkpoint_id,
            job=self._job,
            kind=record.kind,
            triggered_us=record.triggered_us,
            completed_us=now_us(),
            parallelism=self._parallelism,
            files=files,
            place=record.place,
        )

        def durable(result: Exception | None) -> None:
            if isinstance(result, Exception):
                self._fail(record, f"the manifest could not be written: {result}", now_us())
                return
            record.state = "COMPLETED"
            record.ended_us = now_us()
            self.pending = None
            self.completed += 1
            self.latest = manifest
            if self._attempt is not None:
                self.on_complete(record)
            if record.savepoint is None:
                self._retained.append(record.place)

        self._background.submit(lambda: self._storage.complete(record.place, manifest), durable)

    def path_of(self, record: CheckpointRecord) -> str:
        """Where a person finds a checkpoint; empty in memory."""
        return self._storage.path_of(record.place)

    def retain(self, settings: Settings) -> None:
        """Remove the oldest checkpoints beyond those that are kept."""
        while len(self._retained) > settings.retained_checkpoints:
            place = self._retained.popleft()
            self._background.submit(lambda place=place: self._storage.discard(place), _ignore)  # type: ignore[misc]

    def _fail(self, record: CheckpointRecord, reason: str, now_us: int) -> None:
        if record.state != "IN_PROGRESS":
            return
        record.state = "FAILED"
        record.reason = reason
        record.ended_us = now_us
        self.pending = None
        self.failed += 1
        if self._attempt is not None:
            self._attempt.tell(Abort(record.checkpoint_id))
        self._background.submit(lambda: self._storage.discard(record.place), _ignore)
        self.on_failed(record)


def _ignore(_: object) -> None:
    """What could not be removed is removed when the directory is opened the next time."""
