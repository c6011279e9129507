"""Watermarks as a part of the dashboard: what holds event time back, every channel, the lag, and event time itself."""

from __future__ import annotations

from workbench.dashboard.charts.html import column, scrolled
from workbench.dashboard.charts.sources import ceiling_s
from workbench.dashboard.charts.time_chart import TimeChart
from workbench.dashboard.charts.wording import fit
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.views.event_time import holders, late, lateness, watermarks
from workbench.dashboard.views.event_time.event_time import EventTimeChart, event_times
from workbench.dashboard.views.latency import LAGS
from workbench.telemetry.frames import Frame
from workbench.telemetry.reached import vertex_lags

NAMES = 6
"""Of those that hold event time back, where there are other cards beside."""


class WatermarksPart(Part):
    """Sentences, table, late records, and two charts."""

    hint = "UTC; event-time lag behind the furthest watermark"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._alone = easel.alone
        self._words = easel.texts.piece("What holds event time back", "holders")
        self._table = easel.texts.piece("Watermarks of every input channel", "watermarks")
        self._lags = TimeChart(
            easel.paint, easel.texts, easel.window, LAGS, ticks="shortSeconds", label="Event-time lag over time",
            unit="{0,0} s", pixels=140, top=ceiling_s,
        )  # fmt: skip
        self._lags.show({})
        self._lines: dict[str, str] = {}
        self._event_time = EventTimeChart(easel.paint, easel.texts, easel.window, pixels=140)
        rooms = 420 if easel.alone else 129
        table = scrolled(self._table.div, rooms, "detail")
        self._late = easel.texts.piece("The last late records", "late_records")
        self.models = [
            column([self._words.div, *self._lags.models, *self._event_time.models]),
            table, scrolled(self._late.div, 260, "detail"),
        ]  # fmt: skip

    def remember(self, frame: Frame) -> None:
        names = {vertex.id: vertex.name for vertex in frame.vertices}
        lags = {names.get(vertex, vertex): behind / 1e6 for vertex, behind in vertex_lags(frame).items()}
        free = [line for line in LAGS if line not in self._lines]
        fresh = dict(zip(free, (name for name in lags if name not in self._lines.values()), strict=False))
        if fresh:
            self._lines.update(fresh)
            self._lags.show({line: fit(name, 90, 11) for line, name in self._lines.items()})
        self._lags.append(frame.time_us, {line: lags.get(name) for line, name in self._lines.items()})
        self._event_time.append(frame.time_us, event_times(frame))

    def update(self, frame: Frame) -> None:
        bound = lateness.kept(lateness.totals(frame))
        self._words.write(holders.html(frame, None if self._alone else NAMES) + (f"<p>{bound}</p>" if bound else ""))
        self._table.write(watermarks.html(frame))
        self._lags.annotate(frame)
        self._event_time.annotate(frame)
        self._late.write(late.html(frame))
