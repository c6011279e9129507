"""A source's task in micro-batches: what was read in the driver becomes records and watermarks here.

The driver reads positions and rows; event time is derived in this task, by the watermark generators of the kernel, one
for each split. Their state is part of the task's state, so a user's own generator works, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from workbench.durations import NO_TIME
from workbench.operators.contract.base import Snapshot
from workbench.operators.event_time.watermarks import IngestionGenerator
from workbench.operators.functions.dead_letters import TAG as DEAD_LETTERS
from workbench.runtime.tasks.source_time import SourceTime, SplitTime
from workbench.spark.carried.parcels import Ended, FromSplit, Item, NotRecords, Splits
from workbench.spark.carried.task import CarriedTask


class CarriedSource(CarriedTask):
    """The chain of a source for one micro-batch; see `CarriedTask` for the arguments."""

    def _open_inputs(self) -> None:
        self._now_us = self._clock.now_us()
        node = self.vertex.nodes[0]
        self._event_time = event_time = SourceTime(self.vertex.watermarks, node.schema, self.root, self._now_us)
        event_time.told_us = self.own.get("told", NO_TIME)
        event_time.idle = self.own.get("idle", False)
        self._ended: bool = self.own.get("ended", False)
        times: dict[str, SplitTime] = {}
        shared: SplitTime | None = None
        self._shared = bool(self.own.get("shared", False))
        for split, watermark_us, state, active_us, idle in self.own.get("splits", ()):
            if shared is not None:
                times[split] = shared
                continue
            times[split] = known = event_time.begin(active_us)
            known.watermark_us, known.idle = watermark_us, idle
            if state is not None:
                known.generator.go_on(state)
            shared = known if self._shared else None
        event_time.use(times)

    def run(self, arrived: Mapping[int, Sequence[Item]]) -> None:
        self._call_timed()
        for item in arrived.get(0, ()):
            self._read(item)
            self._settle()
        if not self._ended and self._event_time.strategy is not None:
            self._event_time.tell(self._now_us)
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
                self._event_time.end()

    def _follow(self, names: Sequence[str], shared: bool) -> None:
        """Forget splits that have ended, which hold nothing back any more; and start event time for new ones."""
        known = self._event_time.splits
        one = next(iter(known.values()), None) if shared else None
        times = {}
        for split in names:
            time = known.get(split) or one or self._event_time.begin(self._now_us)
            one = time if shared else None
            times[split] = time
        self._event_time.use(times)
        self._shared = shared

    def _records(self, item: FromSplit) -> None:
        event_time, records = self._event_time, item.records
        time = event_time.splits[item.split]
        if isinstance(time.generator, IngestionGenerator):
            records = time.generator.stamp(records.batch, self._now_us)
        done = 0
        for place, watermark_us in event_time.observe(records, time, self._now_us):
            self.root.receive(records.slice(done, place - done))
            done = place
            time.reach(watermark_us)
            event_time.send()
        if done < len(records):
            self.root.receive(records.slice(done, len(records) - done))
        if event_time.strategy is not None:
            time.reach(time.generator.ask(self._now_us))
            event_time.send()

    def _own_state(self) -> Snapshot:
        splits: list[Any] = [
            [split, known.watermark_us, known.generator.snapshot(), known.active_us, known.idle]
            for split, known in self._event_time.splits.items()
        ]
        event_time = self._event_time
        told: dict[str, Any] = {"told": event_time.told_us, "idle": event_time.idle, "ended": self._ended}
        return cast("Snapshot", {**told, "splits": splits, "shared": self._shared})
