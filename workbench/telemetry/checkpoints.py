"""The history of checkpoints as frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from workbench.operators.process.process import Process
from workbench.runtime.barriers.policies import policy_of
from workbench.runtime.checkpoints.checkpoint_record import Acknowledgement, CheckpointRecord
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.job.master import Master
from workbench.telemetry.checkpoint_frames import (
    CheckpointFrame,
    CheckpointingFrame,
    RestoreFrame,
    SubtaskCheckpointFrame,
)


class CheckpointSampler:
    """Reads a coordinator's history; each checkpoint that has ended is read once, and all frames share the result."""

    def __init__(self) -> None:
        self._ended: dict[int, CheckpointFrame] = {}
        self._frames: tuple[CheckpointFrame, ...] = ()
        self._earlier: dict[int, CheckpointFrame] = {}

    def sample(self, coordinator: CheckpointCoordinator, now_us: int) -> tuple[CheckpointFrame, ...]:
        """All remembered checkpoints, oldest first."""
        ended: dict[int, CheckpointFrame] = {}
        frames: list[CheckpointFrame] = []
        for record in tuple(coordinator.history):
            over = record.state != "IN_PROGRESS"  # asked first: what is over stays unchanged while it is read
            frame = _read(self._ended, coordinator, record, now_us)
            frames.append(frame)
            if over:
                ended[record.checkpoint_id] = frame
        self._ended = ended
        if len(ended) < len(frames) or tuple(frames) != self._frames:
            self._frames = tuple(frames)
        return self._frames

    def earlier(self, coordinator: CheckpointCoordinator, now_us: int) -> tuple[CheckpointFrame, ...]:
        """The latest checkpoint of each kind, if the history has dropped it, oldest first."""
        records = sorted(coordinator.latest_records.copy().values(), key=lambda record: record.checkpoint_id)
        known = coordinator.history.copy()
        self._earlier = {
            record.checkpoint_id: _read(self._earlier, coordinator, record, now_us)
            for record in records
            if known and record.checkpoint_id < known[0].checkpoint_id
        }
        return tuple(self._earlier.values())


def _read(
    read: Mapping[int, CheckpointFrame], coordinator: CheckpointCoordinator, record: CheckpointRecord, now_us: int
) -> CheckpointFrame:
    """The frame of a checkpoint; one that was read after its end is reused."""
    frame = read.get(record.checkpoint_id)
    if frame is None:
        return _checkpoint(coordinator, record, now_us)
    return replace(frame, discarded=True) if record.discarded and not frame.discarded else frame


def restore_frame(master: Master) -> RestoreFrame | None:
    """The latest restore of tasks from a checkpoint; None if there was none."""
    restore = master.last_restore
    if restore is None:
        return None
    path = master.storage.path_of(restore.place)
    return RestoreFrame(restore.checkpoint_id, restore.time_us, restore.savepoint, path)


class CheckpointingSampler:
    """Describes a job's checkpointing from its plan and its storage, which rarely change."""

    def __init__(self) -> None:
        self._storage: object = None
        self._plan: object = None
        self._frame: CheckpointingFrame | None = None

    def of(self, master: Master) -> CheckpointingFrame:
        """The checkpointing of this master's job."""
        if self._frame is None or self._storage is not master.storage or self._plan is not master.logical:
            self._storage, self._plan = master.storage, master.logical
            specs = ((uid, node.spec) for node, uid in master.logical.uids.items())
            self._frame = CheckpointingFrame(
                storage=master.storage.path_of(""),
                incremental=master.storage.incremental,
                on_disk=tuple(uid for uid, spec in specs if isinstance(spec, Process) and spec.state_backend == "disk"),
            )
        return self._frame


def _checkpoint(coordinator: CheckpointCoordinator, record: CheckpointRecord, now_us: int) -> CheckpointFrame:
    acks = record.acknowledgements.copy()
    return CheckpointFrame(
        id=record.checkpoint_id,
        state=record.state,
        kind=record.kind,
        triggered_us=record.triggered_us,
        acknowledged=record.acknowledged,
        total=len(record.tasks),
        duration_ms=((record.ended_us or now_us) - record.triggered_us) / 1_000,
        size_bytes=record.size_bytes,
        full_size_bytes=record.full_size_bytes,
        reason=record.reason,
        path=coordinator.path_of(record) if record.state == "COMPLETED" else "",
        discarded=record.discarded,
        mode=record.mode,
        stall_ms=_stall_ms(record, now_us) if policy_of(record.mode).stops_sources else None,
        subtasks=tuple(_subtask(task, acks.get(task), record.triggered_us) for task in record.tasks),
    )


def _stall_ms(record: CheckpointRecord, now_us: int) -> float:
    """Milliseconds from the first snapshot, which is a source's, to the end of the checkpoint."""
    taken = [ack.taken_us for ack in record.acknowledgements.copy().values()]
    return ((record.ended_us or now_us) - min(taken)) / 1_000 if taken else 0.0


def _subtask(task: str, ack: Acknowledgement | None, triggered_us: int) -> SubtaskCheckpointFrame:
    if ack is None:
        return SubtaskCheckpointFrame(task, acknowledged=False)
    written = ack.written_us
    return SubtaskCheckpointFrame(
        task=task,
        acknowledged=ack.file is not None,
        start_delay_ms=ack.start_delay_us / 1_000,
        alignment_ms=ack.alignment_us / 1_000,
        sync_ms=ack.sync_us / 1_000,
        async_ms=None if written is None else (written - ack.taken_us) / 1_000,
        end_to_end_ms=None if written is None else (written - triggered_us) / 1_000,
        size_bytes=ack.file.written if ack.file is not None else 0,
        unaligned=ack.unaligned,
        processed_records=ack.processed_records,
        persisted_records=ack.persisted_records,
        persisted_bytes=ack.persisted_bytes,
        early_records=ack.early_records,
        full_size_bytes=ack.file.full_size if ack.file is not None else 0,
        processed_bytes=ack.processed_bytes,
    )
