"""The history of checkpoints as frames."""

from __future__ import annotations

from workbench.runtime.checkpoint_record import Acknowledgement, CheckpointRecord
from workbench.runtime.coordinator import CheckpointCoordinator
from workbench.telemetry.frames import CheckpointFrame, SubtaskCheckpointFrame


class CheckpointSampler:
    """Reads a coordinator's history; what has ended is read once, and all frames share what was read."""

    def __init__(self) -> None:
        self._ended: dict[int, CheckpointFrame] = {}
        self._frames: tuple[CheckpointFrame, ...] = ()

    def sample(self, coordinator: CheckpointCoordinator, now_us: int) -> tuple[CheckpointFrame, ...]:
        """All remembered checkpoints, oldest first."""
        ended: dict[int, CheckpointFrame] = {}
        frames: list[CheckpointFrame] = []
        for record in tuple(coordinator.history):
            over = record.state != "IN_PROGRESS"  # asked first: what is over now does not change while it is read
            frame = self._ended.get(record.checkpoint_id) or _checkpoint(coordinator, record, now_us)
            frames.append(frame)
            if over:
                ended[record.checkpoint_id] = frame
        self._ended = ended
        if len(ended) < len(frames) or tuple(frames) != self._frames:
            self._frames = tuple(frames)
        return self._frames


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
        mode=record.mode,
        stall_ms=_stall_ms(record, now_us) if record.mode == "stop-the-world" else None,
        subtasks=tuple(_subtask(task, acks.get(task), record.triggered_us) for task in record.tasks),
    )


def _stall_ms(record: CheckpointRecord, now_us: int) -> float:
    """From the first snapshot, which is a source's, to the end."""
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
    )
