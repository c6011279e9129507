"""A frame of the changelog of a job: how far the log of the state is ahead of the positions of the sources."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.source_task import SourceTask

SHOWN = 20
"""Entries of the log in a frame."""


@dataclass(frozen=True, slots=True)
class PositionFrame:
    """How far one source subtask has read, in records.

    Attributes:
        read: so far.
        saved: at the position that it has saved last; None: none yet.
    """

    task: str
    read: int
    saved: int | None


@dataclass(frozen=True, slots=True)
class EntryFrame:
    """One complete entry of the log.

    Attributes:
        checkpoint_id: its number.
        twice: records that a failure behind it would apply twice, by task; only those that have any.
        size_bytes: what was written for it.
        full_bytes: what a restore reads.
    """

    checkpoint_id: int
    twice: tuple[tuple[str, int], ...]
    size_bytes: int
    full_bytes: int


@dataclass(frozen=True, slots=True)
class ChangelogFrame:
    """The changelog of a job.

    Attributes:
        interval_us: between two entries; None: there are none by themselves.
        offset_interval_us: after which the sources save new positions.
        positions: of the source subtasks.
        entries: the last complete ones, oldest first.
    """

    interval_us: int | None
    offset_interval_us: int
    positions: tuple[PositionFrame, ...]
    entries: tuple[EntryFrame, ...]

    @property
    def twice(self) -> int:
        """Records that a failure now would apply twice in the operator where most of them are.

        Example:
            >>> ChangelogFrame(None, 1, (), (EntryFrame(3, (("sum[0]", 5), ("in[0]", 5)), 0, 0),)).twice
            5
        """
        return max((count for _, count in self.entries[-1].twice), default=0) if self.entries else 0


def changelog_frame(master: Master) -> ChangelogFrame | None:
    """A frame of the changelog; None where there is none."""
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
