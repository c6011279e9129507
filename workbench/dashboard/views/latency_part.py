"""Latency and throughput as a part of the dashboard: two charts, and what each tuning changed."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.checkpoint_ticks import CheckpointTicks, key
from workbench.dashboard.charts.html import none, table
from workbench.dashboard.charts.time_chart import TimeChart
from workbench.dashboard.contract.job_port import OVER
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.views.latency import PERCENTILES, RATES, percentiles, throughput
from workbench.telemetry.effects.change_frames import ChangeFrame, Measured
from workbench.telemetry.frames import Frame

LISTED, LISTED_ALONE = 4, 8


def changes_html(found: Sequence[ChangeFrame], most: int, over: bool = False) -> str:
    """The latest tunings, newest first, with latency and throughput before and after each; `over`: no more come."""
    if not found and over:
        return none("No setting was changed.")
    if not found:
        return none("Change a setting: latency before and after is listed here.")
    lines = []
    for change in reversed(found[-most:]):
        title = wording.html_text(f"{wording.clock(change.time_us)} UTC: {change.sentence}")
        lines.append(f"<tr><th title='{title}'>{wording.html_text(change.what)}</th>{_cells(change)}</tr>")
    numbers = ("p50 before → after", "p99", "records in/s")
    return table(("tuning", *numbers), lines, numbers)


def _cells(change: ChangeFrame) -> str:
    if change.state != "holds" or change.after is None:
        said = change.sentence.removeprefix(change.what).lstrip(": ")
        return f"<td colspan='3' class='muted'>{wording.html_text(said)}</td>"
    before, after = change.before or Measured(), change.after
    rate = wording.NOTHING if change.before is None else wording.short(before.records_per_second)
    return (
        f"<td class='n'>{wording.milliseconds(before.p50_ms)} → <b>{wording.milliseconds(after.p50_ms)}</b></td>"
        f"<td class='n'>{wording.milliseconds(before.sure_ms('p99'))} → "
        f"<b>{wording.milliseconds(after.sure_ms('p99'))}</b></td>"
        f"<td class='n'>{rate} → <b>{wording.short(after.records_per_second)}</b></td>"
    )


class LatencyPart(Part):
    """Percentiles of the latency of markers, records per second in and out, and before and after."""

    hint = "without time spent in windows"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        pixels = 200 if easel.alone else 120
        self._latency = TimeChart(
            easel.paint, easel.texts, easel.window, PERCENTILES, ticks="shortMilliseconds",
            label="Latency percentiles over time", unit="{0.0} ms", pixels=pixels,
        )  # fmt: skip
        self._ticks = CheckpointTicks(easel.paint, self._latency.figure)
        self._rates = TimeChart(
            easel.paint, easel.texts, easel.window, RATES, ticks="shortNumber", label="Throughput over time",
            unit="{0.0a} rec/s", pixels=pixels,
        )  # fmt: skip
        self._changes = easel.texts.piece("Before and after each tuning", "latency")
        self._most = LISTED_ALONE if easel.alone else LISTED
        # The chart is by the sliders: below the table, which grows, it would leave the screen.
        self.models = [*self._latency.models, self._changes.div, *self._rates.models]

    def remember(self, frame: Frame) -> None:
        self._latency.append(frame.time_us, percentiles(frame))
        self._rates.append(frame.time_us, throughput(frame))

    def update(self, frame: Frame) -> None:
        for chart in (self._latency, self._rates):
            chart.annotate(frame)
        self._ticks.show(frame.checkpoints)
        self._latency.explain(key(frame.checkpoints))
        self._changes.write(changes_html(frame.changes, self._most, frame.state in OVER))
