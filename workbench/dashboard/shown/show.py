"""The dashboard of a job as an object that a notebook shows."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from bokeh.embed import file_html
from bokeh.resources import INLINE

from workbench.arguments import path_of
from workbench.dashboard.charts.theme import PAGE_TEMPLATE
from workbench.dashboard.contract.job_port import Watched
from workbench.dashboard.page.carrier import WIDGET, WIDGETS, choose
from workbench.dashboard.page.transport import Line
from workbench.dashboard.shown.display import Display
from workbench.dashboard.shown.pump import Pump
from workbench.dashboard.shown.view import View, check_part
from workbench.telemetry.whole_file import replaced

PANELS_SCRIPT = re.compile(r'<script src="static/extensions/panel/[^"]*"></script>')
"""Panel, once imported, adds a file of its own to every page that Bokeh writes; this page has no Panel models."""

WITHOUT_WIDGETS = (
    "It is not shown live here, or not any more: run the cell again. Where no widgets are shown, job.status(), "
    "job.metrics() and job.graph() tell the same in text, and job.tune() and its like act on the job."
)
"""Below the text that takes the place of a widget: in VS Code also once the window was loaded again."""

PUMP = Pump()
"""Feeds every display of every job in this process."""


class Dashboard:
    """The live dashboard of a job: the last expression of a cell, or ``display(job.dashboard())``, shows it.

    Every time that it is shown, a fresh set of figures is made, so that several displays of one job all live. They
    are fed by one thread, which ends when no display is left or the job is over.

    Args:
        job: the job to show and to control.
        part: the one part that is shown, such as ``"graph"``; None: all.
        pump: feeds the displays; by default the one that all dashboards of the kernel share.
        carrier: what carries it to the page, ``"comm"`` or ``"widget"``; None: what fits the front end.

    Raises:
        SettingError: no such part, or no such carrier.

    Example:
        ``job.dashboard()`` at the end of a cell.
    """

    def __init__(
        self, job: Watched, part: str | None = None, pump: Pump | None = None, carrier: str | None = None
    ) -> None:
        self._carrier = choose(carrier)
        self._job = job
        self._part = None if part is None else check_part(part)
        self._pump = PUMP if pump is None else pump
        self._displays: list[Display] = []
        self._widgets: list[Any] = []

    def __repr__(self) -> str:
        frame = self._job.recorder.latest()
        part = f", {self._part}" if self._part else ""
        return f"<Dashboard of job {self._job.name!r}{part}: {frame.state if frame else 'no frame yet'}>"

    def view(self, hears: bool = True) -> View:
        """A fresh set of figures, filled with what is known now; `hears`: as for `View`."""
        return View(self._job, self._job.recorder.frames(), self._part, hears=hears)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        if self._carrier == WIDGET:
            widget = import_module(WIDGETS).WidgetCarrier(self._connect)
            self._widgets.append(widget)
            return widget.render(f"{self!r}\n{WITHOUT_WIDGETS}")
        data, metadata = self._connect().render()
        return {**data, "text/plain": repr(self)}, metadata

    def _connect(self, comms: Any = None) -> Line:
        """A line to a page, with a fresh set of figures that is fed from now on."""
        view = self.view()
        line = Line(view.document(), view.script, view.inputs, comms=comms)
        display = Display(self._job, view, line)
        self._displays.append(display)
        view.easel.follow = lambda job: self._follow(display, job)
        view.easel.errands.begun = lambda: self._pump.add(display)
        self._pump.add(display)
        return line

    def save(self, path: str | Path) -> Path:
        """Write what the dashboard shows now into one HTML file that needs no network; its controls do nothing.

        Returns:
            The path of the file.
        """
        view = self.view(hears=False)
        view.pulse.beat(over=True)
        title = f"{self._job.name}: dashboard"
        document = view.document()
        document.js_on_event("document_ready", view.script)
        html = file_html(document, INLINE, title=title, template=PAGE_TEMPLATE, suppress_callback_warning=True)
        target = path_of(path, "path")
        with replaced(target) as draft:
            draft.write_text(PANELS_SCRIPT.sub("", html), encoding="utf-8")
        return target

    def _follow(self, display: Display, job: Watched) -> None:
        """The display shows another job of the same name from now on: the one that goes on from a savepoint."""
        display.turn_to(job)
        self._job = job
        self._pump.add(display)

    def close(self) -> None:
        """Stop feeding every display; they keep what they show."""
        for display in self._displays:
            self._pump.remove(display)
            display.line.close()
        self._displays.clear()
        for widget in self._widgets:
            widget.close()
        self._widgets.clear()


def dashboard(job: Watched, part: str | None = None, carrier: str | None = None) -> Dashboard:
    """The dashboard of a job, or one part of it."""
    return Dashboard(job, part, carrier=carrier)
