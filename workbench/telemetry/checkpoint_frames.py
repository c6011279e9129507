"""Checkpoints in frames: each checkpoint, the part of every subtask in it, and the configuration.

What Flink's web interface tells under its tab *Checkpoints* is here, under its words; sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SubtaskCheckpointFrame:
    """What one task did for one checkpoint; durations in milliseconds, None until known.

    Attributes:
        end_to_end_ms: from the trigger until the coordinator had its acknowledgement.
        size_bytes: written for it (see `CheckpointFrame`).
        unaligned: its barrier has overtaken what was in flight.
        processed_records: that it took in between its first barrier and its last.
        persisted_records, persisted_bytes: what was in flight and is part of the checkpoint.
        early_records: ours; in its state although they came behind a barrier (at least once).
        full_size_bytes, processed_bytes: None in recordings of a time when they were not told.
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
        duration_ms: from the trigger until it was over, or until now.
        mode: name of the fault-tolerance policy by which it was begun, such as ``"exactly-once"``.
        stall_ms: how long it kept the sources from reading, where its policy stops them.
        discarded: it was complete and has been removed since, because newer ones are kept.

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
    """Written for it: Flink's checkpointed data size."""
    full_size_bytes: int = 0
    """Read by a restore: Flink's full checkpoint data size; more than was written where it is incremental."""
    reason: str = ""
    """Why it failed."""
    path: str = ""
    mode: str = "exactly-once"
    stall_ms: float | None = None
    subtasks: tuple[SubtaskCheckpointFrame, ...] = ()
    discarded: bool = False

    @property
    def unaligned(self) -> bool:
        """Whether a barrier has overtaken what was in flight, be it only after a while."""
        return any(task.unaligned for task in self.subtasks)

    @property
    def persisted_bytes(self) -> int:
        """Bytes that were in flight and are part of it."""
        return sum(task.persisted_bytes for task in self.subtasks)

    @property
    def processed_bytes(self) -> int | None:
        """Bytes that tasks took in between their first barrier and their last; None where no task tells it."""
        told = [task.processed_bytes for task in self.subtasks if task.processed_bytes is not None]
        return sum(told) if told else None

    @property
    def end_to_end_ms(self) -> float | None:
        """From the trigger to the latest acknowledgement; None before the first."""
        return max((task.end_to_end_ms for task in self.subtasks if task.end_to_end_ms is not None), default=None)

    @property
    def latest_acknowledgement_us(self) -> int | None:
        """When the coordinator had the latest acknowledgement; None before the first."""
        after_ms = self.end_to_end_ms
        return None if after_ms is None else self.triggered_us + round(after_ms * 1_000)

    @property
    def ended_us(self) -> int | None:
        """When it was complete (its manifest durable) or failed; None while it is in progress."""
        return None if self.state == "IN_PROGRESS" else self.triggered_us + round(self.duration_ms * 1_000)


@dataclass(frozen=True, slots=True)
class RestoreFrame:
    """Tasks have gone on from a checkpoint.

    Attributes:
        id: of the checkpoint.
        time_us: when they were restored.
        savepoint: whether it is a savepoint.
        path: where a person finds it; empty in memory.
    """

    id: int
    time_us: int
    savepoint: bool
    path: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointingFrame:
    """Where checkpoints go and how state is kept; what can be tuned is among the job's settings.

    Attributes:
        storage: the directory or URI; empty where checkpoints are kept in memory.
        incremental: large tables of state are written by what has changed in them.
        on_disk: uids of the operators that keep their state on disk; all others have it in memory.
    """

    storage: str
    incremental: bool
    on_disk: tuple[str, ...] = ()
