"""Checkpoints as a part of the dashboard: what happens now above, Flink's tabs below."""

from __future__ import annotations

from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, LinearAxis, Range1d

from workbench.dashboard.charts.html import Choice, column, scrolled
from workbench.dashboard.charts.sources import ceiling, refresh, stretch
from workbench.dashboard.charts.static import ticks
from workbench.dashboard.charts.tabs import Tabs
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.charts.time_chart import quarters
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.views.checkpoints import (
    checkpoints_configuration,
    checkpoints_history,
    checkpoints_overview,
    checkpoints_summary,
    gantt,
    inflight,
)
from workbench.dashboard.views.checkpoints.checkpoints import CHART_NAMES, SHOWN, chart_columns, progress_html
from workbench.telemetry.frames import Frame

HISTORY_REST_US = 1_500_000
"""From one writing of the history of a running job to the next, unless somebody chooses a row."""


class CheckpointsPart(Part):
    """Progress and the cut through the channels; what each subtask did for the chosen checkpoint, or for the newest;
    and the tabs that Flink has, which the page turns by itself."""

    hint = "UTC"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        paint, texts, alone = easel.paint, easel.texts, easel.alone
        self._frame: Frame | None = None
        self._wanted: int | None = None
        self._behind, self._history_us = True, 0
        self._choice = Choice(self._choose)
        self._cut = texts.piece("Where the barrier is on every channel", "inflight")
        self._words = texts.piece("What every subtask did", "gantt")
        self._gantt = gantt.Gantt(paint)
        self._progress = texts.piece("Checkpoint in progress", "checkpoints")
        self._overview = texts.piece("The latest checkpoints", "checkpoints_overview", "chooser", choice=self._choice)
        self._history = texts.piece(
            "History of checkpoints", "checkpoint_details", "checkpoints_history", "chooser", choice=self._choice
        )
        self._details = texts.piece("Subtasks of a checkpoint", "checkpoint_details") if alone else None
        self._summary = texts.piece("Summary of checkpoints", "checkpoints_summary")
        self._options = texts.piece("Configuration of checkpoints", "checkpoints_configuration")
        self._source = ColumnDataSource({name: [] for name in CHART_NAMES})
        self._ids = Range1d(0.4, SHOWN + 0.6)
        self._durations, self._sizes = Range1d(0, 1), Range1d(0, 1)
        self.figure = paint.blank(
            "Duration and size of the latest checkpoints", 150 if alone else 74, x_range=self._ids,
            y_range=self._durations, extra_y_ranges={"size": self._sizes},
        )  # fmt: skip
        self._draw(paint)
        whole, listed, rest = (600, 300, 300) if alone else _ROOMS
        details = [] if self._details is None else [scrolled(self._details.div, 420)]
        self.tabs = Tabs(
            "Tabs of the checkpoints",
            {
                "Overview": [scrolled(self._overview.div, whole)],
                "History": [scrolled(self._history.div, listed), *details],
                "Summary": [self.figure, scrolled(self._summary.div, rest)],
                "Configuration": [scrolled(self._options.div, whole)],
            },
            0 if alone else whole,
            together=alone,
        )
        self.models = [
            column([self._progress.div, scrolled(self._cut.div, 230 if alone else 83)]),
            column([self._words.div, scrolled(self._gantt.figure, 360 if alone else 118)]),
            column(self.tabs.models),
        ]
        self.inputs = (self._choice.source,)
        self.asides = self.tabs.models

    def update(self, frame: Frame) -> None:
        before, self._frame = self._frame, frame
        self._progress.write(progress_html(frame))
        self._cut.write(inflight.html(frame))
        self._overview.write(checkpoints_overview.html(frame, choosable=self.easel.hears))
        self._options.write(checkpoints_configuration.html(frame))
        if before is None or frame.checkpoints is not before.checkpoints or frame is before:
            self._show_chosen(frame)
            self._behind = True
        if self._behind and not self._rests(frame):
            self._show_history(frame)

    def _rests(self, frame: Frame) -> bool:
        """Whether what is below the buttons may wait: most of the time nobody sees it, and it is most of what there is
        to write for the kernel, and to lay out for the page."""
        runs = frame.state == "RUNNING" and self.easel.runs_live()
        return runs and 0 <= frame.time_us - self._history_us < HISTORY_REST_US

    def _show_history(self, frame: Frame) -> None:
        self._behind, self._history_us = False, frame.time_us
        inside = self._details is None
        self._history.write(checkpoints_history.html(frame, self._wanted, inside=inside, choosable=self.easel.hears))
        if self._details is not None:
            self._details.write(checkpoints_history.details_html(gantt.chosen(frame, self._wanted)))
        self._summary.write(checkpoints_summary.html(frame))
        columns = chart_columns(frame)
        if refresh(self._source, columns) and columns["id"]:
            newest = columns["id"][-1]
            self._ids.update(start=max(0, newest - SHOWN) + 0.4, end=max(SHOWN, newest) + 0.6)
            self._fit(0, self._durations, ceiling(max(max(columns["done_ms"]), max(columns["failed_ms"]))))
            self._fit(1, self._sizes, ceiling(max(columns["size"])))

    def _choose(self, row: str) -> None:
        """Show this checkpoint; the same again: the newest one, as it comes."""
        wanted = int(row)
        self._wanted = None if wanted == self._wanted else wanted
        if self._frame is not None:
            self._show_chosen(self._frame)
            self._show_history(self._frame)

    def _show_chosen(self, frame: Frame) -> None:
        checkpoint = gantt.chosen(frame, self._wanted)
        self._words.write(gantt.words(checkpoint))
        self._gantt.show(checkpoint)

    def _fit(self, axis: int, axis_range: Range1d, end: float) -> None:
        if stretch(axis_range, end):
            self.figure.yaxis[axis].ticker.ticks = quarters(end, 2)

    def _draw(self, paint: Paint) -> None:
        plot, source = self.figure, self._source
        plot.add_layout(LinearAxis(y_range_name="size"), "right")
        done = plot.vbar("id", top="done_ms", width=0.7, source=source, line_color=None)
        paint.set(done.glyph, fill_color="accent")
        failed = plot.vbar("id", top="failed_ms", width=0.7, source=source, line_color=None)
        paint.set(failed.glyph, fill_color="bad")
        paint.hatch(failed.glyph, "cross")
        dots = plot.scatter("id", "size", source=source, marker="diamond", size=8, y_range_name="size")
        paint.set(dots.glyph, fill_color="violet", line_color="card")
        plot.xgrid.visible = False
        plot.yaxis[0].formatter = ticks("shortMilliseconds")
        plot.yaxis[1].formatter = ticks("shortBytes")
        for axis in plot.yaxis:
            axis.ticker = FixedTicker(ticks=quarters(1.0, 2))
        plot.xaxis.ticker.min_interval = 1
        plot.xaxis.ticker.num_minor_ticks = 0
        tips = [("checkpoint", "@id (@state)"), ("duration", "@took"), ("size", "@bytes")]
        plot.add_tools(HoverTool(renderers=[done, failed], tooltips=tips, mode="vline"))
        paint.plot(plot)


_ROOMS = (174, 174, 98)
"""Pixels of what scrolls in the whole dashboard: a tab, the history, what is below the chart."""
