"""A chart of at most two minutes: a few lines over processing time, with a mark at every tuning of the job."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Bokeh asks for classes of pandas wherever that has been imported, even while another thread still imports it, as
# pyarrow does in a job's thread: here it is imported wholly before.
import pandas as pd  # noqa: F401
from bokeh.models import ColumnDataSource, DatetimeTickFormatter, FixedTicker, HoverTool, Range1d

from workbench.dashboard.charts.bands import Bands
from workbench.dashboard.charts.html import Texts, column
from workbench.dashboard.charts.line_key import LineKey
from workbench.dashboard.charts.marks import TUNED, Marks
from workbench.dashboard.charts.sources import ceiling, stretch
from workbench.dashboard.charts.static import ticks as formatter
from workbench.dashboard.charts.theme import Paint
from workbench.telemetry.frames import Frame

WINDOW_MS = 120_000
YOUNG_MS = (30_000, 60_000)
"""The time span shown for a job that has just started, so that its lines are not at the very edge."""
STEP_MS = 1_000
SPACING_MS = 400
"""Points closer than this to the previous one are skipped."""

SHORT_TIMES = {
    **dict.fromkeys(("milliseconds", "seconds", "minsec"), "%H:%M:%S"),
    **dict.fromkeys(("minutes", "hourmin", "hours"), "%H:%M"),
}
LONG_TIMES = {**SHORT_TIMES, "days": "%b %d", "months": "%b %Y", "years": "%Y"}
"""How a `DatetimeTickFormatter` writes instants of minutes, and of any time."""

LOW_PX = 90
"""A chart lower than this has room for only three ticks."""


def quarters(end: float, parts: int = 4) -> list[float]:
    """Ticks from 0 to `end`, which they divide into equal parts."""
    return [end * part / parts for part in range(parts + 1)]


def spaced(history: Sequence[Frame]) -> list[Frame]:
    """The frames, oldest first, that the charts can show: those of the time window, spaced like the charts' points."""
    kept: list[Frame] = []
    for frame in reversed(history):
        if kept and (kept[0].time_us - frame.time_us) / 1000 > WINDOW_MS:
            break
        if not kept or (kept[-1].time_us - frame.time_us) / 1000 >= SPACING_MS:
            kept.append(frame)
    return kept[::-1]


class TimeWindow:
    """The time range that all charts of one view show; it moves once a second, because moving it is expensive.

    It grows with the age of the job, up to two minutes.
    """

    def __init__(self) -> None:
        self.range = Range1d(0, WINDOW_MS)

    def update(self, frame: Frame) -> None:
        now = frame.time_us / 1000
        if not now < self.range.end <= now + 2 * STEP_MS:
            age = now - frame.started_us / 1000
            shown = next((span for span in YOUNG_MS if age + STEP_MS <= span), WINDOW_MS)
            self.range.update(start=now + STEP_MS - shown, end=now + STEP_MS)


class TimeLines:
    """Lines over processing time, as points that are not too close to each other, with a mark at every tuning of the
    job and a band for every interruption.

    Args:
        paint, texts: set the colours, and write the key.
        window: the time range that is shown.
        series: name of each line and its (colour, dash).
        label: for assistive technology.
        unit: format of the values in the hover, such as ``"{0.0} ms"``.
        pixels: height.
        keyed: whether the key is above the chart; otherwise the page has one for all its charts.
        marks: by the name of each job that is shown, colour and dash of the marks of its tunings; None: one job is.
        kind: further arguments of the figure.

    Attributes:
        models: the key and the figure below it, as one.
    """

    def __init__(
        self, paint: Paint, texts: Texts, window: TimeWindow, series: Mapping[str, tuple[str, str]], *, label: str,
        unit: str, pixels: int, keyed: bool = True, marks: Mapping[str, tuple[str, str]] | None = None, **kind: Any,
    ) -> None:  # fmt: skip
        self._names, self._unit = tuple(series), unit
        self._points = ColumnDataSource({name: [] for name in ("t", *self._names)})
        self._height, self._window = Range1d(0, 1), window.range
        self.figure = plot = paint.blank(
            label, pixels, x_range=window.range, y_range=self._height, x_axis_type="datetime", **kind
        )
        lines = [plot.line("t", name, source=self._points, line_width=1.75) for name in series]
        for line, (colour, dash) in zip(lines, series.values(), strict=True):
            line.glyph.line_dash = dash
            paint.set(line.glyph, line_color=colour)
        self._bands = Bands(paint, plot, window.range, labelled=isinstance(self, TimeChart) and pixels >= LOW_PX)
        self._marks = Marks(paint, plot, window.range, self._height, {"": TUNED} if marks is None else marks)
        self._key = LineKey(texts, label, series)
        self.models = (column([self._key.div, plot] if keyed else [plot]),)
        self._hover = HoverTool(mode="vline", renderers=lines[:1], formatters={"@t": "datetime"})
        plot.add_tools(self._hover)
        plot.xaxis.ticker.desired_num_ticks = 4
        plot.xaxis.formatter = DatetimeTickFormatter(**SHORT_TIMES)
        plot.xgrid.visible = False
        self.show({name: name for name in series})
        paint.plain(plot)
        paint.plot(plot)

    def show(self, labels: Mapping[str, str]) -> None:
        """Name the lines that are in use, by series; the others disappear from the key and the hover."""
        self._key.show(labels)
        tips = [(label, f"@{{{name}}}{self._unit}") for name, label in labels.items()]
        self._hover.tooltips = [("time (UTC)", "@t{%T}"), *tips]

    def explain(self, marks: str) -> None:
        """Name marks on the figure that are no lines (HTML that is ours)."""
        self._key.explain(marks)

    def append(self, time_us: int, values: Mapping[str, float | None]) -> None:
        """One point per line, unless the last is too recent; a missing value leaves a gap."""
        t, times = time_us / 1000, self._points.data["t"]
        if len(times) and 0 <= t - times[-1] < SPACING_MS:
            return
        numbers = ((name, values.get(name)) for name in self._names)
        point = {name: [math.nan if number is None else float(number)] for name, number in numbers}
        self._points.stream({"t": [t], **point}, rollover=WINDOW_MS // SPACING_MS + 20)
        visible = [index for index, time in enumerate(self._points.data["t"]) if time >= t - WINDOW_MS]
        shown = (self._points.data[name][index] for name in self._names for index in visible)
        self._fit([number for number in shown if not math.isnan(number)])

    def annotate(self, frame: Frame) -> None:
        """Show when the job was tuned and interrupted."""
        self.annotate_each({"": frame})

    def annotate_each(self, frames: Mapping[str, Frame]) -> None:
        """Show when each of the jobs that are shown was tuned and interrupted."""
        now_us = max(frame.time_us for frame in frames.values())
        self._bands.show({name: frame.interruptions for name, frame in frames.items()}, now_us)
        self._marks.show({name: frame.events for name, frame in frames.items()})

    def _fit(self, shown: Sequence[float]) -> None:
        """Adapt the y axis to the numbers that are shown."""
        raise NotImplementedError  # abstract


class TimeChart(TimeLines):
    """Lines from zero upwards.

    Args:
        ticks: the function that writes a tick of the y axis.
        top: where the y axis ends, for the greatest value that is shown.
    """

    def __init__(
        self, paint: Paint, texts: Texts, window: TimeWindow, series: Mapping[str, tuple[str, str]], *, ticks: str,
        label: str, unit: str, pixels: int, keyed: bool = True, marks: Mapping[str, tuple[str, str]] | None = None,
        top: Callable[[float], float] = ceiling,
    ) -> None:  # fmt: skip
        super().__init__(paint, texts, window, series, label=label, unit=unit, pixels=pixels, keyed=keyed, marks=marks)
        self._top, self._parts = top, 4 if pixels >= LOW_PX else 2
        plot = self.figure
        plot.yaxis.formatter = formatter(ticks)
        plot.yaxis.ticker = self._ticker = FixedTicker(ticks=quarters(1.0, self._parts))

    def _fit(self, shown: Sequence[float]) -> None:
        end = self._top(max(shown, default=0.0))
        if stretch(self._height, end):
            self._ticker.ticks = quarters(end, self._parts)
