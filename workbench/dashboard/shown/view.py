"""One display of a job: all parts of the dashboard on one screen, or one part alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bokeh.document import Document
from bokeh.models import Button, Column, Div, InlineStyleSheet

from workbench.dashboard.charts.html import card, card_children, column
from workbench.dashboard.charts.static import sheet
from workbench.dashboard.charts.theme import VARIABLES
from workbench.dashboard.charts.time_chart import spaced
from workbench.dashboard.contract.again import Again
from workbench.dashboard.contract.job_port import Watched
from workbench.dashboard.contract.knobs import Knobs
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.contract.steps import StepSlider
from workbench.dashboard.contract.view_table import ViewSpec, dashboard_views, view_named
from workbench.dashboard.lecture.lecture_mode import LectureMode, lecture_share
from workbench.dashboard.page.page import Pulse, page_script, page_supplement
from workbench.dashboard.shown.header import SILENT, HeaderView, news_html
from workbench.dashboard.shown.stage import Stage
from workbench.telemetry.frames import Frame
from workbench.telemetry.recorder import Recorder

COMING = "wb-coming"
"""The CSS class of a card whose part is still to be made."""
SOON = "appears once the kernel answers"


class View:
    """The models of one display of a job, and how a frame changes them.

    Args:
        job: the job whose name is shown and whose handle the controls use.
        history: initial frames of the charts over time, oldest first.
        part: the name of the view that is shown alone; None: all of them.
        views: the views that are shown together; None: all views of the job.
        hears: whether the kernel hears what somebody does on the page; if not, what would ask it does nothing and looks
            so.
        begin: starts a job that replaces this one, for a cell that was run again; None: not offered.
        scene: the scene of lecture mode that the page begins with; empty: none.
        staged: only the pinned parts are made now; the cards of the others are empty until `make` fills them, so a page
            need not wait for them.

    Attributes:
        inputs: the models that the page may change.
    """

    def __init__(
        self,
        job: Watched,
        history: Sequence[Frame] = (),
        part: str | None = None,
        views: Sequence[ViewSpec] | None = None,
        hears: bool = True,
        begin: Callable[[], Watched] | None = None,
        scene: str = "",
        staged: bool = False,
    ) -> None:
        self.pulse = Pulse()
        self.easel = easel = Easel(job, alone=part is not None, hears=hears)
        _note_opening(job)
        self._header = HeaderView(job.name, easel.texts, slim=part is not None)
        self._asks = views is None  # a recording answers nothing
        if views is None:
            views = dashboard_views(job.live, job.recorder.latest()) if part is None else [view_named(part)]
        self.parts: dict[str, Part] = {}
        self._knobs: dict[str, Knobs] = {}
        self._missing = {view.name: view for view in views if staged and not view.pinned}
        for view in views:
            if view.name not in self._missing:
                self._make(view)
        self._shown: dict[str, Frame] = {}
        self._frame: Frame | None = None
        self._seen: frozenset[str] | None = None
        self.pulse.seen.on_change("data", lambda _attribute, _old, new: self._look_at(new["part"]))
        self._lecture = LectureMode(job.name, [view.name for view in views], scene)
        self.inputs: list[Any] = [self.pulse.echo, self.pulse.seen, self._lecture.chosen, *self._inputs(self.parts)]
        self._again = None if begin is None else Again(easel, begin)
        self._cards = cards = {view.name: self._card(view) for view in views}
        on_stage = [] if easel.alone else [view for view in views if not view.pinned]
        self._stage = Stage(job.name, on_stage, cards) if on_stage else None
        self.root = self._lay_out(self._header.div, cards)
        stage = None if self._stage is None else self._stage.script
        lecture = {**self._lecture.arguments(hears), **lecture_share(self.parts, hears)}
        self.script = page_script(self.root, self.pulse, easel.texts, easel.paint, cards, stage, lecture)
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

    @property
    def missing(self) -> list[str]:
        """The parts that are still to be made, in the order of the dashboard."""
        return list(self._missing)

    @property
    def wanted(self) -> list[str]:
        """Those of the missing parts whose cards are on the screen, or in the scene of lecture mode."""
        sought = self._lecture.needs | (self._seen or frozenset())
        return [name for name in self._missing if name in sought]

    def make(self, names: Collection[str]) -> None:
        """Make missing parts with the current data, and put them into their cards.

        Called with the view's lock held. All of them reach the page with one message, since each change of its cards
        makes it lay out all of them.
        """
        views = [self._missing.pop(name) for name in names]
        easel, parts = self.easel, self.parts
        _note_opening(easel.job)
        begun = len(easel.paint.painted)
        easel.texts.begin_source()
        for view in views:
            self._make(view)
        for frame in spaced(easel.job.recorder.frames()):
            for name in names:
                parts[name].remember(frame)
        if self._frame is not None:
            self._show(self._frame, names)
        easel.texts.settle()
        inputs = self._inputs(names)
        self.inputs.extend(inputs)
        lecture = lecture_share({name: parts[name] for name in names}, acts=True)
        painted = easel.paint.painted[begun:]
        with _searched_once(self.root.document):
            filled = {view.name: self._fill(view) for view in views}
            self.root.tags = [*self.root.tags, page_supplement(easel.texts, painted, filled, inputs, lecture)]

    @property
    def knobs(self) -> dict[str, StepSlider]:
        """The sliders of all cards, by the names of their settings."""
        return {name: slider for knobs in self._knobs.values() for name, slider in knobs.sliders.items()}

    def update(self, frame: Frame) -> None:
        """Show a frame on the parts that are visible and have not just shown another one."""
        for one in self.parts.values():
            one.remember(frame)
        self._show(frame, [name for name in self.parts if self._is_due(name, frame)])

    def document(self) -> Document:
        """A separate document for the view."""
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
        """From now on these parts are on the screen; those that were not catch up."""
        self._seen = frozenset(names)
        if self._frame is not None:
            behind = [name for name in self._seen & self.parts.keys() if self._shown.get(name) is not self._frame]
            self._show(self._frame, behind)

    def _show(self, frame: Frame, names: Iterable[str] | None = None) -> None:
        """Draw a frame on these parts; None: on all."""
        self._frame = frame
        self._header.update(frame)
        if self._stage is not None:
            self._stage.update(frame)
        self.easel.background.settle()
        self.easel.window.update(frame)  # first: what charts write depends on where they end
        if self._again is not None:
            self._again.update(frame)
        for name in self.parts if names is None else names:
            self.parts[name].update(frame)
            self._shown[name] = frame
        for knobs in self._knobs.values():
            knobs.update(frame)
        self._lecture.update(frame, news_html(frame) if self.easel.runs_live() else "")

    def _make(self, view: ViewSpec) -> None:
        self.parts[view.name] = view.load()(self.easel)
        if self._asks and view.name != "controls":
            self._knobs[view.name] = Knobs(self.easel, view.knobs)

    def _inputs(self, names: Iterable[str]) -> list[Any]:
        """The models in these cards that the page may change."""
        holders = [one for name in names for one in (self.parts[name], self._knobs.get(name)) if one is not None]
        return [item for one in holders for item in one.inputs]

    def _card(self, view: ViewSpec) -> Column:
        if view.name in self._missing:
            return card(view.title, SOON, (), f"wb-{view.name}", COMING)
        return card(view.title, self.parts[view.name].hint, self._content(view), f"wb-{view.name}")

    def _content(self, view: ViewSpec) -> list[Any]:
        """What a card holds below its title."""
        knobs = self._knobs[view.name].models if view.name in self._knobs else []
        beside, above = (knobs, []) if view.pinned else ([], knobs)
        return [*above, column([*beside, *self.parts[view.name].models], "body")]

    def _fill(self, view: ViewSpec) -> Column:
        """The card of a part that was made after it."""
        filled = self._cards[view.name]
        filled.css_classes = [name for name in filled.css_classes if name != COMING]
        filled.children = card_children(view.title, self.parts[view.name].hint, self._content(view))
        return filled

    def _lay_out(self, header: Div, cards: Mapping[str, Any]) -> Column:
        head = column([header], "card", css_classes=["wb-card", "wb-header"])
        quiet = Div(  # in lecture mode, which shows no head
            text=SILENT, css_classes=["wb-silence"], sizing_mode="stretch_width", margin=0,
            html_attributes={"role": "status"},
        )  # fmt: skip
        again = [] if self._again is None else [self._again.model]
        names, stage = ([], []) if self._stage is None else (self._stage.names, self._stage.models)
        fixed = [made for name, made in cards.items() if name not in names]
        grid = column([quiet, *again, head, *fixed, *stage], "layout", "lecture_grid")
        root = column([grid], css_classes=["wb-root"])
        root.stylesheets = [InlineStyleSheet(css=VARIABLES), sheet("root", "lecture")]
        return root


def _note_opening(job: Watched) -> None:
    """Making a page takes time from a job that runs: its recorder is told, so that nothing else is blamed for it."""
    if isinstance(job.recorder, Recorder):
        job.recorder.openings += 1


@contextmanager
def _searched_once(document: Document | None) -> Iterator[None]:
    """Let a document search for its models after all changes, and not after each of them."""
    if document is None:
        yield
        return
    document.models._push_freeze()  # Bokeh's own `freeze` would not end when a change fails
    try:
        yield
    finally:
        document.models._pop_freeze()
