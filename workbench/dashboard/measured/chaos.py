"""E5 as a picture: the generator's rate against throughput, with the failures, and the false alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bokeh.embed import file_html
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, HoverTool, Range1d, Span
from bokeh.plotting import figure
from bokeh.resources import INLINE

from workbench.dashboard.charts.static import page, ticks
from workbench.dashboard.charts.theme import Paint

WIDTH, HEIGHT = 720, 230
LINES = (("good", "solid"), ("bad", "dashed"))
"""Of the runs in their order: colour and dash, so that they can be told apart without colours."""


@dataclass(frozen=True, slots=True)
class ChaosRun:
    """What was seen of one run; the lists are as long as one another.

    Attributes:
        title: of its figure.
        label: short, for the legend.
        failures: seconds at which a task failed.
        seconds: when it was looked at.
        generated: events generated per second.
        throughput: events processed per second.
        false_alerts: so far.
    """

    title: str
    label: str
    failures: Sequence[float]
    seconds: Sequence[float]
    generated: Sequence[float]
    throughput: Sequence[float]
    false_alerts: Sequence[int]


def chaos_figures(runs: Sequence[ChaosRun]) -> list[figure]:
    """A figure of rate and throughput for each run, and one of the false alerts of all, one above the other."""
    paint = Paint()
    figures = [_throughput(run, paint) for run in runs]
    alerts = figure(width=WIDTH, height=HEIGHT, title="False alerts so far", x_axis_label="seconds", tools="hover")
    for run, (colour, dash) in zip(runs, LINES, strict=False):
        source = ColumnDataSource({"seconds": run.seconds, "alerts": run.false_alerts})
        line = alerts.line("seconds", "alerts", source=source, line_width=2, line_dash=dash, legend_label=run.label)
        paint.set(line.glyph, line_color=colour)
    alerts.select_one(HoverTool).tooltips = [("second", "@seconds{0.0}"), ("false alerts", "@alerts{0,0}")]
    alerts.legend.location = "top_left"
    alerts.yaxis.formatter = ticks("shortNumber")
    return [paint.plot(plot) for plot in (*figures, alerts)]


def _throughput(run: ChaosRun, paint: Paint) -> figure:
    plot = figure(width=WIDTH, height=HEIGHT, title=run.title, tools="hover")
    source = ColumnDataSource({"seconds": run.seconds, "generated": run.generated, "throughput": run.throughput})
    job = plot.line("seconds", "throughput", source=source, line_width=2, legend_label="job, events/s")
    generator = plot.line("seconds", "generated", source=source, line_dash="dashed", legend_label="generator")
    paint.set(job.glyph, line_color="accent")
    paint.set(generator.glyph, line_color="ink")
    for second in run.failures:
        failure = Span(location=second, dimension="height", line_dash="dotted", line_width=1)
        plot.add_layout(paint.set(failure, line_color="bad"))
    plot.select_one(HoverTool).renderers = [job]
    plot.select_one(HoverTool).tooltips = [("second", "@seconds{0.0}"), ("events/s", "@throughput{0,0}")]
    highest = max((*run.throughput, *run.generated), default=1.0)
    plot.y_range = Range1d(0, 1.5 * highest)  # room for the legend
    plot.legend.location = "top_right"
    plot.yaxis.formatter = ticks("shortNumber")
    return plot


def chaos_page(runs: Sequence[ChaosRun]) -> str:
    """An HTML page with the figures that needs no network."""
    return str(file_html(column(*chaos_figures(runs)), INLINE, title="Failures", template=page("white")))
