"""Marks on a chart over time: a line at every tuning of a job, with the name of each of the latest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, LinearInterpolator, Range1d
from bokeh.plotting import figure
from bokeh.transform import transform

from workbench.dashboard.charts.sources import refresh
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.charts.wording import fit
from workbench.telemetry.frames import EventFrame

LABELLED = 3
"""The number of latest tunings that are named."""
LABEL_PX = 14
TEXT_PX = 180
"""The longest text: half of the narrowest chart."""
_FAR_PX = 1000
TUNED = ("violet", "dashed")
"""The line of a mark where only one job is shown."""


def tunings(events: Sequence[EventFrame]) -> dict[str, list[Any]]:
    """Where someone tuned the job: ``x`` in milliseconds since 1970, what was changed, and how far below the upper edge
    that stands, so that one text is not written over another; only for the latest.
    """
    tuned = [event for event in events if event.kind == "tune"]
    ages = range(len(tuned) - 1, -1, -1)
    return {
        "x": [event.time_us / 1000 for event in tuned],
        "text": [
            fit(event.text, TEXT_PX, 11) if age < LABELLED else "" for event, age in zip(tuned, ages, strict=True)
        ],
        "drop": [1 + LABEL_PX * min(age, LABELLED) for age in ages],
    }


def growing() -> LinearInterpolator:
    """Passes distances between texts on as they are, until the page, whose letters may grow, makes them grow, too."""
    return LinearInterpolator(x=[-_FAR_PX, _FAR_PX], y=[-_FAR_PX, _FAR_PX], clip=False)


class Marks:
    """The marks of one chart.

    Args:
        paint: gives the colours.
        plot: its x axis is processing time.
        window: the time that is shown, in milliseconds since 1970.
        height: of the y axis.
        styles: by the name of each job that is shown, colour and dash of its marks.
    """

    def __init__(
        self, paint: Paint, plot: figure, window: Range1d, height: Range1d, styles: Mapping[str, tuple[str, str]]
    ) -> None:
        self._window, self._height = window, height
        self._sources: dict[str, ColumnDataSource] = {}
        for name, (colour, dash) in styles.items():
            source = ColumnDataSource({column: [] for column in ("x", "text", "drop", "y", "align", "shift")})
            self._sources[name] = source
            span = plot.vspan("x", source=source, line_dash=dash, line_width=1.25)
            paint.set(span.glyph, line_color=colour)
            text = paint.text(
                plot, source, "x", "y", "text", colour, 11, text_align="align", x_offset="shift",
                y_offset=transform("drop", growing()), text_baseline="top", background_fill_alpha=0.8,
            )  # fmt: skip
            paint.set(text, background_fill_color="card")

    def show(self, events: Mapping[str, Sequence[EventFrame]]) -> None:
        """Draw the tunings of these jobs, each with the name of its job where there is one and room for it."""
        of_all = sorted(
            ((event, name) for name, own in events.items() for event in own if event.kind == "tune"),
            key=lambda one: one[0].time_us,
        )
        marks = tunings([_named(event, name) for event, name in of_all])
        middle = (self._window.start + self._window.end) / 2
        right = [x < middle for x in marks["x"]]
        columns = {
            **marks,
            "y": [float(self._height.end)] * len(right),
            "align": ["left" if free else "right" for free in right],
            "shift": [5 if free else -5 for free in right],
        }
        for name, source in self._sources.items():
            own = [place for place, (_, whose) in enumerate(of_all) if whose == name]
            refresh(source, {column: [cells[place] for place in own] for column, cells in columns.items()})


def _named(event: EventFrame, name: str) -> EventFrame:
    return EventFrame(event.time_us, event.kind, named(event.text, name))


def named(text: str, name: str) -> str:
    """The text after the name of its job, if there is one and both have room; else its colour tells."""
    whole = f"{name}: {text}"
    return whole if name and fit(whole, TEXT_PX, 11) == whole else text
