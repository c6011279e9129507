"""Event time against processing time: how fast the watermarks of a running job climb through the history."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.models import DatetimeTickFormatter

from workbench.dashboard.charts.html import Texts
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.charts.time_chart import LONG_TIMES, LOW_PX, TimeLines, TimeWindow
from workbench.telemetry.frames import Frame
from workbench.telemetry.reached import furthest, reached

LINES = {"furthest watermark": ("accent", "solid"), "reached by every sink": ("good", "dashed")}


def event_times(frame: Frame) -> dict[str, float | None]:
    """The event times that are drawn, in milliseconds since 1970; None before the first watermark."""
    ends = (furthest(frame), reached(frame))
    far = ends[0]
    return {
        name: None if end is None or far is None else min(end, far) / 1000
        for name, end in zip(LINES, ends, strict=True)
    }


class EventTimeChart(TimeLines):
    """Two lines over processing time, whose distance is the event time in flight."""

    def __init__(self, paint: Paint, texts: Texts, window: TimeWindow, pixels: int) -> None:
        super().__init__(
            paint, texts, window, LINES, label="Event time against processing time", unit="{%F %T}", pixels=pixels,
            y_axis_type="datetime",
        )  # fmt: skip
        self._hover.formatters = {"@t": "datetime", **{f"@{{{name}}}": "datetime" for name in LINES}}
        self.figure.yaxis.ticker.desired_num_ticks = 3 if pixels >= LOW_PX else 2
        self.figure.yaxis.formatter = DatetimeTickFormatter(
            microseconds="",  # the range before the first watermark, which is no time
            **LONG_TIMES | dict.fromkeys(("minutes", "hourmin", "hours"), "%b %d %H:%M"),
        )

    def _fit(self, shown: Sequence[float]) -> None:
        if not shown:
            return
        low, high = min(shown), max(shown)
        room = max(1000.0, (high - low) * 0.05)
        if not (self._height.start <= low and high <= self._height.end <= high + 4 * room):
            self._height.update(start=low - room, end=high + 3 * room)
