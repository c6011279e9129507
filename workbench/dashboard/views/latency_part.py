"""Latency and throughput as a part of the dashboard: two charts, and what each tuning changed."""

from __future__ import annotations

from collections import deque

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.time_chart import SHORT_MS, SHORT_NUMBER, SPACING_MS, WINDOW_MS, TimeChart
from workbench.dashboard.contract.job_port import OVER
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.views.latency import (
    PERCENTILES,
    RATES,
    Change,
    Sample,
    changes,
    percentiles,
    sample,
    throughput,
)
from workbench.telemetry.frames import Frame

LISTED, LISTED_ALONE = 4, 8


def changes_html(found: list[Change], most: int, over: bool = False) -> str:
    """The latest tunings, newest first, with latency and throughput before and after each; `over`: no more come."""
    if not found and over:
        return "<p class='none'>Nothing was tuned in these two minutes.</p>"
    if not found:
        return "<p class='none'>Tune something: latency and throughput before and after it will stand here.</p>"
    lines = []
    for change in reversed(found[-most:]):
        text = wording.html_text(change.text)
        cells = "".join(
            f"<td class='n'>{write(getattr(change.before, name))} → <b>{write(getattr(change.after, name))}</b></td>"
            for name, write in (("p50", wording.milliseconds), ("p99", wording.milliseconds), ("rate", wording.short))
        )
        lines.append(f"<tr><th title='{wording.clock(change.time_us)} UTC: {text}'>{text}</th>{cells}</tr>")
    head = (
        "<tr class='head'><th>tuning</th><th class='n'>p50 before → after</th><th class='n'>p99</th>"
        "<th class='n'>records in/s</th></tr>"
    )
    return f"<table>{head}{''.join(lines)}</table>"


class LatencyPart(Part):
    """Percentiles of the latency of markers, records per second in and out, and before and after."""

    title = "Latency and throughput"
    hint = "marker latency: excludes window time"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        pixels = 200 if easel.alone else 128
        self._latency = TimeChart(
            easel.paint, easel.texts, easel.window, PERCENTILES, ticks=SHORT_MS, label="Latency percentiles over time",
            unit="{0.0} ms", pixels=pixels,
        )  # fmt: skip
        self._rates = TimeChart(
            easel.paint, easel.texts, easel.window, RATES, ticks=SHORT_NUMBER, label="Throughput over time",
            unit="{0.0a} rec/s", pixels=pixels,
        )  # fmt: skip
        self._samples: deque[Sample] = deque(maxlen=WINDOW_MS // SPACING_MS)
        self._changes = easel.texts.piece("Before and after each tuning", css=_CSS)
        self._most = LISTED_ALONE if easel.alone else LISTED
        self.models = [*self._latency.models, *self._rates.models, self._changes.div]

    def remember(self, frame: Frame) -> None:
        self._latency.append(frame.time_us, percentiles(frame))
        self._rates.append(frame.time_us, throughput(frame))
        if not self._samples or frame.time_us - self._samples[-1].time_us >= SPACING_MS * 1000:
            self._samples.append(sample(frame))

    def update(self, frame: Frame) -> None:
        self._latency.mark(frame.events)
        self._rates.mark(frame.events)
        self._changes.write(changes_html(changes(self._samples, frame.events), self._most, frame.state in OVER))


_CSS = """
table { font-size: 11.5px; } th { width: 34%; max-width: 80px; overflow: hidden; text-overflow: ellipsis; }
th.n { width: auto; max-width: none; } th, td.n, th.n { padding-right: 5px; } .n:last-child { padding-right: 0; }
"""
