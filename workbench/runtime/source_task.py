"""A task that reads a source, and tells event time from what it read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.connectors.base import Exhausted, Fetched, SourceReader, WaitUntil
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import LatencyMarker, Records, WatermarkStatus
from workbench.operators.base import Snapshot
from workbench.plan.logical import WatermarkStrategy
from workbench.runtime.messages import Drained
from workbench.runtime.policy import AlignedBarriers
from workbench.runtime.task import Outcome, Task

WATERMARKS = "$watermarks"
"""Name of the watermark generator's part of a source's snapshot."""


class SplitTime:
    """Event time of one split: the largest seen, and whether it still speaks."""

    __slots__ = ("active_us", "idle", "largest_us")

    def __init__(self, now_us: int) -> None:
        self.largest_us = NO_TIME
        self.idle = False
        self.active_us = now_us


class SourceTask(Task):
    """Polls a reader when its output has room (see `Task` for the other arguments).

    A source that has read everything stays alive: it goes on sending barriers until the final checkpoint is complete,
    so that the tail of a bounded input is committed like everything before it.
    """

    def __init__(self, *, reader: SourceReader, watermarks: WatermarkStrategy | None, **rest: Any) -> None:
        super().__init__(**rest)
        self.policy = AlignedBarriers(None, self.take_snapshot)
        self.reader = reader
        self.watermarks = watermarks
        now = self._now_us()
        self.splits = {split: SplitTime(now) for split in reader.splits()}
        self.paused = False
        self.drained = False
        self.idle = False
        self._wait_until_us: int | None = now
        self._watermark_due_us = now
        self._marker_due_us = now

    def restore_watermarks(self, snapshots: Sequence[Snapshot]) -> None:
        """Go on from the event times of all former subtasks' splits, where this subtask has them now."""
        for snapshot in snapshots:
            saved = snapshot.get(WATERMARKS)
            assert isinstance(saved, dict)
            for split, largest_us in saved.items():
                if split in self.splits:
                    assert isinstance(largest_us, int)
                    self.splits[split].largest_us = max(self.splits[split].largest_us, largest_us)

    def _source_state(self) -> Snapshot:
        times = {split: time.largest_us for split, time in self.splits.items() if time.largest_us != NO_TIME}
        return {**self.reader.snapshot(), WATERMARKS: dict(times)}

    def next_due_us(self) -> int | None:
        due = super().next_due_us()
        if self.drained or self.paused or not self.pool.has_room:
            return due  # a receiver that makes room wakes the slot
        wanted = [time for time in (due, self._wait_until_us) if time is not None]
        wanted.append(self._marker_due_us)
        if self.watermarks is not None:
            wanted.append(self._watermark_due_us)
        return min(wanted)

    def close(self) -> None:
        self.reader.close()
        super().close()

    def _pause(self, paused: bool) -> None:
        self.paused = paused
        self._wait_until_us = self._now_us()

    def _advance(self, now_us: int) -> Outcome:
        if self.drained:
            return Outcome.WAITING
        if not self.pool.has_room or self.paused:
            # Neither backpressure nor a pause is silence of the source: its splits must not become idle for it.
            for time in self.splits.values():
                time.active_us = now_us
            return Outcome.WAITING if self.paused else Outcome.NO_CREDIT
        worked = False
        fetched = self.reader.poll(self.settings.buffer_size)
        match fetched:
            case Fetched(records, split):
                worked = True
                self._wait_until_us = now_us
                self._observe(records, split, now_us)
                self.root.receive(records)
            case WaitUntil(time_us):
                self._wait_until_us = time_us
            case Exhausted():
                self._drain()
                return Outcome.PROGRESSED
        self._forget_ended_splits()
        if now_us >= self._marker_due_us:
            self._marker_due_us = now_us + self.settings.latency_interval_us
            self._emit_marker(LatencyMarker(now_us, self.name))
            worked = True
        if self.watermarks is not None and now_us >= self._watermark_due_us:
            self._watermark_due_us = now_us + self.settings.watermark_interval_us
            worked |= self._tell_event_time(now_us)
        return Outcome.PROGRESSED if worked else Outcome.WAITING

    def _forget_ended_splits(self) -> None:
        """A split may end with its last record or because a seek went behind it; it holds nothing back any more."""
        live = self.reader.splits()
        if len(live) != len(self.splits):
            self.splits = {split: self.splits[split] for split in live}

    def _has_more(self) -> bool:
        return not self.drained and self._wait_until_us is not None and self._wait_until_us <= self.load.last_us

    def _observe(self, records: Records, split: str, now_us: int) -> None:
        largest_us = NO_TIME if records.timestamps is None else int(np.max(records.timestamps))
        for time in self.splits.values() if self.reader.shares_event_time else (self.splits[split],):
            time.active_us = now_us
            time.idle = False
            time.largest_us = max(time.largest_us, largest_us)
        if self.idle:
            self._set_idle(False)

    def _tell_event_time(self, now_us: int) -> bool:
        """Send the watermark if it has grown, and note splits that have fallen silent; whether anything was sent."""
        strategy = self.watermarks
        assert strategy is not None
        lowest: int | None = None
        active = False
        for time in self.splits.values():
            if strategy.idle_after_us is not None and now_us - time.active_us >= strategy.idle_after_us:
                time.idle = True
            if not time.idle:
                active = True
                lowest = time.largest_us if lowest is None else min(lowest, time.largest_us)
        sent = False
        if lowest is not None and lowest != NO_TIME:
            watermark_us = lowest - strategy.out_of_orderness_us - 1
            if self.output_watermark_us is None or watermark_us > self.output_watermark_us:
                self._emit_watermark(watermark_us)
                sent = True
        if not active and not self.idle and self.splits:
            self._set_idle(True)
            sent = True
        return sent

    def _set_idle(self, idle: bool) -> None:
        self.idle = idle
        for output in self.outputs:
            output.emit_event(WatermarkStatus(idle))

    def _drain(self) -> None:
        self.drained = True
        if self.idle:
            self._set_idle(False)
        self._emit_watermark(MAX_TIME)
        for output in self.outputs:
            output.ship_all()
        self.host.report(Drained(self.name))
