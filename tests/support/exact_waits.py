"""A job on a clock of the test's own, on which it is known how long every record waits.

A record is due at its place in the source's schedule. It waits until the source reads it, until its buffer ships, and
where an operator is slow until that takes the buffer. Nothing else takes time here, so all are known to the
microsecond, and the same on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.tables.tables import Tables
from workbench.plan.physical import build_physical_graph
from workbench.runtime.deployment.deploying import deploy
from workbench.runtime.messages.messages import Report
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.execution import JobServices
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Outcome
from workbench.telemetry.latency import RECENT_US, latency_frames

LOOK_US = 1_000
SLOW = "slow"
SECOND_US = 1_000_000
SCHEMA = pa.schema([("key", pa.int64()), ("due", pa.int64()), ("at", pa.timestamp("us"))])
EXCHANGES: dict[str, Callable[[wb.Stream], wb.Stream]] = {
    "forward": lambda stream: stream.map_batches(lambda batch: batch, SCHEMA).slot_sharing_group("apart"),
    "rebalance": lambda stream: stream.rebalance(),
    "rescale": lambda stream: stream.rebalance(local=True),
    "broadcast": lambda stream: stream.broadcast(),
    "shuffle": lambda stream: stream.shuffle(),
    "custom": lambda stream: stream.partition_by("key"),
    "hash": lambda stream: stream.key_by("key").aggregate(due=wb.max("due")),  # of the record itself: none is later
}
"""What sends records to the sink, by name; another slot sharing group is no part of the source's chain."""


class Host:
    dropped = 0

    def report(self, report: Report) -> None:
        raise AssertionError(report)


class Run:
    """A source at a rate and a sink, between which nothing but buffers and a slow operator takes time.

    Args:
        rate: records per second.
        timeout_us: the buffer timeout.
        event_time: whether watermarks travel with the records.
        late_us: each step comes so much too late, on average.
        slow_us: an operator between them rests so long after each buffer.
        buffer_size: records in a full buffer, at most.
        rests: whether the source rests while its records would only wait in buffers.
        stalls_us: all tasks stand still for so long, twice a second.
        exchange: how the records are sent, one of `EXCHANGES`.
        sources, sinks: subtasks.

    Attributes:
        arrived: when the records of each batch were due, and when it reached the sink.
    """

    def __init__(
        self,
        rate: int,
        timeout_us: int,
        event_time: bool = False,
        late_us: int = 0,
        *,
        slow_us: int = 0,
        buffer_size: int = 262_144,
        rests: bool = True,
        stalls_us: int = 0,
        exchange: str = "rebalance",
        sources: int = 1,
        sinks: int = 1,
    ) -> None:
        self.clock = VirtualClock(SECOND_US)
        self.arrived: list[tuple[Any, int]] = []
        self._next_us = [float(SECOND_US)] * sources
        self._reading = 0  # the source that is stepped
        self._stall_us = stalls_us
        self._stalled_us = SECOND_US
        gap_us = sources * SECOND_US / rate
        self._late = lambda: int(chance.expovariate(1 / late_us)) if late_us else 0
        chance = random.Random(rate)

        def fetch(first: int, count: int) -> pa.RecordBatch:
            now_us, next_us = self.clock.now_us(), self._next_us[self._reading]
            if now_us - next_us > SECOND_US:  # a source catches up with no more than a second
                next_us = now_us - SECOND_US + gap_us
            self._next_us[self._reading] = next_us + gap_us * count
            numbers = pa.array(np.arange(first, first + count))
            due = pa.array((next_us + gap_us * np.arange(count)).astype(np.int64))
            keys = pa.array(np.arange(first, first + count) % 997)
            return pa.RecordBatch.from_arrays([keys, due, numbers.cast(pa.timestamp("us"))], schema=SCHEMA)

        stream = wb.Stream.from_generator(fetch, SCHEMA, event_time="at" if event_time else None, rate=rate)
        stream = EXCHANGES[exchange](stream.with_parallelism(sources))
        if slow_us:
            stream = stream.map_batches(lambda batch: batch, SCHEMA).uid(SLOW).rebalance()
        pipeline = stream.sink_to(wb.CallbackSink(self._arrive))
        graph = build_physical_graph(pipeline.logical_graph(), sinks, sinks)
        services = JobServices("job", self.clock, Tables(), None, {})
        settings = Settings(parallelism=sinks, buffer_timeout_us=timeout_us, buffer_size=buffer_size)
        if slow_us:
            settings = settings.with_slowed(SLOW, slow_us)
        self.execution = deploy(graph, settings, services, Host(), 0, None)
        for source in self.execution.sources:
            source.look_every(LOOK_US)
            source._may_rest &= rests
        for task in self.execution.tasks:
            if isinstance(task, OperatorTask):
                task.gathers = True  # as under a slot's thread

    def _arrive(self, batch: pa.RecordBatch) -> None:
        self.arrived.append((batch.column("due").to_numpy(), self.clock.now_us()))

    def until(self, time_us: int) -> None:
        """Step each task whenever something is due for it, as its slot's thread does."""
        while self.clock.now_us() < time_us:
            for task in self.execution.sources:
                self._read(task)
            for task in self.execution.tasks:
                while task not in self.execution.sources and task.step() is Outcome.PROGRESSED:
                    pass
            if roomy := [task for task in self.execution.sources if task.has_news]:  # a receiver has made room
                for task in roomy:
                    self._read(task)
                continue
            due = [due_us for task in self.execution.tasks if (due_us := task.next_due_us()) is not None]
            next_us = max(min(due) + self._late(), self.clock.now_us() + 100)
            if self._stall_us and next_us - self._stalled_us > SECOND_US // 2:
                self._stalled_us = next_us = next_us + self._stall_us
            self.clock.advance_to(next_us)

    def _read(self, task: SourceTask) -> None:
        self._reading = task.subtask
        task.step()

    @property
    def waits_us(self) -> Any:
        """Of the records that have arrived in the time for which markers count, since they were due, shape (n,)."""
        now_us = self.clock.now_us()
        return np.concatenate([at_us - due for due, at_us in self.arrived if now_us - RECENT_US < at_us <= now_us])

    def exact_ms(self, *percentiles: float) -> Any:
        """Percentiles of the same."""
        return np.percentile(self.waits_us, percentiles) / 1_000

    def told_ms(self) -> tuple[float, float]:
        """The median and the 99th percentile that markers tell at the sink."""
        sink = self.execution.tasks[-1].vertex
        [latency] = [each for each in latency_frames(self.execution, self.clock.now_us()) if each.vertex == sink]
        return latency.p50_ms, latency.p99_ms
