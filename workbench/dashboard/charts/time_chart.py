"""A chart of at most two minutes: a few lines over processing time, with a mark wherever someone tuned the job."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bokeh.core.properties import value
from bokeh.models import (
    ColumnDataSource,
    CustomJSTickFormatter,
    DatetimeTickFormatter,
    FixedTicker,
    HoverTool,
    Range1d,
)
from bokeh.plotting import figure

from workbench.dashboard.charts.html import Texts
from workbench.dashboard.charts.line_key import LineKey
from workbench.dashboard.charts.sources import ceiling, refresh, stretch
from workbench.dashboard.charts.theme import FONT, Paint
from workbench.dashboard.charts.wording import fit
from workbench.telemetry.frames import EventFrame, Frame

WINDOW_MS = 120_000
YOUNG_MS = (30_000, 60_000)
"""How much of time is shown of a job that has run no longer, so that its lines are not at the very edge."""
STEP_MS = 1_000
SPACING_MS = 400
"""Points closer than this to the last one are left out."""

LOW_PX = 90
"""A chart lower than that has room for three ticks only."""

SHORT_NUMBER = """
const a = Math.abs(tick), w = (x) => +x.toPrecision(3)
return a >= 1e9 ? w(tick / 1e9) + "G" : a >= 1e6 ? w(tick / 1e6) + "M" : a >= 1e3 ? w(tick / 1e3) + "k" : "" + w(tick)
"""
SHORT_MS = (
    'return tick >= 60000 ? tick / 60000 + " min" : tick >= 1000 ? tick / 1000 + " s" : +tick.toPrecision(3) + " ms"'
)
SHORT_SECONDS = """
return tick >= 86400 ? +(tick / 86400).toFixed(1) + " d" : tick >= 3600 ? +(tick / 3600).toFixed(1) + " h"
  : tick >= 60 ? +(tick / 60).toFixed(1) + " min" : tick + " s"
"""


def tunings(events: Sequence[EventFrame]) -> dict[str, list[Any]]:
    """Where someone tuned the job: ``x`` in milliseconds since 1970, and what was changed (for the latest alone)."""
    tuned = [event for event in events if event.kind == "tune"]
    texts = [""] * (len(tuned) - 1) + [fit(event.text, 180, 11) for event in tuned[-1:]]
    return {"x": [event.time_us / 1000 for event in tuned], "text": texts}


def quarters(end: float, parts: int = 4) -> list[float]:
    """Ticks from 0 to `end`, which they divide into so many parts."""
    return [end * part / parts for part in range(parts + 1)]


def spaced(history: Sequence[Frame]) -> list[Frame]:
    """The frames, oldest first, that the charts can show: of the time window, as far apart as their points are."""
    kept: list[Frame] = []
    for frame in reversed(history):
        if kept and (kept[0].time_us - frame.time_us) / 1000 > WINDOW_MS:
            break
        if not kept or (kept[-1].time_us - frame.time_us) / 1000 >= SPACING_MS:
            kept.append(frame)
    return kept[::-1]


class TimeWindow:
    """The stretch of time that all charts of one view show; it moves once a second, for moving it is dear.

    It becomes longer with the age of the job, up to two minutes.
    """

    def __init__(self) -> None:
        self.range = Range1d(0, WINDOW_MS)

    def update(self, frame: Frame) -> None:
        now = frame.time_us / 1000
        if not now < self.range.end <= now + 2 * STEP_MS:
            age = now - frame.started_us / 1000
            shown = next((span for span in YOUNG_MS if age + STEP_MS <= span), WINDOW_MS)
            self.range.update(start=now + STEP_MS - shown, end=now + STEP_MS)


class TimeChart:
    """Lines over time.

    Args:
        paint, texts: give the colours, and write which line is which.
        window: the time that is shown.
        series: name of each line and its (colour, dash).
        ticks: JavaScript that writes a tick of the y axis.
        label: for assistive technology.
        unit: format of the values in the hover, such as ``"{0.0} ms"``.
        pixels: height.
        top: where the y axis ends, for the greatest value that is shown.

    Attributes:
        models: the key and the figure.
    """

    def __init__(
        self,
        paint: Paint,
        texts: Texts,
        window: TimeWindow,
        series: Mapping[str, tuple[str, str]],
        *,
        ticks: str,
        label: str,
        unit: str,
        pixels: int,
        top: Callable[[float], float] = ceiling,
    ) -> None:
        self._names, self._top = tuple(series), top
        self._parts = 4 if pixels >= LOW_PX else 2
        self._points = ColumnDataSource({name: [] for name in ("t", *self._names)})
        self._marks = ColumnDataSource({"x": [], "text": [], "y": [], "align": [], "shift": []})
        self._height = Range1d(0, 1)
        self.figure = figure(
            height=pixels, sizing_mode="stretch_width", x_range=window.range, y_range=self._height, tools="",
            x_axis_type="datetime", html_attributes={"role": "img", "aria-label": label},
        )  # fmt: skip
        lines = [
            self.figure.line("t", name, source=self._points, line_width=1.75, line_dash=dash)
            for name, (_, dash) in series.items()
        ]
        for line, (colour, _) in zip(lines, series.values(), strict=True):
            paint.set(line.glyph, line_color=colour)
        self._key = LineKey(texts, label, series)
        self.models = (self._key.div, self.figure)
        tips = [(name, f"@{{{name}}}{unit}") for name in self._names]
        self._hover = HoverTool(mode="vline", renderers=lines[:1], tooltips=[("time (UTC)", "@t{%T}"), *tips])
        self._hover.formatters = {"@t": "datetime"}
        self.figure.add_tools(self._hover)
        self._unit = unit
        self._dress(paint, ticks)
        paint.plot(self.figure)

    def show(self, labels: Mapping[str, str]) -> None:
        """Name the lines that are in use, by series; the others vanish from the key and the hover."""
        self._key.show(labels)
        self._hover.tooltips = [("time (UTC)", "@t{%T}")] + [
            (label, f"@{{{name}}}{self._unit}") for name, label in labels.items()
        ]

    def append(self, time_us: int, values: Mapping[str, float | None]) -> None:
        """One point per line, unless the last is too recent; a missing value leaves a gap."""
        t, times = time_us / 1000, self._points.data["t"]
        if len(times) and 0 <= t - times[-1] < SPACING_MS:
            return
        point = {"t": [t]}
        for name in self._names:
            number = values.get(name)
            point[name] = [math.nan if number is None else float(number)]
        self._points.stream(point, rollover=WINDOW_MS // SPACING_MS + 20)
        self._fit_height()

    def mark(self, events: Sequence[EventFrame]) -> None:
        """Show where the job was tuned."""
        marks = tunings(events)
        middle = self._points.data["t"][-1] - WINDOW_MS / 2 if len(self._points.data["t"]) else 0.0
        right = [x < middle for x in marks["x"]]
        refresh(
            self._marks,
            {
                **marks,
                "y": [float(self._height.end)] * len(right),
                "align": ["left" if free else "right" for free in right],
                "shift": [5 if free else -5 for free in right],
            },
        )

    def _fit_height(self) -> None:
        start = self._points.data["t"][-1] - WINDOW_MS
        visible = [index for index, t in enumerate(self._points.data["t"]) if t >= start]
        numbers = (self._points.data[name][index] for name in self._names for index in visible)
        self._fit_to(max((number for number in numbers if not math.isnan(number)), default=0.0))

    def _fit_to(self, greatest: float) -> None:
        end = self._top(greatest)
        if stretch(self._height, end):
            self._ticker.ticks = quarters(end, self._parts)

    def _dress(self, paint: Paint, ticks: str) -> None:
        plot = self.figure
        plot.yaxis.formatter = CustomJSTickFormatter(code=ticks)
        plot.yaxis.ticker = self._ticker = FixedTicker(ticks=quarters(1.0, self._parts))
        plot.xaxis.ticker.desired_num_ticks = 4
        plot.xaxis.formatter = DatetimeTickFormatter(
            **dict.fromkeys(("milliseconds", "seconds", "minsec"), "%H:%M:%S"),
            **dict.fromkeys(("minutes", "hourmin", "hours"), "%H:%M"),
        )
        plot.xgrid.visible = False
        span = plot.vspan("x", source=self._marks, line_dash="dashed", line_width=1.25)
        text = plot.text(
            "x", "y", "text", source=self._marks, text_align="align", x_offset="shift", y_offset=1,
            text_font=value(FONT), text_font_size="11px", text_baseline="top", background_fill_alpha=0.8,
        )  # fmt: skip
        paint.set(span.glyph, line_color="violet")
        paint.set(text.glyph, text_color="violet", background_fill_color="card")
