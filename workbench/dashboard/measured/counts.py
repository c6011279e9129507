"""E6 as a picture: the counts in a database as another program sees them, and how old they are."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.embed import file_html
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, HoverTool
from bokeh.plotting import figure
from bokeh.resources import INLINE

from workbench.dashboard.charts.static import page, ticks
from workbench.dashboard.charts.theme import Paint

WIDTH, HEIGHT = 720, 250


def counts_figures(
    rate: int, seconds: Sequence[float], emitted: Sequence[int], stored: Sequence[int], ages: Sequence[float]
) -> list[figure]:
    """Two figures one above the other: views over time, and the age of the counts.

    Args:
        rate: events per second.
        seconds: when another program looked.
        emitted, stored: views that the source had emitted then, and that the counts had.
        ages: in seconds.
    """
    paint = Paint()
    source = ColumnDataSource({"x": list(seconds), "emitted": list(emitted), "stored": list(stored), "age": list(ages)})
    views = figure(
        width=WIDTH, height=HEIGHT, tools="", title=f"Views of ads so far, at {rate:,} events/s", x_axis_label="seconds"
    )
    lines = []
    for name, colour, dash, label in (
        ("emitted", "muted", "dotted", "emitted by the source"),
        ("stored", "good", "solid", "counted in Redis"),
    ):
        line = views.line("x", name, source=source, line_width=2, line_dash=dash, legend_label=label)
        paint.set(line.glyph, line_color=colour)
        lines.append(line)
    told = [("emitted", "@emitted{0,0}"), ("in Redis", "@stored{0,0}")]
    views.add_tools(HoverTool(renderers=lines[1:], mode="vline", tooltips=told))
    views.yaxis.formatter = ticks("shortNumber")
    age = figure(
        width=WIDTH, height=HEIGHT, tools="", x_axis_label="seconds", x_range=views.x_range,
        title="How old the counts in Redis are, in seconds: they are written once a second",
    )  # fmt: skip
    line = age.line("x", "age", source=source, line_width=2, legend_label="age of the counts")
    paint.set(line.glyph, line_color="good")
    for plot in (views, age):
        plot.y_range.start = 0
        plot.add_layout(plot.legend[0], "right")
    return [paint.plot(plot) for plot in (views, age)]


def counts_page(
    rate: int, seconds: Sequence[float], emitted: Sequence[int], stored: Sequence[int], ages: Sequence[float]
) -> str:
    """An HTML page with the figures that needs no network; see `counts_figures`."""
    figures = column(*counts_figures(rate, seconds, emitted, stored, ages))
    return str(file_html(figures, INLINE, title="Counts of views in Redis", template=page("white")))
