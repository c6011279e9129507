"""E7 and E8 as a picture: what was counted in the last seconds, under intervals of snapshots and of micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bokeh.embed import file_html
from bokeh.layouts import column, row
from bokeh.models import ColumnDataSource, HoverTool
from bokeh.plotting import figure
from bokeh.resources import INLINE

from workbench.dashboard.charts.static import page
from workbench.dashboard.charts.theme import Paint

WIDTH, HEIGHT = 420, 190
ABOVE = 1.6
"""The height of the axis, of the highest answer; there is room for the legend."""


@dataclass(frozen=True, slots=True)
class IntervalRun:
    """The answers of one run; the lists are as long as one another.

    Attributes:
        title: of its figure.
        right: whether they are the true ones.
        starts, ends: of the time that each answer is for, seconds of event time.
        counts: the answers.
    """

    title: str
    right: bool
    starts: Sequence[float]
    ends: Sequence[float]
    counts: Sequence[int]


def intervals_figures(runs: Sequence[IntervalRun], truth: IntervalRun) -> list[figure]:
    """A figure for each run: its answers as bars, and the true ones as dots, on common axes."""
    paint = Paint()
    highest = max((count for run in (*runs, truth) for count in run.counts), default=1)
    shown = []
    for run in runs:
        plot = figure(
            width=WIDTH, height=HEIGHT, tools="", title=run.title, y_range=(0, ABOVE * highest),
            x_axis_label="seconds of event time",
        )  # fmt: skip
        answers = ColumnDataSource({"start": run.starts, "end": run.ends, "count": run.counts})
        bars = plot.quad(
            left="start", right="end", bottom=0, top="count", source=answers, fill_alpha=0.5, legend_label="answers"
        )
        paint.set(bars.glyph, fill_color="good" if run.right else "bad", line_color="card")
        middles = [(start + end) / 2 for start, end in zip(truth.starts, truth.ends, strict=True)]
        dots = plot.scatter("at", "count", size=6, legend_label="true", source={"at": middles, "count": truth.counts})
        paint.set(dots.glyph, fill_color="ink", line_color="ink")
        plot.add_tools(HoverTool(renderers=[bars], tooltips=[("from", "@start s to @end s"), ("answer", "@count")]))
        plot.legend.orientation = "horizontal"
        plot.legend.location = "top_right"
        shown.append(paint.plot(plot))
    return shown


def intervals_page(runs: Sequence[IntervalRun], truth: IntervalRun, across: int) -> str:
    """An HTML page with the figures that needs no network.

    Args:
        runs: those of one column behind each other.
        truth: the true answers.
        across: how many figures stand in a column.
    """
    figures = intervals_figures(runs, truth)
    columns = [column(*figures[first : first + across]) for first in range(0, len(figures), across)]
    template = page("white")
    return str(file_html(row(*columns), INLINE, title="Intervals of snapshots and of micro-batches", template=template))
