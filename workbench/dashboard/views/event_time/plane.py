"""The plane of event time and processing time: records as points, the watermark as a curve, windows as boxes."""

from __future__ import annotations

from typing import Any

from bokeh.models import ColumnDataSource, DatetimeTickFormatter, HoverTool, Range1d
from bokeh.transform import transform

from workbench.dashboard.charts import bands
from workbench.dashboard.charts.marks import tunings
from workbench.dashboard.charts.sources import refresh
from workbench.dashboard.charts.static import rewritten, whole_callback
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.charts.time_chart import LONG_TIMES
from workbench.dashboard.charts.wording import clock, count, fit
from workbench.dashboard.views.event_time.seen import Box, Seen
from workbench.telemetry.frames import Frame

FATES = {
    "in time": ("circle", "accent", 4, "●", "read"),
    "updated": ("diamond", "warn", 9, "◆", "late, its window fired again"),
    "side output": ("triangle", "violet", 8, "▲", "late, to the side output"),
    "dropped": ("x", "bad", 9, "✕", "late, dropped"),
}
"""Marker, colour, size, the sign in the key, and words of each fate: shapes tell them apart without colours."""

KEY = (
    "<p>"
    + " ".join(
        f"<span style='color:var(--wb-{colour})'>{sign}</span>&nbsp;{words}&ensp;"
        for _, colour, _, sign, words in FATES.values()
    )
    + "<span style='color:var(--wb-good)'>━</span>&nbsp;watermark&ensp;"
    "<span style='color:var(--wb-muted)'>┅</span>&nbsp;no delay (ideal)&ensp;▭&nbsp;window: solid when it has fired</p>"
)


class Plane:
    """A figure with event time to the right and processing time upwards.

    Attributes:
        figure: the model.
        points: sampled records by fate: ``event``, ``time`` in milliseconds, ``behind``.
        lines: ``watermark`` and ``ideal``.
        open, fired: windows.
        texts: what is written on them, the newest first; the page leaves out what would be cut or over another text.
        tuned, interrupted: when the job was, across the plane.
    """

    def __init__(self, paint: Paint, pixels: int) -> None:
        self._events, self._times = Range1d(0, 1), Range1d(0, 1)
        self.figure = plot = paint.blank(
            "Event time to the right, processing time upwards: records, watermark and windows", pixels,
            x_range=self._events, y_range=self._times, x_axis_type="datetime", y_axis_type="datetime",
        )  # fmt: skip
        self.tuned = ColumnDataSource({name: [] for name in ("y", "x", "text", "align", "shift")})
        self.interrupted = ColumnDataSource({name: [] for name in bands.NAMES})
        for bottom, top, colour in (("start", "back", "bad"), ("back", "end", "warn")):
            strip = plot.hstrip(bottom, top, source=self.interrupted, line_color=None, fill_alpha=0.2, level="underlay")
            paint.set(strip.glyph, fill_color=colour)
            if colour == "bad":
                paint.hatch(strip.glyph, colour="card")
        span = plot.hspan("y", source=self.tuned, line_dash="dashed", line_width=1.25)
        paint.set(span.glyph, line_color="violet")
        self.open, self.fired = (
            ColumnDataSource({name: [] for name in ("left", "right", "bottom", "top", "about")}) for _ in range(2)
        )
        boxes = [
            plot.quad("left", "right", "bottom", "top", source=source, fill_alpha=alpha, line_dash=dash, line_width=1.2)
            for source, alpha, dash in ((self.open, 0.06, "dashed"), (self.fired, 0.16, "solid"))
        ]
        for box in boxes:
            paint.set(box.glyph, fill_color="accent", line_color="accent")
        self.texts = ColumnDataSource({name: [] for name in ("x", "right", "y", "text")})
        chosen, shift = (
            rewritten("window_texts", name, figure=plot, windows=self.texts) for name in ("chooseTexts", "shiftTexts")
        )
        paint.text(
            plot, self.texts, "x", "y", transform("text", chosen), "ink", 11, x_offset=transform("x", shift),
            y_offset=3, text_baseline="top",
        )  # fmt: skip
        again = whole_callback("fits", "fitAgain", sources=[self.texts])
        plot.js_on_change("inner_width", again)
        for shown in (self._events, self._times):
            shown.js_on_change("start", again)
            shown.js_on_change("end", again)
        self.lines = {name: ColumnDataSource({"event": [], "time": []}) for name in ("ideal", "watermark")}
        for name, colour, dash, width in (("ideal", "muted", "dashed", 1.25), ("watermark", "good", "solid", 2.5)):
            line = plot.line("event", "time", source=self.lines[name], line_dash=dash, line_width=width)
            paint.set(line.glyph, line_color=colour)
        self.points: dict[str, ColumnDataSource] = {}
        dots = []
        for fate, (marker, colour, size, _, words) in FATES.items():
            source = self.points[fate] = ColumnDataSource({"event": [], "time": [], "about": []})
            dot = plot.scatter("event", "time", source=source, marker=marker, size=size, line_width=1.5, name=words)
            paint.set(dot.glyph, fill_color=colour, line_color=colour)
            dots.append(dot)
        told = paint.text(
            plot, self.tuned, "x", "y", "text", "violet", 11, text_align="align", x_offset="shift", y_offset=-2,
            text_baseline="bottom", background_fill_alpha=0.8,
        )  # fmt: skip
        paint.set(told, background_fill_color="card")
        plot.add_tools(HoverTool(renderers=[*dots, *boxes], tooltips="@about"))
        plot.xaxis.axis_label, plot.yaxis.axis_label = "event time (UTC)", "processing time (UTC)"
        for axis in plot.axis:
            axis.formatter = DatetimeTickFormatter(microseconds="", **LONG_TIMES)
        plot.xaxis.ticker.desired_num_ticks = 5
        paint.plain(plot)
        paint.plot(plot)

    def show(self, seen: Seen, now_us: int) -> None:
        """Draw what has been seen up to `now_us` of processing time."""
        for fate, source in self.points.items():
            own = [point for point in seen.points if point.fate == fate]
            columns: dict[str, list[Any]] = {
                "event": [point.event_time_us / 1000 for point in own],
                "time": [point.time_us / 1000 for point in own],
                "about": [
                    f"{FATES[fate][4]}: of {clock(point.event_time_us)}, {point.behind_us / 1e6:,.3f} s behind"
                    for point in own
                ],
            }
            refresh(source, columns)
        for name, line in (("watermark", seen.watermark), ("ideal", seen.ideal)):
            refresh(
                self.lines[name], {"event": [at / 1000 for _, at in line], "time": [time / 1000 for time, _ in line]}
            )
        self._fit(seen, now_us)
        boxes = list(seen.boxes.values())
        refresh(self.open, _columns([box for box in boxes if not box.fired], now_us))
        refresh(self.fired, _columns([box for box in boxes if box.fired], now_us))
        boxes.sort(key=lambda box: -box.start_us)
        texts: dict[str, list[Any]] = {
            "x": [box.start_us / 1000 for box in boxes],
            "right": [box.end_us / 1000 for box in boxes],
            "y": [_top(box, now_us) / 1000 for box in boxes],
            "text": [_text(box) for box in boxes],
        }
        refresh(self.texts, texts)

    def annotate(self, frame: Frame) -> None:
        """Draw when the job was tuned and interrupted, in so far as the plane shows that time."""
        start, middle = self._times.start, (self._times.start + self._times.end) / 2
        marks = tunings([event for event in frame.events if event.time_us / 1000 >= start])
        above = [y > middle for y in marks["x"]]  # records run from the lower left to the upper right
        sides = {
            "x": [self._events.start if left else self._events.end for left in above],
            "align": ["left" if left else "right" for left in above],
            "shift": [4 if left else -4 for left in above],
        }
        refresh(self.tuned, {"y": marks["x"], "text": marks["text"], **sides})
        seen = [one for one in frame.interruptions if one.end_us is None or one.end_us / 1000 >= start]
        refresh(self.interrupted, bands.columns({"": seen}, frame.time_us, frame.time_us))

    def _fit(self, seen: Seen, now_us: int) -> None:
        times = [time for time, _ in (*seen.watermark, *seen.ideal)] + [point.time_us for point in seen.points]
        marks = [at for _, at in (*seen.watermark, *seen.ideal)]
        events = sorted(point.event_time_us for point in seen.points) or marks
        if not times or not events:
            return
        low, high = (sorted(events)[int(len(events) * share)] for share in (0.02, 0.999))
        low, high = min(low, *marks, low), max(high, *marks, high)
        room, height = max((high - low) // 20, 500_000), max(now_us - min(times), 1_000_000)
        _move(self._events, (low - room) / 1000, (high + room) / 1000, room / 1000)
        _move(self._times, min(times) / 1000, (now_us + height // 12) / 1000, height / 30_000)


def _move(shown: Range1d, start: float, end: float, slack: float) -> None:
    """Let an axis show that, unless it nearly does: moving it is dear."""
    if not (start - slack <= shown.start <= start + slack and end <= shown.end <= end + slack):
        shown.update(start=start, end=end + slack)


def _top(box: Box, now_us: int) -> int:
    return max((fired.time_us for fired in box.fired), default=now_us)


def _columns(boxes: list[Box], now_us: int) -> dict[str, list[Any]]:
    tops = [_top(box, now_us) for box in boxes]
    return {
        "left": [box.start_us / 1000 for box in boxes],
        "right": [box.end_us / 1000 for box in boxes],
        "bottom": [box.opened_us / 1000 for box in boxes],
        "top": [top / 1000 for top in tops],
        "about": [f"{clock(box.start_us)} to {clock(box.end_us)}: {about(box)}" for box in boxes],
    }


def _text(box: Box) -> str:
    """What fits into a box."""
    if not box.fired:
        return f"{count(box.groups)} open"
    last = box.fired[-1]
    return fit(last.values, 110, 11) if last.results == 1 else f"{count(last.results)} results"


def about(box: Box) -> str:
    """A box in words."""
    if not box.fired:
        return f"open, {count(box.groups)} {'group' if box.groups == 1 else 'groups'}"
    last = box.fired[-1]
    times = f"fired {len(box.fired)} times, last" if len(box.fired) > 1 else "fired"
    more = f" and {count(last.results - 1)} more" if last.results > 1 else ""
    return f"{times} at {clock(last.time_us)}: {last.values}{more}"
