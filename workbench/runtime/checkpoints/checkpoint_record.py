"""One checkpoint in a job's history: which tasks have acknowledged it, with their durations and sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from workbench.runtime.storage.manifest import StateFile, folder_of

Kind = Literal["periodic", "manual", "savepoint", "final"]


@dataclass(slots=True)
class Acknowledgement:
    """What one task did for a checkpoint; times in microseconds.

    Attributes:
        unaligned: the barrier has overtaken records.
        processed_records, processed_bytes: input during the alignment.
        persisted_records, persisted_bytes: in-flight data that is part of the checkpoint.
        early_records: records in the state that arrived behind a barrier.
        records_in, late_records: records that the task had received, and dropped as late, since it was deployed.
    """

    start_delay_us: int
    alignment_us: int
    sync_us: int
    taken_us: int
    unaligned: bool = False
    processed_records: int = 0
    persisted_records: int = 0
    persisted_bytes: int = 0
    early_records: int = 0
    processed_bytes: int = 0
    written_us: int | None = None
    file: StateFile | None = None
    records_in: int = 0
    late_records: int = 0


@dataclass(frozen=True, slots=True)
class Restore:
    """Tasks have resumed from a checkpoint.

    Attributes:
        checkpoint_id: of the checkpoint that they were restored from.
        savepoint: whether that was a savepoint.
        place: its folder within the storage.
        time_us: processing time.
    """

    checkpoint_id: int
    savepoint: bool
    place: str
    time_us: int


@dataclass(slots=True)
class CheckpointRecord:
    """One checkpoint in the job's history.

    Attributes:
        mode: name of the fault-tolerance policy at its start.
        alone: no other checkpoint begins while it is in progress.
        completing: its manifest is being written.
        own_fault: if it has failed: not because its attempt or the job was ended.
        discarded: it was complete and has since been removed, because only the newest are kept.
    """

    checkpoint_id: int
    kind: Kind
    triggered_us: int
    tasks: tuple[str, ...]
    savepoint: str | None = None
    mode: str = "exactly-once"
    alone: bool = False
    state: Literal["IN_PROGRESS", "COMPLETED", "FAILED"] = "IN_PROGRESS"
    ended_us: int | None = None
    reason: str = ""
    acknowledgements: dict[str, Acknowledgement] = field(default_factory=dict)
    completing: bool = False
    own_fault: bool = False
    discarded: bool = False

    @property
    def place(self) -> str:
        """Its folder within the storage."""
        return folder_of(self.checkpoint_id, self.savepoint)

    @property
    def acknowledged(self) -> int:
        """Number of tasks whose state is written."""
        return sum(ack.file is not None for ack in self.acknowledgements.copy().values())

    @property
    def size_bytes(self) -> int:
        """Bytes written so far."""
        return sum(ack.file.written for ack in self.acknowledgements.copy().values() if ack.file is not None)

    @property
    def full_size_bytes(self) -> int:
        """Bytes that a restore reads, including what earlier checkpoints wrote."""
        return sum(ack.file.full_size for ack in self.acknowledgements.copy().values() if ack.file is not None)
