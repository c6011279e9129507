"""Latency percentiles and throughput of a frame."""

from __future__ import annotations

from workbench.dashboard.charts.sources import number_of
from workbench.telemetry.frames import Frame

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
