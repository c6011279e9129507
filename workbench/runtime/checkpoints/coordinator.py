"""The checkpoint coordinator: triggers checkpoints, collects acknowledgements, completes them and keeps the history.

The job's master steps it. It lives as long as the job, while tasks come and go with each attempt. A checkpoint is
complete when every task has acknowledged it and its manifest is durable; only then are tasks notified to commit.

Several may be in progress. A complete one makes older ones superfluous (I8); a failed one does not affect the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from workbench.elements import CheckpointBarrier
from workbench.errors import CheckpointError
from workbench.operators.contract.base import Snapshot
from workbench.plan.physical import PhysicalGraph
from workbench.raised import message_of
from workbench.redaction import redacted
from workbench.runtime.barriers.aligned import EXACTLY_ONCE
from workbench.runtime.barriers.snapshots import SnapshotTaken
from workbench.runtime.checkpoints.background import Background
from workbench.runtime.checkpoints.checkpoint_record import Acknowledgement, CheckpointRecord, Kind
from workbench.runtime.messages.messages import Abort, Trigger
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import CheckpointStorage, Manifest, StateFile
from workbench.runtime.storage.encoding import encode
from workbench.runtime.tasks.execution import Execution

HISTORY = 50


class CheckpointCoordinator:
    """Checkpoints of one job.

    Args:
        job: its name.
        storage: where checkpoints are kept.
        background: does the writing.
        graph: the plan; its operators' parallelism and the number of key groups go into the manifest.
        first_id: id of the first checkpoint.

    Attributes:
        on_begun: called with each checkpoint before the sources are triggered.
        on_complete: called with each checkpoint that completes, unless its attempt is over.
        on_failed: called with each checkpoint that fails.
        in_progress: by id, oldest first.
        failures: failed checkpoints since the last complete one, as far as the job itself is to blame.
        latest_records: the latest complete checkpoint (``"COMPLETED"``), failed checkpoint (``"FAILED"``) and complete
            savepoint (``"savepoint"``), where there is one; they may be older than the history.
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
        self._max_parallelism = graph.max_parallelism
        self._kinds = graph.kinds
        self._next_id = first_id
        self.on_begun: Callable[[CheckpointRecord], None] = lambda record: None
        self.on_savepoint: Callable[[CheckpointRecord], None] = lambda record: None
        self.on_complete: Callable[[CheckpointRecord], None] = lambda record: None
        self.on_failed: Callable[[CheckpointRecord], None] = lambda record: None
        self._attempt: Execution | None = None
        self._due_us: int | None = None
        self._ended_us: int | None = None
        self._offsets_us: int | None = None  # when sources have saved new positions, if these have a clock of their own
        self._retained: deque[str] = deque(manifest.place for manifest in storage.manifests())
        self.in_progress: dict[int, CheckpointRecord] = {}
        self.history: deque[CheckpointRecord] = deque(maxlen=HISTORY)
        self.latest_records: dict[str, CheckpointRecord] = {}
        self.latest: Manifest | None = None
        self.completed = 0
        self.failed = 0
        self.failures = 0

    def plan_changed(self, graph: PhysicalGraph) -> None:
        """Use another plan for further attempts."""
        self._parallelism = graph.parallelism

    def start(self, attempt: Execution, settings: Settings, now_us: int) -> None:
        """A new attempt runs; the first periodic checkpoint is due after one interval."""
        self._attempt = attempt
        self._ended_us = None
        self._offsets_us = None
        self.failures = 0
        self.reschedule(settings, now_us)

    def stop(self, reason: str, now_us: int) -> None:
        """The attempt is over: abort what is in progress, except a checkpoint whose manifest is being written.

        Such a checkpoint may already look complete to another reader of the directory. Until the outcome is known,
        ``settled`` is False and no new attempt may start from an older one.
        """
        for record in [record for record in self.in_progress.values() if not record.completing]:
            self._fail(record, reason, now_us, own_fault=False)
        self._attempt = None
        self._due_us = None

    @property
    def settled(self) -> bool:
        """Whether it is known which checkpoint is the latest complete one."""
        return not self.in_progress or not any(record.completing for record in self.in_progress.values())

    def reschedule(self, settings: Settings, now_us: int) -> None:
        """Apply a changed interval; while no attempt runs nothing is due, and ``start`` counts from its own time.

        Otherwise a checkpoint that is due but cannot begin would keep the master turning idly.
        """
        interval = None if self._attempt is None else settings.periodic_interval_us
        self._due_us = None if interval is None else now_us + interval

    def next_due_us(self, settings: Settings) -> int | None:
        """When ``step`` has something to do."""
        due_us = self._next_begin_us(settings)
        for record in self.in_progress.values():
            if not record.completing:
                times_out_us = record.triggered_us + settings.checkpoint_timeout_us
                due_us = times_out_us if due_us is None else min(due_us, times_out_us)
        return due_us

    def _next_begin_us(self, settings: Settings) -> int | None:
        """When the next periodic checkpoint may begin: after the interval and after the minimum pause."""
        if self._due_us is None or not self.may_begin(settings):
            return None
        pause_us = settings.min_pause_us
        if settings.policy.stops_sources:  # otherwise the sources might never read again
            pause_us = max(pause_us, settings.periodic_interval_us or 0)
        if self._ended_us is None or not pause_us:
            return self._due_us
        return max(self._due_us, self._ended_us + pause_us)

    def may_begin(self, settings: Settings) -> bool:
        """Whether another checkpoint may be in progress."""
        if not self.in_progress:
            return True
        if any(record.alone for record in self.in_progress.values()):
            return False
        if (batches := settings.policy.batches) is not None:
            return len(self.in_progress) < batches.most
        limit = 1 if settings.min_pause_us else settings.max_concurrent_checkpoints
        return len(self.in_progress) < limit

    def intolerable(self, settings: Settings) -> CheckpointError | None:
        """The error that fails the job: more checkpoints in a row have failed than it tolerates."""
        # The records of a batch that cannot be committed are to be processed again.
        tolerable = settings.tolerable_failed_checkpoints if settings.policy.batches is None else 0
        if tolerable is None or self.failures <= tolerable:
            return None
        reason = self.latest_records["FAILED"].reason
        if settings.policy.batches is not None:
            return CheckpointError(f"the batch could not be committed ({reason}), so its records are processed again")
        return CheckpointError(
            f"{self.failures} checkpoints in a row failed, the last one: {reason} "
            f"(tolerable_failed_checkpoints is {tolerable}): find out why, or tolerate more"
        )

    def step(self, settings: Settings, now_us: int) -> None:
        """Trigger what is due, and abort checkpoints that exceed their timeout."""
        timed_out = [
            record
            for record in self.in_progress.values()
            if not record.completing and now_us - record.triggered_us >= settings.checkpoint_timeout_us
        ]
        for record in timed_out:
            self._fail(record, "timed out", now_us)
        if timed_out:
            return  # requests go first: periodic checkpoints without a gap would keep them waiting forever
        begin = self._next_begin_us(settings)
        if begin is not None and now_us >= begin and self._attempt is not None:
            self.trigger("periodic", settings, now_us)

    def trigger(
        self,
        kind: Kind,
        settings: Settings,
        now_us: int,
        savepoint: str | None = None,
        *,
        aligned: bool = False,
        alone: bool = False,
    ) -> CheckpointRecord | None:
        """Begin a checkpoint now; returns None when too many are in progress or no attempt runs.

        Args:
            kind: why it is taken.
            settings: the current settings.
            now_us: processing time.
            savepoint: its name, if it is one.
            aligned: whatever the mode, the state holds everything before the barriers and nothing behind them, and
                nothing is in flight.
            alone: begin no other checkpoint until this one has ended.
        """
        if self._attempt is None or not self.may_begin(settings):
            return None
        policy = settings.policy
        if aligned and not policy.aligned:
            policy = EXACTLY_ONCE
        after_us = 0 if policy.overtakes else settings.aligned_checkpoint_timeout_us
        overtakes = after_us is not None and (policy.overtakes or (policy.switches and not aligned))
        record = CheckpointRecord(
            self._next_id,
            kind,
            now_us,
            tuple(task.name for task in self._attempt.tasks),
            savepoint,
            policy.mode,
            alone or overtakes or bool(policy.one_at_a_time),
        )
        self._next_id += 1
        self.in_progress[record.checkpoint_id] = record
        self.history.append(record)
        self.reschedule(settings, now_us)
        overtakes_at_us = now_us + after_us if overtakes and after_us is not None else None
        offsets = self._saves_offsets(policy.offset_interval_us, now_us)
        barrier = CheckpointBarrier(
            record.checkpoint_id,
            now_us,
            policy.mode,
            overtakes_at_us,
            offsets=offsets,
            outputs_only=policy.outputs_only,
            savepoint=savepoint is not None,
        )
        self.on_begun(record)
        self._attempt.tell_sources(Trigger(barrier))
        return record

    def _saves_offsets(self, interval_us: int | None, now_us: int) -> bool | None:
        """Whether sources save new positions with a checkpoint that begins now; None: no clock decides it."""
        if interval_us is None:
            return None
        if self._offsets_us is not None and now_us - self._offsets_us < interval_us:
            return False
        self._offsets_us = now_us
        return True

    def taken_by(self, tasks: Iterable[str]) -> bool:
        """Whether these tasks have taken their snapshots for all checkpoints in progress."""
        names = set(tasks)
        return all(names <= record.acknowledgements.keys() for record in self.in_progress.values())

    def snapshot_taken(self, report: SnapshotTaken, now_us: Callable[[], int]) -> None:
        """A task has copied its state: write it in the background, and acknowledge it once it is written."""
        record = self.in_progress.get(report.barrier.checkpoint_id)
        if record is None or report.task in record.acknowledgements:
            return  # of an aborted checkpoint, or a duplicate
        ack = Acknowledgement(
            report.start_delay_us,
            report.alignment_us,
            report.sync_us,
            report.taken_us,
            report.unaligned,
            report.processed_records,
            sum(piece.rows for piece in report.in_flight),
            sum(piece.size_bytes for piece in report.in_flight),
            report.early_records,
            report.processed_bytes,
            records_in=report.records_in,
            late_records=report.late_records,
        )
        record.acknowledgements[report.task] = ack
        states: dict[str, Snapshot] = report.states

        def write() -> StateFile:
            return self._storage.write(record.place, report.task, encode(states))

        def written(result: StateFile | Exception) -> None:
            if isinstance(result, Exception):
                self._fail(record, f"{report.task} could not be written: {message_of(result)}", now_us())
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
            kinds=self._kinds,
            max_parallelism=self._max_parallelism,
        )

        def durable(result: Exception | None) -> None:
            if isinstance(result, Exception):
                self._fail(record, f"the manifest could not be written: {message_of(result)}", now_us())
                return
            self._completed(record, manifest, now_us())

        self._background.submit(lambda: self._storage.complete(record.place, manifest), durable)

    def _completed(self, record: CheckpointRecord, manifest: Manifest, now_us: int) -> None:
        del self.in_progress[record.checkpoint_id]
        record.state = "COMPLETED"
        record.ended_us = self._ended_us = now_us
        self.completed += 1
        self.failures = 0
        self.latest_records["savepoint" if record.kind == "savepoint" else "COMPLETED"] = record
        newest = self.latest is None or manifest.checkpoint_id > self.latest.checkpoint_id
        if newest:
            self.latest = manifest
        if record.savepoint is None:
            self._retained.append(record.place)
        for older in [older for older in self.in_progress.values() if older.checkpoint_id < record.checkpoint_id]:
            if not older.completing:
                reason = f"checkpoint {record.checkpoint_id} was completed first"
                self._fail(older, reason, now_us, own_fault=False)
        self.on_savepoint(record)  # even if the attempt that took it is over: a caller waits for it
        if newest and self._attempt is not None:
            self.on_complete(record)

    def reject(self, checkpoint_id: int, reason: str, now_us: int) -> None:
        """A checkpoint in progress cannot be completed."""
        if (record := self.in_progress.get(checkpoint_id)) is not None:
            self._fail(record, reason, now_us)

    def path_of(self, record: CheckpointRecord) -> str:
        """Path or URI of a checkpoint, for users; empty in memory."""
        return self._storage.path_of(record.place)

    def retain(self, settings: Settings) -> None:
        """Remove the oldest checkpoints beyond the number that is kept."""
        while len(self._retained) > settings.retained_checkpoints:
            place = self._retained.popleft()
            for record in (*self.history, *self.latest_records.values()):
                record.discarded |= record.place == place
            self._background.submit(lambda place=place: self._storage.discard(place), _ignore)  # type: ignore[misc]

    def _fail(self, record: CheckpointRecord, reason: str, now_us: int, *, own_fault: bool = True) -> None:
        if record.state != "IN_PROGRESS":
            return
        del self.in_progress[record.checkpoint_id]
        record.state = "FAILED"
        record.reason = redacted(reason)
        record.own_fault = own_fault
        record.ended_us = self._ended_us = now_us
        self.failed += 1
        self.failures += own_fault
        self.latest_records["FAILED"] = record
        if self._attempt is not None:
            self._attempt.tell(Abort(record.checkpoint_id))
        self._background.submit(lambda: self._storage.discard(record.place), _ignore)
        self.on_failed(record)


def _ignore(_: object) -> None:
    """Ignores a failed removal: it is repeated when the directory is next opened."""
