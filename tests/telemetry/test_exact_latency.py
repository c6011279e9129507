"""Percentiles of latency markers against the latency of every record, on a clock of the test's own.

A record is due at its place in the source's schedule. It waits until the source reads it, then until its buffer ships;
nothing else takes time here, so both are known to the microsecond, and the same on every machine.
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
from workbench.runtime.tasks.task import Outcome
from workbench.telemetry.latency import RECENT_US, latency_frames

LOOK_US = 1_000
SECOND_US = 1_000_000
SCHEMA = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us"))])


class Host:
    dropped = 0

    def report(self, report: Report) -> None:
        raise AssertionError(report)


class Run:
    """A source at a rate and a sink, between which nothing but buffers takes time.

    Args:
        rate: records per second.
        timeout_us: the buffer timeout.
        event_time: whether watermarks travel with the records.
        late_us: each step comes so much too late, on average.
    """

    def __init__(self, rate: int, timeout_us: int, event_time: bool, late_us: int = 0) -> None:
        self.clock = VirtualClock(SECOND_US)
        self.read: list[tuple[int, int]] = []  # records requested so far, and when
        self.arrived: list[tuple[int, int]] = []  # number of a record, and when
        self._requested = 0
        self._rate = rate
        self._late = lambda: int(chance.expovariate(1 / late_us)) if late_us else 0
        chance = random.Random(rate)

        def fetch(first: int, count: int) -> pa.RecordBatch:
            place = self._requested
            self._requested += count
            self.read.append((self._requested, self.clock.now_us()))
            numbers = pa.array(range(place, place + count))
            return pa.RecordBatch.from_arrays([numbers, numbers.cast(pa.timestamp("us"))], schema=SCHEMA)

        stream = wb.Stream.from_generator(fetch, SCHEMA, event_time="at" if event_time else None, rate=rate)
        pipeline = stream.rebalance().sink_to(wb.CallbackSink(self._arrive))
        graph = build_physical_graph(pipeline.logical_graph(), 1, 1)
        services = JobServices("job", self.clock, Tables(), None, {})
        settings = Settings(parallelism=1, buffer_timeout_us=timeout_us)
        self.execution = deploy(graph, settings, services, Host(), 0, None)
        for source in self.execution.sources:
            source.look_every(LOOK_US)

    def _arrive(self, batch: pa.RecordBatch) -> None:
        now_us = self.clock.now_us()
        self.arrived += [(number, now_us) for number in batch.column("n").to_pylist()]

    def until(self, time_us: int) -> None:
        """Step each task whenever something is due for it, as its slot's thread does."""
        while self.clock.now_us() < time_us:
            for task in self.execution.sources:
                task.step()
            for task in self.execution.tasks:
                while task not in self.execution.sources and task.step() is Outcome.PROGRESSED:
                    pass
            due = [due_us for task in self.execution.tasks if (due_us := task.next_due_us()) is not None]
            self.clock.advance_to(max(min(due) + self._late(), self.clock.now_us() + 100))

    def exact_ms(self, *percentiles: float) -> Any:
        """Of the records that have arrived in the time for which markers count, since they were due."""
        gap_us = SECOND_US / self._rate
        begin_us = min(at_us - (count - 1) * gap_us for count, at_us in self.read)  # none is read before it is due
        since_us = self.clock.now_us() - RECENT_US
        waited = [at_us - begin_us - number * gap_us for number, at_us in self.arrived if at_us > since_us]
        return np.percentile(waited, percentiles) / 1_000


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
    assert len(run.arrived) > 3 * rate


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
    assert np.sqrt(np.mean(np.square(errors))) < 0.016
    assert np.max(np.abs(errors)) < 0.04
    assert latency.count < 40 * run.clock.now_us() / SECOND_US
