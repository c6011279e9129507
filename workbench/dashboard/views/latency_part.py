"""Latency and throughput as a part of the dashboard: two charts, and what each tuning changed."""

from __future__ import annotations

from collections import deque

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import none, table
from workbench.dashboard.charts.time_chart import SPACING_MS, WINDOW_MS, TimeChart
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
        return none("No setting was changed in the last two minutes.")
    if not found:
        return none("Change a setting to compare latency and throughput before and after the change.")
    lines = []
    for change in reversed(found[-most:]):
        text = wording.html_text(change.text)
        cells = "".join(
            f"<td class='n'>{write(getattr(change.before, name))} → <b>{write(getattr(change.after, name))}</b></td>"
            for name, write in (("p50", wording.milliseconds), ("p99", wording.milliseconds), ("rate", wording.short))
        )
        lines.append(f"<tr><th title='{wording.clock(change.time_us)} UTC: {text}'>{text}</th>{cells}</tr>")
    numbers = ("p50 before → after", "p99", "records in/s")
    return table(("tuning", *numbers), lines, numbers)


class LatencyPart(Part):
    """Percentiles of the latency of markers, records per second in and out, and before and after."""

    hint = "latency of markers, without time spent in windows"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        pixels = 200 if easel.alone else 128
        self._latency = TimeChart(
            easel.paint, easel.texts, easel.window, PERCENTILES, ticks="shortMilliseconds",
            label="Latency percentiles over time", unit="{0.0} ms", pixels=pixels,
        )  # fmt: skip
        self._rates = TimeChart(
            easel.paint, easel.texts, easel.window, RATES, ticks="shortNumber", label="Throughput over time",
            unit="{0.0a} rec/s", pixels=pixels,
        )  # fmt: skip
        self._samples: deque[Sample] = deque(maxlen=WINDOW_MS // SPACING_MS)
        self._changes = easel.texts.piece("Before and after each tuning", "latency")
        self._most = LISTED_ALONE if easel.alone else LISTED
        self.models = [self._changes.div, *self._latency.models, *self._rates.models]  # what changed is by the sliders

    def remember(self, frame: Frame) -> None:
        self._latency.append(frame.time_us, percentiles(frame))
        self._rates.append(frame.time_us, throughput(frame))
        if not self._samples or frame.time_us - self._samples[-1].time_us >= SPACING_MS * 1000:
            self._samples.append(sample(frame))

    def update(self, frame: Frame) -> None:
        self._latency.mark(frame.events)
        self._rates.mark(frame.events)
        self._changes.write(changes_html(changes(self._samples, frame.events), self._most, frame.state in OVER))
