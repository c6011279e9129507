"""A source's task in micro-batches: what was read in the driver becomes records and watermarks here.

The driver reads positions and rows; event time is derived in this task, by the watermark generators of the kernel, one
for each split. Their state is part of the task's state, so a user's own generator works, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from workbench.durations import MAX_TIME, NO_TIME
from workbench.operators.contract.base import Snapshot
from workbench.operators.event_time.watermarks import IngestionGenerator, WatermarkGenerator
from workbench.operators.functions.dead_letters import TAG as DEAD_LETTERS
from workbench.plan.watermark_strategy import WatermarkStrategy
from workbench.runtime.tasks.split_time import SplitTime
from workbench.spark.carried.parcels import Ended, FromSplit, Item, NotRecords, Splits
from workbench.spark.carried.task import CarriedTask


class CarriedSource(CarriedTask):
    """The chain of a source for one micro-batch; see `CarriedTask` for the arguments."""

    def _open_inputs(self) -> None:
        self._now_us = self._clock.now_us()
        self._strategy = self.vertex.nodes[0].watermarks
        self._told_us: int = self.own.get("told", NO_TIME)
        self._idle: bool = self.own.get("idle", False)
        self._ended: bool = self.own.get("ended", False)
        self._times: dict[str, SplitTime] = {}
        shared: SplitTime | None = None
        self._shared = bool(self.own.get("shared", False))
        for split, watermark_us, state, active_us, idle in self.own.get("splits", ()):
            if shared is not None:
                self._times[split] = shared
                continue
            known = SplitTime(self._generator(), active_us)
            known.watermark_us, known.idle = watermark_us, idle
            if state is not None:
                known.generator.go_on(state)
            self._times[split] = known
            shared = known if self._shared else None

    def _generator(self) -> WatermarkGenerator:
        node = self.vertex.nodes[0]
        return (self._strategy or WatermarkStrategy()).watermarks.create(node.schema)

    def run(self, arrived: Mapping[int, Sequence[Item]]) -> None:
        self._call_timed()
        for item in arrived.get(0, ()):
            self._read(item)
            self._settle()
        if not self._ended and self._strategy is not None:
            self._tell()
        self._call_timed()
        self._finish_calls()

    def _read(self, item: Item) -> None:
        match item:
            case Splits(names, shared):
                self._follow(names, shared)
            case FromSplit():
                self._records(item)
            case NotRecords(records):
                self.root.counters.numRecordsInErrors += len(records)
                self.root.emit_side(DEAD_LETTERS, records)
            case Ended():
                self._ended = True
                if self._idle:
                    self._set_idle(False)
                self.root.on_watermark(MAX_TIME)

    def _follow(self, names: Sequence[str], shared: bool) -> None:
        """Forget splits that have ended, which hold nothing back any more; and start event time for new ones."""
        one = next(iter(self._times.values()), None) if shared else None
        times = {}
        for split in names:
            known = self._times.get(split) or one or SplitTime(self._generator(), self._now_us)
            one = known if shared else None
            times[split] = known
        self._times, self._shared = times, shared

    def _records(self, item: FromSplit) -> None:
        known, records = self._times[item.split], item.records
        known.active_us, known.idle = self._now_us, False
        if self._idle:
            self._set_idle(False)
        if isinstance(known.generator, IngestionGenerator):
            records = known.generator.stamp(records.batch, self._now_us)
        done = 0
        for place, watermark_us in known.generator.observe(records):
            self.root.receive(records.slice(done, place - done))
            done = place
            known.reach(watermark_us)
            self._send_watermark()
        if done < len(records):
            self.root.receive(records.slice(done, len(records) - done))
        if self._strategy is not None:
            known.reach(known.generator.ask(self._now_us))
            self._send_watermark()

    def _tell(self) -> None:
        """Send the watermark at the end of a batch, and detect idle splits."""
        assert self._strategy is not None
        idle_after_us = self._strategy.idle_after_us
        for known in self._times.values():
            known.reach(known.generator.ask(self._now_us))
            if idle_after_us is not None and self._now_us - known.active_us >= idle_after_us:
                known.idle = True
        self._send_watermark()
        if self._times and not self._idle and all(known.idle for known in self._times.values()):
            self._set_idle(True)

    def _send_watermark(self) -> None:
        speaking = [known.watermark_us for known in self._times.values() if not known.idle]
        if speaking and (watermark_us := min(speaking)) > self._told_us:
            self._told_us = watermark_us
            self.root.on_watermark(watermark_us)

    def _set_idle(self, idle: bool) -> None:
        self._idle = idle
        self.root.on_idle(idle)

    def _own_state(self) -> Snapshot:
        splits: list[Any] = [
            [split, known.watermark_us, known.generator.snapshot(), known.active_us, known.idle]
            for split, known in self._times.items()
        ]
        told: dict[str, Any] = {"told": self._told_us, "idle": self._idle, "ended": self._ended}
        return cast("Snapshot", {**told, "splits": splits, "shared": self._shared})
