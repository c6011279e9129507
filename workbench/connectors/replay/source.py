"""Replays a recorded history at the pace of its recording, or a multiple of it, or as fast as it can be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader, WaitUntil
from workbench.connectors.replay.log import ReplayLog
from workbench.connectors.replay.merge import Merge
from workbench.connectors.replay.pace import Pace
from workbench.elements import Records, event_times
from workbench.errors import HistoryError
from workbench.operators.contract.base import Json, OperatorContext, Snapshot
from workbench.operators.snapshots.pieces import value_in


@dataclass(frozen=True, slots=True)
class ReplaySource(Source):
    """A replay log as a source.

    The runtime uses it unlike other sources, because all readers of a job share one pace::

        pace = source.open_pace(clock.now_us())       # once per job, kept over its attempts
        reader = source.create(pace)                  # for every subtask, anew in every attempt
        reader.open(context)
        reader.restore(snapshots)                     # after a recovery; moves the pace to the snapshots' position
        pace.restart(source.log.start_us, now_us)     # instead, when an attempt starts again without a checkpoint

    Commands of users (speed, pause, resume, seek) go to the pace. A recovery goes back to the checkpoint, so later
    seeks are undone; speed and pause are kept.

    Attributes:
        log: the replayed log.
        speed: seconds of history per second at the start; ``math.inf`` for no pacing.
    """

    log: ReplayLog
    speed: float = math.inf

    @property
    def replay(self) -> ReplaySource:
        """Itself."""
        return self

    @property
    def schema(self) -> pa.Schema:
        """Columns of the records."""
        return self.log.schema

    @property
    def event_time(self) -> str:
        """The column that carries event time."""
        return self.log.event_time

    def describe(self) -> str:
        """For example ``flights.log, 2 channels``."""
        channels = self.log.channels
        return f"{self.log.path.name}, {channels} channel{'s' if channels != 1 else ''}"

    def open_pace(self, now_us: int) -> Pace:
        """Create a pace at the history's start at processing time `now_us`."""
        return Pace(self.speed, self.log.start_us, now_us=now_us, end_us=self.log.end_us, channels=self.log.channels)

    def create(self, pace: Pace | None = None) -> ReplayReader:
        """Create a reader for one subtask that keeps to `pace`; without one, the reader has its own pace."""
        return ReplayReader(self, pace)


BREATH_US = 5_000
"""How long a paced reader rests after it has read everything that was due: a fast replay reads chunks, not single
records, which would each cost a step."""


class ReplayReader(SourceReader):
    """Reads the channels i with ``i % parallelism == subtask``, in the order in which their records arrived.

    Each channel is a split, named after its number. The channels of one reader are one sequence: they have one event
    time, end together, and all their records belong to the first of these splits.

    Attributes:
        records_read: number of records read by this reader since it was opened or restored.
    """

    shares_event_time = True

    def __init__(self, source: ReplaySource, pace: Pace | None) -> None:
        self._source = source
        self._given_pace = pace
        self._merge: Merge
        self._channels: tuple[int, ...] = ()
        self._splits: tuple[str, ...] = ()
        self._generation = 0
        self._rested_us = 0
        self.records_read = 0

    def open(self, context: OperatorContext) -> None:
        """Acquire this subtask's channels, from their start."""
        self._clock = context.clock
        self._pace = self._given_pace or self._source.open_pace(context.clock.now_us())
        self._generation = self._pace.generation
        log = self._source.log
        self._channels = tuple(range(context.subtask, log.channels, context.parallelism))
        self._merge = log.merge(self._channels)
        self._begin()

    def splits(self) -> Sequence[str]:
        """The channels; none when all of them have ended."""
        return list(self._splits)

    @property
    def position_us(self) -> int:
        """The position, as an arrival time."""
        return self._pace.position_us(self._clock.now_us())

    def pending_records(self) -> int:
        """Records of this reader's channels that have not been read."""
        return self._merge.pending

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        """At most `max_records` records that are due now.

        Raises:
            HistoryError: the log is damaged; names the file and the row.
        """
        pace, merge = self._pace, self._merge
        self._follow_seek()
        if not self._splits:
            return Exhausted()
        now_us = self._clock.now_us()
        limit_us = pace.limit_us(now_us)
        if limit_us is None:
            return WaitUntil(None)
        if now_us < self._rested_us:
            return WaitUntil(self._rested_us)
        arrival_us = merge.peek_arrival_us()
        assert arrival_us is not None, "a reader at its end has no splits"
        batch = merge.read(max_records, limit_us)
        if batch is None:
            due_us = pace.due_at(arrival_us)
            self._rested_us = now_us + BREATH_US
            return WaitUntil(None if due_us is None else max(due_us, self._rested_us))
        log = self._source.log
        self.records_read += batch.num_rows
        last = batch.column(log.arrival_time).slice(batch.num_rows - 1)
        last_us = int(event_times(last, log.arrival_time)[0])
        pace.reached(self._channels[0], last_us)
        split = self._splits[0]
        where = merge.place_before(batch.num_rows, str(log.path))
        self._note_end()
        records, due = Records.timed(batch, log.event_time), pace.due_between(arrival_us, last_us)
        return Fetched(records, split, where=where, due_us=due)

    def snapshot(self) -> Snapshot:
        """``{"log": identity, "offsets": {"0": 123}, "position_us": ...}``; it includes an earlier seek, even if a
        paused reader has not been polled since."""
        self._follow_seek()
        offsets: dict[str, Json] = {str(channel): offset for channel, offset in self._merge.offsets().items()}
        return {"log": self._source.log.manifest.identity, "offsets": offsets, "position_us": self.position_us}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """Continue from the offsets of this reader's channels, whichever subtasks read them before.

        Raises:
            HistoryError: the log was rewritten since the snapshot, or a channel is missing in the snapshots.
        """
        log = self._source.log
        offsets: dict[str, int] = {}
        positions_us: list[int] = []
        for snapshot in snapshots:
            if snapshot["log"] not in (log.manifest.identity, *log.manifest.grown_from):
                raise HistoryError(
                    f"the checkpoint was taken on another version of {log.path}: its offsets mean nothing in this one; "
                    "start the job without resuming"
                )
            offsets.update(value_in(snapshot, "offsets", dict[str, int]))
            positions_us.append(value_in(snapshot, "position_us", int))
        for channel in self._channels:
            if str(channel) not in offsets:
                raise HistoryError(
                    f"the checkpoint has no offset for channel {channel} of {log.path}: it belongs to another job"
                )
        self._merge.seek([offsets[str(channel)] for channel in self._channels])
        self._begin()
        self.records_read = 0
        self._pace.restart(max(positions_us), self._clock.now_us())

    def close(self) -> None:
        """Close the files."""
        self._merge.close()

    def _follow_seek(self) -> None:
        generation, sought_us = self._pace.sought()
        if generation == self._generation:
            return
        self._generation = generation
        self._rested_us = 0
        if self._splits:  # what has ended stays ended, even if a seek goes back
            self._merge.seek_time(sought_us)
            self._note_end()

    def _begin(self) -> None:
        self._splits = tuple(str(channel) for channel in self._channels)
        self._note_end()

    def _note_end(self) -> None:
        if self._merge.exhausted:
            self._splits = ()
            self._merge.close()
