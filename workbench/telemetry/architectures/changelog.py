"""A frame of the changelog of a job: how far the log of state changes is ahead of the positions of the sources."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.source_task import SourceTask

SHOWN = 20
"""The maximum number of log entries in a frame."""


@dataclass(frozen=True, slots=True)
class PositionFrame:
    """How far one source subtask has read, in records.

    Attributes:
        read: records read so far.
        saved: records read up to the last saved position; None: none has been saved yet.
    """

    task: str
    read: int
    saved: int | None


@dataclass(frozen=True, slots=True)
class EntryFrame:
    """One complete entry of the log.

    Attributes:
        checkpoint_id: its number.
        twice: records that a failure after it would apply twice, by task; only tasks that have any.
        size_bytes: bytes written for it.
        full_bytes: bytes that a restore reads.
    """

    checkpoint_id: int
    twice: tuple[tuple[str, int], ...]
    size_bytes: int
    full_bytes: int


@dataclass(frozen=True, slots=True)
class ChangelogFrame:
    """The changelog of a job.

    Attributes:
        interval_us: between two entries; None: no entries are written at intervals.
        offset_interval_us: between two positions that the sources save.
        positions: of the source subtasks.
        entries: the last complete entries, oldest first.
    """

    interval_us: int | None
    offset_interval_us: int
    positions: tuple[PositionFrame, ...]
    entries: tuple[EntryFrame, ...]

    @property
    def twice(self) -> int:
        """The largest number of records that a failure now would apply twice in one operator.

        Example:
            >>> ChangelogFrame(None, 1, (), (EntryFrame(3, (("sum[0]", 5), ("in[0]", 5)), 0, 0),)).twice
            5
        """
        return max((count for _, count in self.entries[-1].twice), default=0) if self.entries else 0


def changelog_frame(master: Master) -> ChangelogFrame | None:
    """A frame of the changelog; None if there is none."""
    settings = master.settings
    offset_us = settings.policy.offset_interval_us
    if offset_us is None:
        return None
    execution = master.execution
    sources = () if execution is None else tuple(execution.sources)
    complete = [record for record in tuple(master.coordinator.history) if record.state == "COMPLETED"]
    return ChangelogFrame(
        settings.periodic_interval_us,
        offset_us,
        tuple(_position(source) for source in sources),
        tuple(_entry(record) for record in complete[-SHOWN:]),
    )


def _position(source: SourceTask) -> PositionFrame:
    saved_at, received = source.snapshots.saved_at, source.snapshots.records_in
    read = source.reader.rows_read
    read = received if read is None else read
    return PositionFrame(source.name, read, None if saved_at is None else read - (received - saved_at))


def _entry(record: CheckpointRecord) -> EntryFrame:
    acks = sorted(record.acknowledgements.copy().items())
    twice = tuple((task, ack.early_records) for task, ack in acks if ack.early_records)
    return EntryFrame(record.checkpoint_id, twice, record.size_bytes, record.full_size_bytes)
