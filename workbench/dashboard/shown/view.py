"""One display of a job: all parts of the dashboard on one screen, or one part alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bokeh.document import Document
from bokeh.models import Button, Column, Div, InlineStyleSheet

from workbench.dashboard.charts.html import CARD_CSS, card
from workbench.dashboard.charts.theme import ROOT_CSS
from workbench.dashboard.charts.time_chart import spaced
from workbench.dashboard.contract.header import HeaderView
from workbench.dashboard.contract.job_port import Watched
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.page.page import Pulse, page_script
from workbench.dashboard.views.buffers import BuffersPart
from workbench.dashboard.views.checkpoints.checkpoints_part import CheckpointsPart
from workbench.dashboard.views.controls import ControlsPart
from workbench.dashboard.views.event_time.watermarks_part import WatermarksPart
from workbench.dashboard.views.events import EventsPart
from workbench.dashboard.views.graph_part import GraphPart
from workbench.dashboard.views.latency_part import LatencyPart
from workbench.dashboard.views.sink_part import SinkPart
from workbench.dashboard.views.state_part import StatePart
from workbench.dashboard.views.stepper_part import StepperPart
from workbench.dashboard.views.subtasks_part import SubtasksPart
from workbench.errors import SettingError, unknown
from workbench.telemetry.frames import Frame

STEPPER = "stepper"
PARTS: dict[str, type[Part]] = {
    "graph": GraphPart,
    "subtasks": SubtasksPart,
    "watermarks": WatermarksPart,
    "latency": LatencyPart,
    "buffers": BuffersPart,
    "checkpoints": CheckpointsPart,
    "state": StatePart,
    "sink": SinkPart,
    "events": EventsPart,
    "controls": ControlsPart,
    STEPPER: StepperPart,
}
"""The parts by the names that ``job.view`` takes, in the order of the whole dashboard; there the stepper comes first,
and only for a job on the stepping driver."""

WHOLE = tuple(name for name in PARTS if name not in (STEPPER, "subtasks"))
"""Those of the whole dashboard of a job that runs by itself: without the wide tables, of which the graph shows most."""


def check_part(name: str) -> str:
    """The name, if there is such a part.

    Raises:
        SettingError: there is none; the sentence lists them.
    """
    if name not in PARTS:
        raise SettingError(unknown("view", name, PARTS))
    return name


class View:
    """The models of one display of a job, and how a frame changes them.

    Args:
        job: whose name is shown and whose handle the controls use.
        history: frames that the charts over time begin with, oldest first.
        part: one of `PARTS` that is shown alone; None: all of them.
        follow: called with the job that goes on in this one's place after a restore.
        parts: those of the whole dashboard that are shown; None: all that the job has.
        hears: whether the kernel hears what somebody does on the page; if not, what would ask it does nothing and looks
            so.
    """

    def __init__(
        self,
        job: Watched,
        history: Sequence[Frame] = (),
        part: str | None = None,
        follow: Callable[[Watched], None] = lambda job: None,
        parts: Sequence[str] | None = None,
        hears: bool = True,
    ) -> None:
        self.pulse = Pulse()
        self.easel = easel = Easel(job, alone=part is not None, follow=follow, hears=hears)
        self._header = HeaderView(job.name, easel.texts, slim=part is not None)
        whole = list(parts) if parts is not None else [*(() if job.live else (STEPPER,)), *WHOLE]
        names = whole if part is None else [check_part(part)]
        self.parts = {name: PARTS[name](easel) for name in names}
        self._shown: dict[str, Frame] = {}
        self._frame: Frame | None = None
        self._seen: frozenset[str] | None = None
        self.pulse.seen.on_change("data", lambda _attribute, _old, new: self._look_at(new["part"]))
        self.inputs = (self.pulse.echo, self.pulse.seen, *(item for one in self.parts.values() for item in one.inputs))
        cards = {name: card(one.title, one.hint, list(one.models), name) for name, one in self.parts.items()}
        self.root = self._lay_out(self._header.div, cards.values())
        self.script = page_script(self.root, self.pulse, easel.texts, easel.paint, cards)
        self.root.tags = [self.script]
        for frame in spaced(history):
            for one in self.parts.values():
                one.remember(frame)
        if history:
            self._show(history[-1])
        easel.texts.settle()
        if not hears:
            for one in (*self.inputs, *self.root.select({"type": Button})):
                if "disabled" in one.properties():
                    one.disabled = True

    def update(self, frame: Frame) -> None:
        """Show a frame, on the parts that are seen and have not shown another one just now."""
        for one in self.parts.values():
            one.remember(frame)
        self._show(frame, [name for name in self.parts if self._is_due(name, frame)])

    def document(self) -> Document:
        """A document of its own for the view."""
        document = Document()
        document.add_root(self.root)
        return document

    def _is_due(self, name: str, frame: Frame) -> bool:
        if self._seen is not None and name not in self._seen and not self.parts[name].follows_unseen:
            return False
        last = self._shown.get(name)
        if last is None or not self.easel.runs_live():
            return True
        if (last.state, last.paused, last.settings) != (frame.state, frame.paused, frame.settings):
            return True
        return not 0 <= frame.time_us - last.time_us < self.parts[name].rest_us

    def _look_at(self, names: Iterable[str]) -> None:
        """From now on these parts are on the screen; those that were not show what they have missed."""
        self._seen = frozenset(names)
        if self._frame is not None:
            behind = [name for name in self._seen & self.parts.keys() if self._shown.get(name) is not self._frame]
            self._show(self._frame, behind)

    def _show(self, frame: Frame, names: Iterable[str] | None = None) -> None:
        """Draw a frame on these parts; None: on all."""
        self._frame = frame
        self._header.update(frame)
        self.easel.errands.settle()
        for name in self.parts if names is None else names:
            self.parts[name].update(frame)
            self._shown[name] = frame
        self.easel.window.update(frame)

    def _lay_out(self, header: Div, cards: Iterable[Any]) -> Column:
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
            stylesheets=[InlineStyleSheet(css=_ALONE_CSS if self.easel.alone else _GRID_CSS)],
        )  # fmt: skip
        return Column(
            children=[grid], sizing_mode="stretch_width", css_classes=["wb-root"], margin=0,
            stylesheets=[InlineStyleSheet(css=ROOT_CSS)],
        )  # fmt: skip


_ALONE_CSS = """
:host { display: flex !important; flex-direction: column; gap: 8px; padding: 4px 2px; }
.wb-silence { display: var(--wb-silence, none) !important; color: var(--wb-warn); font-weight: 600; }
.wb-card { height: auto !important; }
"""

_GRID_CSS = """
:host { display: grid !important; grid-template-columns: repeat(12, minmax(0, 1fr)); gap: 8px; padding: 4px 2px; }
.wb-silence { display: var(--wb-silence, none) !important; grid-column: 1 / -1; color: var(--wb-warn);
  font-weight: 600; }
.wb-card { grid-column: span 12; height: auto !important; align-self: stretch !important; }
@container (min-width: 1160px) {
  .wb-graph { grid-column: span 8; }
  .wb-watermarks, .wb-latency, .wb-buffers, .wb-checkpoints, .wb-state, .wb-sink, .wb-events { grid-column: span 4; }
}
@container (min-width: 760px) and (max-width: 1159.98px) {
  .wb-watermarks, .wb-latency, .wb-buffers, .wb-checkpoints, .wb-state, .wb-sink { grid-column: span 6; }
}
"""
