"""One view of a job: every part of the dashboard, laid out on one screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bokeh.document import Document
from bokeh.models import Column, Div, InlineStyleSheet

from workbench.dashboard.buffers import BuffersView
from workbench.dashboard.checkpoints import CheckpointsView
from workbench.dashboard.controls import ControlsView
from workbench.dashboard.events import EventsView
from workbench.dashboard.graph import GraphView
from workbench.dashboard.header import HeaderView
from workbench.dashboard.html import CARD_CSS, Texts, card
from workbench.dashboard.job_port import Watched
from workbench.dashboard.latency import LagView, LatencyView, ThroughputView
from workbench.dashboard.page import Pulse, page_script
from workbench.dashboard.theme import ROOT_CSS, Paint
from workbench.dashboard.time_chart import TimeWindow, spaced
from workbench.dashboard.watermarks import WatermarksView
from workbench.telemetry.frames import Frame

_KEY = (
    "<b style='background:#5db1ff'></b>idle <b style='background:#ee6464'></b>busy "
    "<b style='background:repeating-linear-gradient(135deg,#888 0 3px,#fff 3px 5px)'></b>back-pressured"
)
_BUFFER_KEY = (
    "<b style='background:repeating-linear-gradient(135deg,#888 0 3px,#fff 3px 5px)'></b>at the sender "
    "<b style='background:var(--wb-accent)'></b>at the receiver, of those granted"
)
_CHECKPOINT_KEY = (
    "<b style='background:var(--wb-accent)'></b>duration <span style='color:var(--wb-violet)'>◆</span> size"
)


class View:
    """The models of one display of a job's dashboard, and how a frame changes them.

    Args:
        job: whose name is shown and whose handle the controls use.
        history: frames that the charts over time begin with, oldest first.
    """

    def __init__(self, job: Watched, history: Sequence[Frame] = ()) -> None:
        self.pulse = Pulse()
        paint, texts, window = Paint(), Texts(), TimeWindow()
        header, graph, buffers = HeaderView(job.name, texts), GraphView(paint), BuffersView(paint)
        lag, latency, rates = LagView(paint, window), LatencyView(paint, window), ThroughputView(paint, window)
        marks, checkpoints = WatermarksView(texts), CheckpointsView(paint, texts)
        controls, events = ControlsView(job, texts), EventsView(texts)
        self.inputs = (self.pulse.echo, *controls.inputs)
        self._over_time: tuple[Callable[[Frame], None], ...] = (lag.update, latency.update, rates.update)
        self._now: tuple[Callable[[Frame], None], ...] = (
            header.update, graph.update, buffers.update, marks.update, checkpoints.update, controls.update,
            events.update, window.update,
        )  # fmt: skip
        self.root = self._lay_out(
            header.div,
            card("Dataflow", _KEY, [_sideways(graph.figure)], "graph"),
            card("Watermarks", "UTC; behind the furthest one", [_scrolled(marks.div, 200), lag.figure], "marks"),
            card(
                "Latency and throughput",
                "marker latency: excludes window time",
                [latency.figure, rates.figure],
                "times",
            ),
            card("Buffers", _BUFFER_KEY, [_scrolled(buffers.figure, 258)], "buffers"),
            card("Checkpoints", _CHECKPOINT_KEY, checkpoints.models, "saves"),
            card("Controls", "act while the job runs", [controls.model], "controls"),
            card("Events", "newest first, UTC", [events.div], "events"),
        )
        self.script = page_script(self.root, self.pulse, texts, paint)
        self.root.tags = [self.script]
        for frame in spaced(history):
            self._draw(self._over_time, frame)
        if history:
            self._draw(self._now, history[-1])
        texts.settle()

    def update(self, frame: Frame) -> None:
        """Show a frame."""
        self._draw(self._over_time, frame)
        self._draw(self._now, frame)

    def document(self) -> Document:
        """A document of its own for the view."""
        document = Document()
        document.add_root(self.root)
        return document

    def _draw(self, parts: Sequence[Callable[[Frame], None]], frame: Frame) -> None:
        for part in parts:
            part(frame)

    def _lay_out(self, header: Div, *cards: Any) -> Column:
        head = Column(
            children=[header], sizing_mode="stretch_width", css_classes=["wb-card", "wb-header"], margin=0,
            stylesheets=[InlineStyleSheet(css=CARD_CSS)],
        )  # fmt: skip
        quiet = Div(
            text="No news from the kernel: it is busy, or this output is from an earlier session. Run the cell again "
            "to see the job live.",
            css_classes=["wb-silence"], sizing_mode="stretch_width", margin=0, html_attributes={"role": "status"},
        )  # fmt: skip
        grid = Column(
            children=[quiet, head, *cards], sizing_mode="stretch_width", margin=0,
            stylesheets=[InlineStyleSheet(css=_GRID_CSS)],
        )  # fmt: skip
        return Column(
            children=[grid], sizing_mode="stretch_width", css_classes=["wb-root"], margin=0,
            stylesheets=[InlineStyleSheet(css=ROOT_CSS)],
        )  # fmt: skip


def _sideways(model: Any) -> Column:
    css = ":host { overflow: auto hidden; scrollbar-width: thin; }"
    return Column(children=[model], sizing_mode="stretch_width", margin=0, stylesheets=[InlineStyleSheet(css=css)])


def _scrolled(model: Any, pixels: int) -> Column:
    css = f":host {{ max-height: {pixels}px; overflow: hidden auto; scrollbar-width: thin; }}"
    return Column(children=[model], sizing_mode="stretch_width", margin=0, stylesheets=[InlineStyleSheet(css=css)])


_GRID_CSS = """
:host { display: grid !important; grid-template-columns: repeat(12, minmax(0, 1fr)); gap: 8px; padding: 4px 2px; }
.wb-silence { display: var(--wb-silence, none) !important; grid-column: 1 / -1; color: var(--wb-warn);
  font-weight: 600; }
.wb-card { grid-column: span 12; height: auto !important; align-self: stretch !important; }
@container (min-width: 1160px) {
  .wb-graph, .wb-controls { grid-column: span 8; }
  .wb-marks, .wb-times, .wb-buffers, .wb-saves, .wb-events { grid-column: span 4; }
}
@container (min-width: 760px) and (max-width: 1159.98px) {
  .wb-marks, .wb-times, .wb-buffers, .wb-saves { grid-column: span 6; }
}
"""
