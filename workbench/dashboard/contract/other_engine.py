"""Runs the pipeline of a job again on Spark, and shows there what Spark measures of it."""

from __future__ import annotations

import threading
from typing import Any

from workbench.dashboard.contract.actions import Answer, button, choice, group, offer
from workbench.dashboard.contract.part import Easel
from workbench.spark.masters import OFFERED

_REDRAWN_S = 1.0
_PICTURE = "the picture of Spark"


class OtherEngine:
    """The choice of a master with its button, and below them the picture of the job on Spark.

    The kernel's job has ended by then, and its frames with it. So the picture is drawn as a slow action of the view,
    again and again until the job on Spark has ended.

    Args:
        easel: of the view.

    Attributes:
        group: the controls.
        picture: of the job on Spark; empty: there is none.
    """

    def __init__(self, easel: Easel) -> None:
        self._easel = easel
        self._answer = Answer("run again on", easel.texts, easel.background)
        self.master = choice("Master of Spark", 180)
        offer(self.master, OFFERED)
        self.run_again = button(
            "Run again on Spark", self._run_again, "Stop the job, and run its pipeline from the beginning on Spark"
        )
        self.group = group(self.master, self.run_again, self._answer.div)
        self.picture = easel.texts.piece("The job on Spark")
        self._shown: Any = None

    def update(self) -> None:
        """Remove the answer after a while."""
        self._answer.update()

    def _run_again(self) -> None:
        job, master = self._easel.job, self.master.value
        self._answer.ask_slowly(
            "run again on Spark",
            lambda: job.run_again(engine="spark", spark=master),
            f"runs again on Spark, {master}: its picture is below, and job.run_again() returns to the kernel",
            self._show,
        )

    def _show(self, job: Any) -> None:
        watched = self._shown = job.dashboard()

        def draw() -> tuple[str, bool]:
            over = watched.over  # before the picture, so that the last one is complete
            watched.look()
            return watched.html(), over

        def drawn(found: tuple[str, bool] | None, problem: str | None) -> None:
            if found is None or watched is not self._shown:  # the session may be gone; what was seen stays
                return
            html, over = found
            self.picture.write(html)
            if not over:
                self._easel.background.run(_PICTURE, lambda: _after_a_rest(draw), drawn)

        self._easel.background.run(_PICTURE, draw, drawn)


def _after_a_rest(draw: Any) -> Any:
    threading.Event().wait(_REDRAWN_S)
    return draw()
