"""Event time against processing time: how fast the watermarks of a running job climb through the history (F2-5)."""

from __future__ import annotations

import math

from bokeh.models import ColumnDataSource, DatetimeTickFormatter, HoverTool, Range1d
from bokeh.plotting import figure

from workbench.dashboard.charts.html import Texts
from workbench.dashboard.charts.line_key import LineKey
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.charts.time_chart import LOW_PX, SPACING_MS, WINDOW_MS, TimeWindow
from workbench.dashboard.views.event_time.watermarks import furthest
from workbench.telemetry.frames import Frame
from workbench.telemetry.reached import reached

LINES = {"furthest watermark": ("accent", "solid"), "reached by every sink": ("good", "dashed")}


def event_times(frame: Frame) -> dict[str, float | None]:
    """The event times that are drawn, in milliseconds since 1970; None before the first watermark."""
    ends = (furthest(frame), reached(frame))
    far = ends[0]
    return {
        name: None if end is None or far is None else min(end, far) / 1000
        for name, end in zip(LINES, ends, strict=True)
    }


class EventTimeChart:
    """Two lines over processing time, whose distance is the event time in flight."""

    def __init__(self, paint: Paint, texts: Texts, window: TimeWindow, pixels: int) -> None:
        self._points = ColumnDataSource({name: [] for name in ("t", *LINES)})
        self._range = Range1d(0, 1)
        self.figure = figure(
            height=pixels, sizing_mode="stretch_width", x_range=window.range, y_range=self._range, tools="",
            x_axis_type="datetime", y_axis_type="datetime",
            html_attributes={"role": "img", "aria-label": "Event time against processing time"},
        )  # fmt: skip
        lines = {name: self.figure.line("t", name, source=self._points, line_width=1.75) for name in LINES}
        for name, line in lines.items():
            colour, dash = LINES[name]
            line.glyph.line_dash = dash
            paint.set(line.glyph, line_color=colour)
        self.models = (LineKey(texts, "Event time against processing time", LINES).div, self.figure)
        tips = [("time (UTC)", "@t{%T}"), *((name, f"@{{{name}}}{{%F %T}}") for name in LINES)]
        hover = HoverTool(mode="vline", renderers=[next(iter(lines.values()))], tooltips=tips)
        hover.formatters = {"@t": "datetime", **{f"@{{{name}}}": "datetime" for name in LINES}}
        self.figure.add_tools(hover)
        self.figure.yaxis.ticker.desired_num_ticks = 3 if pixels >= LOW_PX else 2
        self.figure.xaxis.ticker.desired_num_ticks = 4
        self.figure.xaxis.formatter = DatetimeTickFormatter(
            **dict.fromkeys(("milliseconds", "seconds", "minsec"), "%H:%M:%S"),
            **dict.fromkeys(("minutes", "hourmin", "hours"), "%H:%M"),
        )
        self.figure.yaxis.formatter = DatetimeTickFormatter(
            microseconds="",  # the range before the first watermark, which is no time
            **dict.fromkeys(("milliseconds", "seconds", "minsec"), "%H:%M:%S"),
            **dict.fromkeys(("minutes", "hourmin", "hours"), "%b %d %H:%M"), days="%b %d", months="%b %Y", years="%Y",
        )  # fmt: skip
        self.figure.xgrid.visible = False
        paint.plot(self.figure)

    def append(self, frame: Frame) -> None:
        """One point per line, unless the last is too recent."""
        t, times = frame.time_us / 1000, self._points.data["t"]
        if len(times) and 0 <= t - times[-1] < SPACING_MS:
            return
        values = event_times(frame)
        point = {name: [math.nan if value is None else value] for name, value in values.items()}
        self._points.stream({"t": [t], **point}, rollover=WINDOW_MS // SPACING_MS + 20)
        start = t - WINDOW_MS
        shown = [
            value
            for name in LINES
            for at, value in zip(self._points.data["t"], self._points.data[name], strict=True)
            if at >= start and not math.isnan(value)
        ]
        if shown:
            low, high = min(shown), max(shown)
            room = max(1000.0, (high - low) * 0.05)
            if not (self._range.start <= low and high <= self._range.end <= high + 4 * room):
                self._range.update(start=low - room, end=high + 3 * room)
