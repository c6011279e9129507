"""Bands behind the lines of a chart over time: each interruption, until the sources have caught up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure
from bokeh.transform import transform

from workbench.dashboard.charts.marks import LABEL_PX, TEXT_PX, growing, named
from workbench.dashboard.charts.sources import by_column, refresh
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.charts.wording import fit, milliseconds
from workbench.telemetry.effects.interruption_frames import InterruptionFrame

NAMES = ("start", "back", "end", "text", "x", "align", "rise")

Interruptions = Mapping[str, Sequence[InterruptionFrame]]
"""Of each job that is shown, by its name, which is empty where there is one."""


def columns(interruptions: Interruptions, now_us: int, middle_us: int) -> dict[str, list[Any]]:
    """For each interruption when it began, when the tasks ran again, and when the sources were where they had been, in
    milliseconds since 1970; and, of the latest of each job, what it was, on the side of the middle of the chart, and
    how far above the zero that stands, so that one text is not written over another.

    Example:
        >>> from workbench.telemetry.effects.interruption_log import InterruptionLog
        >>> log = InterruptionLog()
        >>> log.failed(0, "sum[1] failed", "no"); log.waits(0, 100_000)
        >>> log.deployed(120_000, 13, 2_340, {"read[0]": 5_000}); log.sample(1_800_000, {"read[0]": 5_000})
        >>> columns({"": log.interruptions}, 9_000_000, 4_500_000)  # doctest: +NORMALIZE_WHITESPACE
        {'start': [0.0], 'back': [120.0], 'end': [1800.0], 'text': ['sum[1] failed, 1.8 s'],
         'x': [1800.0], 'align': ['left'], 'rise': [-8]}
    """
    rows = []
    latest = [own[-1] for own in interruptions.values() if own]
    for name, one in ((name, one) for name, own in interruptions.items() for one in own):
        end_us = now_us if one.end_us is None else one.end_us
        ran = [phase.start_us for phase in one.phases if phase.name == "catching up"]
        place = next((place for place, last in enumerate(latest) if last is one), None)
        left = end_us < middle_us
        rows.append(
            {
                "start": one.start_us / 1000, "back": (ran[-1] if ran else end_us) / 1000, "end": end_us / 1000,
                "text": "" if place is None else _text(name, one), "x": (end_us if left else one.start_us) / 1000,
                "align": "left" if left else "right", "rise": -8 - LABEL_PX * (place or 0),
            }
        )  # fmt: skip
    return by_column(rows, NAMES)


def _text(name: str, one: InterruptionFrame) -> str:
    said = [one.what if one.kind == "failure" else one.kind]
    if one.end_us is not None:
        said.append(milliseconds((one.end_us - one.start_us) / 1000))
    whole = ", ".join(said)
    if name and named(whole, name) == whole:  # which job it was tells more than how long it took
        whole = said[0]
    return fit(named(whole, name), TEXT_PX, 11)


class Bands:
    """The bands of one chart: hatched while no task runs, plain while the sources read again.

    Args:
        paint: gives the colours.
        plot: its x axis is processing time.
        window: the time that is shown, in milliseconds since 1970.
        labelled: the y axis begins at zero, so that a text can stand there.
    """

    def __init__(self, paint: Paint, plot: figure, window: Range1d, *, labelled: bool) -> None:
        self._window = window
        self._source = ColumnDataSource({name: [] for name in NAMES})
        down = plot.vstrip("start", "back", source=self._source, line_color=None, fill_alpha=0.25, level="underlay")
        again = plot.vstrip("back", "end", source=self._source, line_color=None, fill_alpha=0.2, level="underlay")
        paint.set(down.glyph, fill_color="bad")
        paint.hatch(down.glyph, colour="card")
        paint.set(again.glyph, fill_color="warn")
        if labelled:
            text = paint.text(
                plot, self._source, "x", 0, "text", "bad", 11, text_align="align", text_baseline="bottom",
                y_offset=transform("rise", growing()), background_fill_alpha=0.8,
            )  # fmt: skip
            paint.set(text, background_fill_color="card")

    def show(self, interruptions: Interruptions, now_us: int) -> None:
        """Draw these; one that lasts reaches until now."""
        middle_us = round(500 * (self._window.start + self._window.end))
        refresh(self._source, columns(interruptions, now_us, middle_us))
