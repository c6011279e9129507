"""The bar above the dashboard of a cell that was run again while its job runs: start from the beginning, or stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.dashboard.charts.html import column, row, written
from workbench.dashboard.contract.actions import Answer, button
from workbench.dashboard.contract.job_port import OVER, Watched
from workbench.dashboard.contract.part import Easel
from workbench.telemetry.frames import Frame

RUNNING = "This cell started the job, which is still running. To start it from the beginning, replace it:"


class Again:
    """The bar with the two buttons; it disappears when one of them has done its work.

    Args:
        easel: of the view.
        begin: stops the job, runs the cell's stream instead and returns the new job; may take long.
    """

    def __init__(self, easel: Easel, begin: Callable[[], Watched]) -> None:
        self._easel, self._begin = easel, begin
        self._answer = Answer("replace", easel.texts, easel.background)
        self.replace = button("↻ Replace", self._replace, "Stop this job and run the cell from the beginning")
        self.stop = button("■ Stop", self._stop, "Take a final checkpoint and end the job")
        line = row([written(RUNNING), self.replace, self.stop], "again")
        self.model = column([line, self._answer.div], "card", css_classes=["wb-card", "wb-again"])

    def update(self, frame: Frame) -> None:
        """Remove the bar when the job has ended."""
        self._answer.update()
        if frame.state in OVER and not self._easel.background.is_running("replace"):
            self.model.visible = False

    def _replace(self) -> None:
        self._answer.ask_slowly("replace", self._begin, "replaced", self._follow)

    def _follow(self, job: Any) -> None:
        self._easel.follow(job)
        self.model.visible = False

    def _stop(self) -> None:
        self._answer.ask(lambda: self._easel.job.stop(wait=False), "stop requested")
