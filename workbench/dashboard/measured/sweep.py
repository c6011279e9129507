"""E4 as a picture: latency percentiles and throughput against the buffer timeout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from bokeh.embed import file_html
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, HoverTool
from bokeh.plotting import figure
from bokeh.resources import INLINE

from workbench.dashboard.charts.static import page, ticks
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.views.latency import PERCENTILES

WIDTH, HEIGHT = 720, 260
FRAME_HEIGHT = 2 * HEIGHT + 40


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """What was measured at one buffer timeout.

    Attributes:
        timeout_ms: the buffer timeout.
        p50_ms, p90_ms, p99_ms: latency of records at a steady rate, None where no record was measured.
        eps: events per second at full speed.
    """

    timeout_ms: int
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    eps: float


def sweep_figures(points: Sequence[SweepPoint], rate: int) -> list[figure]:
    """Two figures one above the other: latency at `rate` records per second, and throughput at full speed.

    Timeouts are categories: 0 is one of them, and they are far apart.
    """
    timeouts = [f"{point.timeout_ms} ms" for point in points]
    source = ColumnDataSource(
        {
            "timeout": timeouts,
            **{name: [getattr(point, f"{name}_ms") for point in points] for name in ("p50", "p90", "p99")},
            "eps": [point.eps for point in points],
        }
    )
    paint = Paint()
    latency = figure(
        x_range=timeouts,
        y_axis_type="log",
        width=WIDTH,
        height=HEIGHT,
        title=f"Latency of a record, source to sink, at {rate:,} records/s",
    )
    for name in ("p50", "p90", "p99"):
        colour, dash = PERCENTILES[name]
        line = latency.line("timeout", name, source=source, line_width=2, line_dash=dash, legend_label=name)
        dots = latency.scatter("timeout", name, source=source, size=7, legend_label=name)
        paint.set(line.glyph, line_color=colour)
        paint.set(dots.glyph, line_color=colour, fill_color=colour)
        latency.add_tools(
            HoverTool(renderers=[dots], tooltips=[("timeout", "@timeout"), (name, f"@{name}{{0.00}} ms")])
        )
    latency.legend.location = "top_left"
    latency.yaxis.formatter = ticks("shortMilliseconds")
    speed = figure(
        x_range=latency.x_range,
        y_range=(0, 1.1 * max((point.eps for point in points), default=1.0)),
        width=WIDTH,
        height=HEIGHT,
        title="Throughput at full speed, events/s",
        x_axis_label="buffer timeout",
    )
    bars = speed.vbar("timeout", top="eps", width=0.6, source=source)
    paint.set(bars.glyph, fill_color="accent", line_color="accent")
    speed.add_tools(HoverTool(tooltips=[("timeout", "@timeout"), ("events/s", "@eps{0,0}")]))
    speed.yaxis.formatter = ticks("shortNumber")
    return [paint.plot(latency), paint.plot(speed)]


def sweep_page(points: Sequence[SweepPoint], rate: int) -> str:
    """An HTML page with the figures that needs no network."""
    return str(file_html(column(*sweep_figures(points, rate)), INLINE, title="Buffer timeout", template=page("white")))


def framed(page: str) -> str:
    """A page as a part of a notebook: in a frame of its own, so that nothing of it meets the notebook's page."""
    return (
        f"<iframe title='Buffer timeout' style='border:0;width:100%;height:{FRAME_HEIGHT}px' "
        f'srcdoc="{escape(page, quote=True)}"></iframe>'
    )
