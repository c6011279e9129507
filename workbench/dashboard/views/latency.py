"""Latency percentiles and throughput of a frame, and what a tuning did to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.dashboard.charts.sources import number_of
from workbench.telemetry.frames import EventFrame, Frame

PERCENTILES = {
    "p50": ("good", "solid"),
    "p90": ("accent", "solid"),
    "p95": ("warn", "dashed"),
    "p99": ("bad", "solid"),
}
RATES = {"records in": ("accent", "solid"), "records out": ("good", "dashed")}
LAGS = {
    "first": ("accent", "solid"),
    "second": ("violet", "dashed"),
    "third": ("good", "dotted"),
    "fourth": ("warn", "solid"),
    "fifth": ("bad", "dashed"),
}
"""Lines of the lag chart, given to vertices in the order in which they first have a watermark."""


def sinks(frame: Frame) -> frozenset[str]:
    """The vertices that nothing follows."""
    sources = {edge.source for edge in frame.edges}
    return frozenset(vertex.id for vertex in frame.vertices if vertex.id not in sources)


def percentiles(frame: Frame) -> dict[str, float | None]:
    """Milliseconds from the sources to the slowest sink, by percentile; None before a marker has arrived."""
    ends = sinks(frame)
    seen = [latency for latency in frame.latency if latency.vertex in ends and latency.count > 0]
    if not seen:
        return dict.fromkeys(PERCENTILES)
    return {name: max(getattr(latency, f"{name}_ms") for latency in seen) for name in PERCENTILES}


def throughput(frame: Frame) -> dict[str, float | None]:
    """Records per second that the sources read and the sinks received."""
    return {
        name: number_of(frame.metrics, metric)
        for name, metric in zip(RATES, ("numRecordsInPerSecond", "numRecordsOutPerSecond"), strict=True)
    }


@dataclass(frozen=True, slots=True)
class Sample:
    """One point of the charts over time: processing time in microseconds, p50, p99 (ms) and records in per second."""

    time_us: int
    p50: float | None
    p99: float | None
    rate: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """What was measured before and after a tuning: means over the samples of each side; None where there was none."""

    text: str
    time_us: int
    before: Sample
    after: Sample


REACH_US = 10_000_000
"""So long before and after a tuning is looked at, at most, and never past another one."""
SETTLING_US = 1_500_000
"""What comes so soon after a tuning still holds measurements from before it."""


def sample(frame: Frame) -> Sample:
    """The point of a frame."""
    told = percentiles(frame)
    return Sample(frame.time_us, told["p50"], told["p99"], throughput(frame)["records in"])


def changes(samples: Sequence[Sample], events: Sequence[EventFrame]) -> list[Change]:
    """Before and after each tuning of which there is a sample, oldest first; several at one moment count as one."""
    tuned: list[EventFrame] = []
    for event in events:
        if event.kind != "tune":
            continue
        if tuned and event.time_us - tuned[-1].time_us < SETTLING_US:
            tuned[-1] = EventFrame(tuned[-1].time_us, "tune", f"{tuned[-1].text}, {event.text}")
        else:
            tuned.append(event)
    found = []
    for place, event in enumerate(tuned):
        since = tuned[place - 1].time_us + SETTLING_US if place else -math.inf
        until = tuned[place + 1].time_us if place + 1 < len(tuned) else math.inf
        at = event.time_us
        before = [s for s in samples if max(since, at - REACH_US) <= s.time_us < at]
        after = [s for s in samples if at + SETTLING_US <= s.time_us < min(until, at + REACH_US)]
        if before or after:
            found.append(Change(event.text, at, _mean(before), _mean(after)))
    return found


def _mean(samples: Sequence[Sample]) -> Sample:
    def of(name: str) -> float | None:
        known = [value for one in samples if (value := getattr(one, name)) is not None]
        return sum(known) / len(known) if known else None

    return Sample(samples[-1].time_us if samples else 0, of("p50"), of("p99"), of("rate"))
