"""Watermarks as a part of the dashboard: what holds event time back, every channel, the lag, and event time itself."""

from __future__ import annotations

from workbench.dashboard.charts.html import scrolled
from workbench.dashboard.charts.sources import ceiling_s
from workbench.dashboard.charts.time_chart import SHORT_SECONDS, TimeChart
from workbench.dashboard.charts.wording import fit
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.views.event_time import holders, late, watermarks
from workbench.dashboard.views.event_time.event_time import EventTimeChart
from workbench.dashboard.views.latency import LAGS
from workbench.telemetry.frames import Frame


class WatermarksPart(Part):
    """Sentences, table, late records where there is room for them, and two charts."""

    title = "Watermarks"
    hint = "UTC; behind the furthest one"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._words = easel.texts.piece(
            "Who holds event time back", css=_WORDS_CSS + ("" if easel.alone else _ROOM_CSS)
        )
        self._table = easel.texts.piece("Watermarks of every input channel", css=_CSS)
        self._lags = TimeChart(
            easel.paint, easel.texts, easel.window, LAGS, ticks=SHORT_SECONDS, label="Watermark lag over time",
            unit="{0,0} s", pixels=140 if easel.alone else 76, top=ceiling_s,
        )  # fmt: skip
        self._lags.show({})
        self._lines: dict[str, str] = {}
        self._event_time = EventTimeChart(easel.paint, easel.texts, easel.window, 150 if easel.alone else 76)
        rooms = 420 if easel.alone else 129
        table = scrolled(self._table.div, rooms)
        self._late = easel.texts.piece("The last late records", css=late.CSS) if easel.alone else None
        listed = [] if self._late is None else [scrolled(self._late.div, 260)]
        self.models = [self._words.div, table, *listed, *self._lags.models, *self._event_time.models]

    def remember(self, frame: Frame) -> None:
        lags = watermarks.vertex_lags(frame)
        free = [line for line in LAGS if line not in self._lines]
        fresh = dict(zip(free, (name for name in lags if name not in self._lines.values()), strict=False))
        if fresh:
            self._lines.update(fresh)
            self._lags.show({line: fit(name, 90, 11) for line, name in self._lines.items()})
        self._lags.append(frame.time_us, {line: lags.get(name) for line, name in self._lines.items()})
        self._event_time.append(frame)

    def update(self, frame: Frame) -> None:
        self._words.write(holders.html(frame))
        self._table.write(watermarks.html(frame))
        if self._late is not None:
            self._late.write(late.html(frame))


_WORDS_CSS = """
p { font-size: 12px; overflow-wrap: anywhere; }
p.warn { font-weight: 600; }
"""

_ROOM_CSS = ":host { max-height: 130px; overflow: auto; scrollbar-width: thin; }"
"""A chain of many tasks scrolls, where it would make the cards beside it as high as itself."""

_CSS = """
td.in { padding-left: 14px; color: var(--wb-muted); }
td.in::before { content: "└ "; color: var(--wb-line); }
tr.task > * { padding-top: 5px; font-weight: 600; }
tr.task td.w { color: var(--wb-warn); } tr.task td.muted { font-weight: 400; }
b.holds { color: var(--wb-warn); }
tr.quiet > td { color: var(--wb-muted); font-style: italic; }
table { font-size: 11.5px; } th, td { padding-right: 7px; } .n { padding-right: 9px; }
.bar { width: 34px; }
th, td.in { max-width: 116px; overflow: hidden; text-overflow: ellipsis; }
td:last-child { width: 32%; max-width: 50px; overflow: hidden; text-overflow: ellipsis; padding-right: 0; }
"""
