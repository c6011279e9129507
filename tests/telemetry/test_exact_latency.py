"""Percentiles of latency markers against the latency of every record, on a clock of the test's own.

A record is due at its place in the source's schedule. It waits until the source reads it, until its buffer ships, and
where an operator is slow until that takes the buffer. Nothing else takes time here, so all are known to the
microsecond, and the same on every machine.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.tables.tables import Tables
from workbench.plan.physical import build_physical_graph
from workbench.runtime.deployment.deploying import deploy
from workbench.runtime.messages.messages import Report
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.execution import JobServices
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.task import Outcome
from workbench.telemetry.latency import RECENT_US, latency_frames

LOOK_US = 1_000
SLOW = "slow"
SECOND_US = 1_000_000
SCHEMA = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us"))])


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
    ) -> None:
        self.clock = VirtualClock(SECOND_US)
        self.due: list[Any] = []  # of the records that were requested, by the source's schedule
        self.arrived: list[tuple[int, int, int]] = []  # number of the first record of a buffer, how many, and when
        self._requested = 0
        self._next_us = float(SECOND_US)
        self._stall_us = stalls_us
        self._stalled_us = SECOND_US
        gap_us = SECOND_US / rate
        self._late = lambda: int(chance.expovariate(1 / late_us)) if late_us else 0
        chance = random.Random(rate)

        def fetch(first: int, count: int) -> pa.RecordBatch:
            place = self._requested
            self._requested += count
            now_us = self.clock.now_us()
            if now_us - self._next_us > SECOND_US:  # a source catches up with no more than a second
                self._next_us = now_us - SECOND_US + gap_us
            self.due.append(self._next_us + gap_us * np.arange(count))
            self._next_us += gap_us * count
            numbers = pa.array(range(place, place + count))
            return pa.RecordBatch.from_arrays([numbers, numbers.cast(pa.timestamp("us"))], schema=SCHEMA)

        stream = wb.Stream.from_generator(fetch, SCHEMA, event_time="at" if event_time else None, rate=rate)
        stream = stream.rebalance()
        if slow_us:
            stream = stream.map_batches(lambda batch: batch, SCHEMA).uid(SLOW).rebalance()
        pipeline = stream.sink_to(wb.CallbackSink(self._arrive))
        graph = build_physical_graph(pipeline.logical_graph(), 1, 1)
        services = JobServices("job", self.clock, Tables(), None, {})
        settings = Settings(parallelism=1, buffer_timeout_us=timeout_us, buffer_size=buffer_size)
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
        self.arrived.append((batch.column("n")[0].as_py(), batch.num_rows, self.clock.now_us()))

    def until(self, time_us: int) -> None:
        """Step each task whenever something is due for it, as its slot's thread does."""
        while self.clock.now_us() < time_us:
            for task in self.execution.sources:
                task.step()
            for task in self.execution.tasks:
                while task not in self.execution.sources and task.step() is Outcome.PROGRESSED:
                    pass
            if roomy := [task for task in self.execution.sources if task.has_news]:  # a receiver has made room
                for task in roomy:
                    task.step()
                continue
            due = [due_us for task in self.execution.tasks if (due_us := task.next_due_us()) is not None]
            next_us = max(min(due) + self._late(), self.clock.now_us() + 100)
            if self._stall_us and next_us - self._stalled_us > SECOND_US // 2:
                self._stalled_us = next_us = next_us + self._stall_us
            self.clock.advance_to(next_us)

    def exact_ms(self, *percentiles: float) -> Any:
        """Of the records that have arrived in the time for which markers count, since they were due."""
        due_us, now_us = np.concatenate(self.due), self.clock.now_us()
        recent = ((first, rows, at_us) for first, rows, at_us in self.arrived if now_us - RECENT_US < at_us <= now_us)
        waited = [at_us - due_us[first : first + rows] for first, rows, at_us in recent]
        return np.percentile(np.concatenate(waited), percentiles) / 1_000

    def told_ms(self) -> tuple[float, float]:
        """The median and the 99th percentile that markers tell at the sink."""
        sink = self.execution.tasks[-1].vertex
        [latency] = [each for each in latency_frames(self.execution, self.clock.now_us()) if each.vertex == sink]
        return latency.p50_ms, latency.p99_ms


@pytest.mark.parametrize("timeout_ms", [5, 20, 100, 500, 1_000])
@pytest.mark.parametrize(("rate", "event_time"), [(300, False), (3_000, False), (3_000, True), (30_000, True)])
def test_percentiles_are_those_of_the_records(rate: int, timeout_ms: int, event_time: bool) -> None:
    """Within a twentieth; of few records half the distance between two of them more or less."""
    run = Run(rate, timeout_ms * 1_000, event_time)
    run.until(SECOND_US + 4 * SECOND_US)
    [latency] = latency_frames(run.execution, run.clock.now_us())
    measured = latency.p50_ms, latency.p90_ms, latency.p99_ms
    for told_ms, exact_ms in zip(measured, run.exact_ms(50, 90, 99), strict=True):
        assert told_ms == pytest.approx(exact_ms, rel=0.05, abs=500 / rate)
    assert latency.recent > 80
    assert sum(rows for _, rows, _ in run.arrived) > 3 * rate


@pytest.mark.parametrize(("rate", "timeout_ms"), [(300, 500), (3_000, 100), (30_000, 100)])
def test_few_markers_tell_the_median_at_any_moment(rate: int, timeout_ms: int) -> None:
    """A rest counts by its length, not by how many markers happen to tell of it."""
    run = Run(rate, timeout_ms * 1_000, False, late_us=300)
    run.until(SECOND_US + 3 * SECOND_US)
    errors = []
    for _ in range(12):
        run.until(run.clock.now_us() + SECOND_US // 3)
        [latency] = latency_frames(run.execution, run.clock.now_us())
        errors.append(latency.p50_ms / run.exact_ms(50) - 1)
    assert np.sqrt(np.mean(np.square(errors))) < 0.03
    assert np.max(np.abs(errors)) < 0.04
    assert latency.count < 40 * run.clock.now_us() / SECOND_US


@pytest.mark.parametrize("timeout_ms", [0, 5, 100, 1_000])
@pytest.mark.parametrize("rate", [300, 3_000, 100_000])
def test_percentiles_tell_what_a_slow_operator_holds_up(rate: int, timeout_ms: int) -> None:
    """It takes half of the records that are due, so that most of a record's time passes before it can be read."""
    run = Run(rate, timeout_ms * 1_000, slow_us=20_000, buffer_size=rate // 100)
    run.until(SECOND_US + 4 * SECOND_US)
    exact_ms = run.exact_ms(50, 99)
    assert exact_ms[1] > 1_000  # the second with which a source catches up, and the buffers
    assert run.told_ms() == pytest.approx(exact_ms, rel=0.1)


@pytest.mark.parametrize("timeout_ms", [0, 5, 100, 1_000])
@pytest.mark.parametrize("rate", [300, 3_000, 100_000])
def test_percentiles_tell_what_waits_while_an_operator_rests_after_each_buffer(rate: int, timeout_ms: int) -> None:
    """Buffers grow while it rests: it keeps up, and holds the source up at times."""
    run = Run(rate, timeout_ms * 1_000, slow_us=50_000)
    run.until(SECOND_US + 4 * SECOND_US)
    assert run.told_ms() == pytest.approx(run.exact_ms(50, 99), rel=0.1, abs=500 / rate)


@pytest.mark.parametrize("timeout_ms", [0, 5, 20])
@pytest.mark.parametrize("rate", [300, 3_000, 100_000])
def test_percentiles_tell_what_becomes_due_while_a_busy_machine_holds_the_source_up(rate: int, timeout_ms: int) -> None:
    """The source does not rest: a step that is late tells of the time since which it had not read."""
    run = Run(rate, timeout_ms * 1_000, late_us=300, rests=False, stalls_us=60_000)
    run.until(SECOND_US + 2 * SECOND_US)
    told, exact = [], []
    for _ in range(6):
        run.until(run.clock.now_us() + SECOND_US // 2)
        told.append(run.told_ms())
        exact.append(run.exact_ms(50, 99))
    assert np.mean(told, axis=0) == pytest.approx(np.mean(exact, axis=0), rel=0.1, abs=500 / rate)
    assert np.mean(exact, axis=0)[1] > 50
