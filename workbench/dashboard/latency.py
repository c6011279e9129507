"""Latency percentiles, throughput and the lag of watermarks, over time."""

from __future__ import annotations

from bokeh.plotting import figure

from workbench.dashboard.sources import ceiling_s
from workbench.dashboard.theme import Paint
from workbench.dashboard.time_chart import SHORT_MS, SHORT_NUMBER, SHORT_SECONDS, TimeChart, TimeWindow
from workbench.dashboard.watermarks import vertex_lags
from workbench.dashboard.wording import fit
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
        name: _number(frame.metrics.get(metric))
        for name, metric in zip(RATES, ("numRecordsInPerSecond", "numRecordsOutPerSecond"), strict=True)
    }


def _number(value: float | int | str | None) -> float | None:
    return None if value is None else float(value)


class LatencyView:
    """Percentiles of the latency of markers."""

    def __init__(self, paint: Paint, window: TimeWindow) -> None:
        self._chart = TimeChart(
            paint, window, PERCENTILES, ticks=SHORT_MS, label="Latency percentiles over time", unit="{0.0} ms",
            pixels=128,
        )  # fmt: skip
        self.figure: figure = self._chart.figure

    def update(self, frame: Frame) -> None:
        self._chart.append(frame.time_us, percentiles(frame))
        self._chart.mark(frame.events)


class ThroughputView:
    """Records per second in and out."""

    def __init__(self, paint: Paint, window: TimeWindow) -> None:
        self._chart = TimeChart(
            paint, window, RATES, ticks=SHORT_NUMBER, label="Throughput over time", unit="{0.0a} rec/s", pixels=128
        )
        self.figure: figure = self._chart.figure

    def update(self, frame: Frame) -> None:
        self._chart.append(frame.time_us, throughput(frame))
        self._chart.mark(frame.events)


class LagView:
    """Event time by which each vertex is behind the furthest watermark."""

    def __init__(self, paint: Paint, window: TimeWindow) -> None:
        self._chart = TimeChart(
            paint,
            window,
            LAGS,
            ticks=SHORT_SECONDS,
            label="Watermark lag over time",
            unit="{0,0} s",
            pixels=104,
            top=ceiling_s,
        )
        self._chart.show({})
        self._lines: dict[str, str] = {}
        self.figure: figure = self._chart.figure

    def update(self, frame: Frame) -> None:
        lags = vertex_lags(frame)
        free = [line for line in LAGS if line not in self._lines]
        fresh = dict(zip(free, (name for name in lags if name not in self._lines.values()), strict=False))
        if fresh:
            self._lines.update(fresh)
            self._chart.show({line: fit(name, 90, 11) for line, name in self._lines.items()})
        self._chart.append(frame.time_us, {line: lags.get(name) for line, name in self._lines.items()})
