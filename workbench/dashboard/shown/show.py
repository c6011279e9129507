"""The dashboard of a job as an object that a notebook shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

from workbench.arguments import path_of
from workbench.dashboard.contract.job_port import Watched
from workbench.dashboard.contract.view_table import view_named
from workbench.dashboard.lecture.scene_table import scene_named
from workbench.dashboard.page.transport import Line
from workbench.dashboard.shown.bundle import Shown
from workbench.dashboard.shown.display import Display
from workbench.dashboard.shown.pump import Pump
from workbench.dashboard.shown.saved_page import write_page
from workbench.dashboard.shown.view import View
from workbench.telemetry.whole_file import replaced

PUMP = Pump()
"""Feeds every display of every job in this process."""


class Dashboard(Shown):
    """The live dashboard of a job: the last expression of a cell, or ``display(job.dashboard())``, shows it.

    Every time that it is shown, a fresh set of figures is made, so that all displays of one job are live. They
    are fed by one thread, which ends when no display is left or the job is over.

    Args:
        job: the job to show and to control.
        part: the one part that is shown, such as ``"graph"``; None: all.
        scene: the scene of lecture mode that each display begins with; None: none.
        pump: feeds the displays; by default the one that all dashboards of the kernel share.
        carrier: the connection to the page, ``"comm"`` or ``"widget"``; None: the one that suits the front end.

    Attributes:
        begin: starts a job that replaces this one, which every display then offers; None: not offered.

    Raises:
        SettingError: no such part, scene or carrier.

    Example:
        ``job.dashboard()`` at the end of a cell.
    """

    without_widgets = (
        "The live dashboard is not displayed here, or no longer: run the cell again. In a front end without widgets, "
        "job.status(), job.metrics() and job.graph() show the same as text, and methods such as job.tune() control "
        "the job."
    )

    def __init__(
        self, job: Watched, part: str | None = None, pump: Pump | None = None, carrier: str | None = None,
        scene: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(carrier)
        self.about = job.name
        self.begin: Callable[[], Watched] | None = None
        self._job = job
        self._part = None if part is None else view_named(part).name
        self._scene = "" if scene is None else scene_named(scene).name
        self._pump = PUMP if pump is None else pump
        self._displays: list[Display] = []

    def __repr__(self) -> str:
        frame = self._job.recorder.latest()
        part = f", {self._part}" if self._part else f", lecture from {self._scene}" if self._scene else ""
        return f"<Dashboard of job {self._job.name!r}{part}: {frame.state if frame else 'no frame yet'}>"

    def view(self, hears: bool = True, staged: bool = False) -> View:
        """A fresh set of figures, filled with the current data; `hears` and `staged`: as for `View`."""
        return View(
            self._job, self._job.recorder.frames(), self._part, hears=hears, begin=self.begin if hears else None,
            scene=self._scene, staged=staged,
        )  # fmt: skip

    def _connect(self, comms: Any = None) -> Line:
        """A connection to a page, with a fresh set of figures that is fed from now on."""
        view = self.view(staged=self._part is None and not self._scene)
        line = Line(view.document(), view.script, view.inputs, comms=comms)
        display = Display(self._job, view, line)
        self._displays.append(display)
        view.easel.follow = lambda job: self._follow(display, job)
        view.easel.background.begun = lambda: self._pump.add(display)
        line.heard = lambda: self._feed(display)
        self._pump.add(display)
        return line

    def save(self, path: str | Path) -> Path:
        """Write the current dashboard to one HTML file that needs no network; its controls do nothing.

        Returns:
            The path of the file.
        """
        with replaced(file := path_of(path, "path")) as draft:
            view = self.view(hears=False)
            view.pulse.beat(over=True)
            write_page(draft, view, f"{self._job.name}: dashboard")
        return file

    def _feed(self, display: Display) -> None:
        """Its page has responded: feeding resumes if it was suspended."""
        display.pace.heard(monotonic())
        if not display.is_finished:
            self._pump.add(display)

    def _follow(self, display: Display, job: Watched) -> None:
        """The display shows another job of the same name from now on: the one that continues from a savepoint."""
        display.turn_to(job)
        self._job = job
        self._pump.add(display)

    def close(self) -> None:
        """Stop feeding every display; they keep what they show."""
        for display in self._displays:
            display.close()
            self._pump.remove(display)
        self._displays.clear()
        for widget in self._held:
            widget.close()
        self._held.clear()
