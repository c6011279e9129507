"""The sentence on a buffer timeout without an effect, against the time that every record waits."""

from __future__ import annotations

import re

import pytest
from exact_waits import EXCHANGES, SECOND_US, Run

from workbench.telemetry.effects.filling import Filling
from workbench.telemetry.effects.shipping import timeout_idle


def sentence(run: Run, timeout_ms: int) -> str:
    """What is told after four seconds."""
    filling = Filling()
    fill_ms = None
    for tenth in range(50):
        run.until(SECOND_US + tenth * SECOND_US // 10)
        fill_ms = filling.sample(run.execution, run.clock.now_us(), 0)
    return timeout_idle(f"{timeout_ms}ms", fill_ms)


CASES = [
    (exchange, rate, sources, sinks)
    for exchange in EXCHANGES
    for rate in (3_000, 30_000, 100_000)
    for sources, sinks in ((1, 1), (1, 2), (2, 4))
    if exchange != "forward" or sources == sinks
]


@pytest.mark.parametrize("event_time", [False, True])
@pytest.mark.parametrize(("exchange", "rate", "sources", "sinks"), CASES)
def test_the_time_that_is_told_is_the_one_that_records_wait(
    exchange: str, rate: int, sources: int, sinks: int, event_time: bool
) -> None:
    """They come evenly, so that they wait half of the time that a buffer takes to fill, on average."""
    run = Run(rate, SECOND_US, event_time, exchange=exchange, sources=sources, sinks=sinks)
    told = re.search(r"full after (\d+) ms at this rate: the timeout has no effect$", sentence(run, 1_000))
    assert told is not None
    assert float(told[1]) == pytest.approx(2 * run.waits_us.mean() / 1_000, rel=0.1, abs=1)
    assert run.exact_ms(100)[0] < 1_000


@pytest.mark.parametrize("timeout_ms", [5, 100, 300])
def test_where_records_wait_for_the_timeout_nothing_is_told(timeout_ms: int) -> None:
    """A buffer of 256 records takes 341 ms to fill."""
    run = Run(3_000, timeout_ms * 1_000, exchange="hash", sources=1, sinks=4)
    assert sentence(run, timeout_ms) == ""
    assert run.exact_ms(100)[0] == pytest.approx(timeout_ms, rel=0.05, abs=1)
