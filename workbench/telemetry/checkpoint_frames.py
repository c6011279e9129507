"""Checkpoints in frames: each checkpoint, what each subtask did for it, and the configuration.

The fields and their names are those of the tab *Checkpoints* in Flink's web interface; sizes are in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SubtaskCheckpointFrame:
    """What one task did for one checkpoint; durations in milliseconds, None until known.

    Attributes:
        end_to_end_ms: from the trigger until the coordinator received the acknowledgement.
        size_bytes: bytes written for the checkpoint (see `CheckpointFrame`).
        unaligned: whether its barrier has overtaken in-flight records.
        processed_records: records that it received between its first barrier and its last.
        persisted_records, persisted_bytes: in-flight data that is part of the checkpoint.
        early_records: ours; records in its state that arrived behind a barrier (at-least-once mode).
        full_size_bytes, processed_bytes: None in recordings of versions without them.
    """

    task: str
    acknowledged: bool
    start_delay_ms: float | None = None
    alignment_ms: float | None = None
    sync_ms: float | None = None
    async_ms: float | None = None
    end_to_end_ms: float | None = None
    size_bytes: int = 0
    unaligned: bool = False
    processed_records: int = 0
    persisted_records: int = 0
    persisted_bytes: int = 0
    early_records: int = 0
    full_size_bytes: int | None = None
    processed_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointFrame:
    """One checkpoint, in progress or over.

    Attributes:
        duration_ms: from the trigger until it completed or failed, or until now.
        mode: name of its fault-tolerance policy, such as ``"exactly-once"``.
        stall_ms: how long it kept the sources from reading; None if its policy does not stop them.
        discarded: whether it was complete, and has been removed because newer ones replaced it.

    Example:
        >>> parts = (SubtaskCheckpointFrame("a[0]", True, end_to_end_ms=4.0), SubtaskCheckpointFrame("a[1]", False))
        >>> one = CheckpointFrame(7, "IN_PROGRESS", "periodic", 1_000_000, 1, 2, 9.0, 120, subtasks=parts)
        >>> one.end_to_end_ms, one.latest_acknowledgement_us, one.ended_us
        (4.0, 1004000, None)
    """

    id: int
    state: Literal["IN_PROGRESS", "COMPLETED", "FAILED"]
    kind: Literal["periodic", "manual", "savepoint", "final"]
    triggered_us: int
    acknowledged: int
    total: int
    duration_ms: float
    size_bytes: int
    """Bytes written for it: Flink's checkpointed data size."""
    full_size_bytes: int = 0
    """Bytes that a restore reads: Flink's full checkpoint data size; more than was written if it is incremental."""
    reason: str = ""
    """Why it failed."""
    path: str = ""
    mode: str = "exactly-once"
    stall_ms: float | None = None
    subtasks: tuple[SubtaskCheckpointFrame, ...] = ()
    discarded: bool = False

    @property
    def unaligned(self) -> bool:
        """Whether a barrier has overtaken in-flight records, from the start or after a timeout."""
        return any(task.unaligned for task in self.subtasks)

    @property
    def persisted_bytes(self) -> int:
        """Bytes of in-flight data that are part of it."""
        return sum(task.persisted_bytes for task in self.subtasks)

    @property
    def processed_bytes(self) -> int | None:
        """Bytes that tasks received between their first barrier and their last; None if no task reports them."""
        told = [task.processed_bytes for task in self.subtasks if task.processed_bytes is not None]
        return sum(told) if told else None

    @property
    def end_to_end_ms(self) -> float | None:
        """From the trigger to the latest acknowledgement; None before the first."""
        return max((task.end_to_end_ms for task in self.subtasks if task.end_to_end_ms is not None), default=None)

    @property
    def latest_acknowledgement_us(self) -> int | None:
        """When the coordinator received the latest acknowledgement; None before the first."""
        after_ms = self.end_to_end_ms
        return None if after_ms is None else self.triggered_us + round(after_ms * 1_000)

    @property
    def ended_us(self) -> int | None:
        """When it was complete (its manifest durable) or failed; None while it is in progress."""
        return None if self.state == "IN_PROGRESS" else self.triggered_us + round(self.duration_ms * 1_000)


@dataclass(frozen=True, slots=True)
class RestoreFrame:
    """A restore of tasks from a checkpoint.

    Attributes:
        id: of the checkpoint.
        time_us: when the tasks were restored.
        savepoint: whether it is a savepoint.
        path: as shown to users; empty for a checkpoint in memory.
    """

    id: int
    time_us: int
    savepoint: bool
    path: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointingFrame:
    """Where checkpoints are stored, and how state is kept; values that can be tuned are in the job's settings.

    Attributes:
        storage: the directory or URI; empty for checkpoints in memory.
        incremental: whether only the changes of large state tables are written.
        on_disk: uids of the operators that keep their state on disk; all others keep it in memory.
    """

    storage: str
    incremental: bool
    on_disk: tuple[str, ...] = ()
