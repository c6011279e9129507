"""Percentiles of latency markers against the latency of every record, on a clock of the test's own."""

from __future__ import annotations

import numpy as np
import pytest
from exact_waits import SECOND_US, Run

from workbench.telemetry.latency import latency_frames


@pytest.mark.parametrize("timeout_ms", [5, 20, 100, 500, 1_000])
@pytest.mark.parametrize(("rate", "event_time"), [(300, False), (3_000, False), (3_000, True), (30_000, True)])
def test_percentiles_are_those_of_the_records(rate: int, timeout_ms: int, event_time: bool) -> None:
    """Within a fifteenth; of few records half the distance between two of them more or less."""
    run = Run(rate, timeout_ms * 1_000, event_time)
    run.until(SECOND_US + 4 * SECOND_US)
    [latency] = latency_frames(run.execution, run.clock.now_us())
    measured = latency.p50_ms, latency.p90_ms, latency.p99_ms
    for told_ms, exact_ms in zip(measured, run.exact_ms(50, 90, 99), strict=True):
        assert told_ms == pytest.approx(exact_ms, rel=0.067, abs=500 / rate)
    assert latency.recent > 80
    assert sum(len(due_us) for due_us, _ in run.arrived) > 3 * rate


@pytest.mark.parametrize(("rate", "timeout_ms"), [(300, 500), (1_000, 200), (2_000, 100)])
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
