"""E9 as a picture: latency over time, and latency and throughput against the size of the state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bokeh.embed import file_html
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, HoverTool
from bokeh.plotting import figure
from bokeh.resources import INLINE

from workbench.dashboard.charts.static import page, ticks
from workbench.dashboard.charts.theme import Paint

WIDTH, HEIGHT = 720, 250
LINES = (("muted", "dotted"), ("good", "solid"), ("bad", "dashed"))
"""Of the ways in their order: colour and dash, so that they can be told apart without colours."""


@dataclass(frozen=True, slots=True)
class StallRun:
    """What was measured of one way to take checkpoints, with state of one size.

    Attributes:
        name: of the way.
        keys: in the state.
        p99_ms, worst_ms: latency of records at a rate; None: not measured.
        eps: records per second at full speed.
        seconds: when records came, in steps.
        worst: the latency of the slowest record of each step, in milliseconds.
    """

    name: str
    keys: int
    p99_ms: float | None
    worst_ms: float
    eps: float
    seconds: Sequence[float]
    worst: Sequence[float]


def stalls_figures(runs: Sequence[StallRun], rate: int) -> list[figure]:
    """Three figures one above the other: over time with the largest state, and two against the size of the state."""
    paint = Paint()
    names = list(dict.fromkeys(run.name for run in runs))
    styles = dict(zip(names, LINES, strict=False))
    largest = max((run.keys for run in runs), default=0)
    over_time = figure(
        width=WIDTH, height=HEIGHT, tools="", x_axis_label="seconds",
        title=f"Slowest record of every 50 ms, at {rate:,} records/s, {largest:,} keys in the state",
    )  # fmt: skip
    for run in runs:
        if run.keys == largest:
            _line(over_time, paint, styles[run.name], run.name, run.seconds, run.worst)
    over_time.yaxis.formatter = ticks("shortMilliseconds")
    sizes = [f"{keys:,}" for keys in sorted({run.keys for run in runs})]
    latency = figure(
        x_range=sizes, width=WIDTH, height=HEIGHT, tools="", title=f"Slowest record, at {rate:,} records/s"
    )
    speed = figure(
        x_range=latency.x_range, width=WIDTH, height=HEIGHT, tools="", x_axis_label="keys in the state",
        title="Throughput at full speed, records/s",
    )  # fmt: skip
    for name in names:
        own = sorted((run for run in runs if run.name == name), key=lambda run: run.keys)
        at = [f"{run.keys:,}" for run in own]
        _line(latency, paint, styles[name], name, at, [run.worst_ms for run in own], dots=True)
        _line(speed, paint, styles[name], name, at, [run.eps for run in own], dots=True)
    latency.yaxis.formatter = ticks("shortMilliseconds")
    speed.yaxis.formatter = ticks("shortNumber")
    for plot in (over_time, latency, speed):
        plot.y_range.start = 0
        plot.add_layout(plot.legend[0], "right")
    return [paint.plot(plot) for plot in (over_time, latency, speed)]


def _line(
    plot: figure,
    paint: Paint,
    style: tuple[str, str],
    name: str,
    x: Sequence[float] | Sequence[str],
    y: Sequence[float],
    *,
    dots: bool = False,
) -> None:
    colour, dash = style
    source = ColumnDataSource({"x": list(x), "y": list(y)})
    line = plot.line("x", "y", source=source, line_width=2, line_dash=dash, legend_label=name)
    paint.set(line.glyph, line_color=colour)
    if dots:
        marks = plot.scatter("x", "y", source=source, size=7, legend_label=name)
        paint.set(marks.glyph, line_color=colour, fill_color=colour)
    plot.add_tools(HoverTool(renderers=[line], tooltips=[(name, "@y{0,0.[0]}")]))


def stalls_page(runs: Sequence[StallRun], rate: int) -> str:
    """An HTML page with the figures that needs no network."""
    figures = column(*stalls_figures(runs, rate))
    return str(file_html(figures, INLINE, title="Naive checkpoints against snapshots", template=page("white")))
