"""A job on Spark in the dashboard of the kernel's job that it replaces: its controls, and what Spark measures of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from workbench.dashboard.charts.html import column, row, written
from workbench.dashboard.contract.actions import Answer, button, group
from workbench.dashboard.contract.job_port import OVER
from workbench.dashboard.contract.part import Easel
from workbench.dashboard.contract.steps import StepSlider
from workbench.runtime.settings.setting import Setting
from workbench.spark.jobs.batch_limits import BATCH_SETTINGS, NOT_AT_ONCE

PAUSE, RESUME = "❚❚ Pause on Spark", "▶ Resume on Spark"
TOLD = (
    "<p>The job runs on Spark, in batches. Spark has no buffers and no barriers, so their controls are left out, and "
    f"so are those of injected failures. To change when a batch begins or how large it is, {NOT_AT_ONCE}.</p>"
)
_REDRAWN_S = 1.0
_PICTURE = "the picture of Spark"


class JobOnSpark:
    """Sliders for the batches of a job on Spark, its buttons, and its picture; empty until there is one.

    The kernel's job has ended by then, and its frames with it. So the picture is drawn as a slow action of the view,
    again and again until the job on Spark has ended.

    Args:
        easel: of the view.
        instead_of: models that have no meaning for a job on Spark, hidden while one is shown.

    Attributes:
        sliders: by the name of the setting.
        model: the sliders and the buttons.
        picture: what Spark measures.
        job: the job; None: there is none.
    """

    def __init__(self, easel: Easel, instead_of: Sequence[Any]) -> None:
        self._easel, self._instead_of = easel, instead_of
        self._answer = Answer("the job on Spark", easel.texts, easel.background)
        self.sliders = {name: self._slider(knob) for name, knob in BATCH_SETTINGS.items()}
        self.pause = button(
            PAUSE, self._pause_or_resume, "Stop the query; the batch in progress is repeated when it goes on"
        )
        self.stop = button("■ Stop on Spark", self._stop, "End the query and the job", kind="danger")
        self.back = button(
            "Run again in the kernel",
            self._return,
            "Stop the job, and run its pipeline from the beginning in the kernel",
        )
        sliders = row([slider.model for slider in self.sliders.values()], "knobs")
        buttons = group(self.pause, self.stop, self.back, self._answer.div, name="spark")
        self.model = column([written(TOLD, "table"), sliders, buttons], spacing=8, visible=False)
        self.picture = easel.texts.piece("The job on Spark")
        self.job: Any = None

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The models that a user changes."""
        return tuple(item for slider in self.sliders.values() for item in slider.inputs)

    def show(self, job: Any) -> None:
        """Show a job on Spark from now on."""
        self.job, watched = job, job.dashboard()
        self._swap(on_spark=True)

        def draw() -> tuple[str, Mapping[str, Any]]:
            told = job.status()  # before the picture, so that the last one is complete
            watched.look()
            return watched.html(), told

        def drawn(found: tuple[str, Mapping[str, Any]] | None, problem: str | None) -> None:
            if found is None or job is not self.job:  # the session may be gone; what was seen stays
                return
            html, told = found
            self.picture.write(html)
            self._show_status(told)
            if told["state"] not in OVER:
                self._easel.background.run(_PICTURE, lambda: _after_a_rest(draw), drawn)

        self._easel.background.run(_PICTURE, draw, drawn)

    def leave(self) -> None:
        """Show the kernel's job again."""
        if self.job is not None:
            self.job = None
            self.picture.write("")
            self._swap(on_spark=False)

    def _swap(self, *, on_spark: bool) -> None:
        self.model.visible = on_spark
        for one in self._instead_of:
            one.visible = not on_spark

    def _show_status(self, told: Mapping[str, Any]) -> None:
        over = told["state"] in OVER
        for name, slider in self.sliders.items():
            slider.update(str(told[name]), over, NOT_AT_ONCE)
        self.pause.label = RESUME if told["paused"] else PAUSE
        self.pause.disabled = self.stop.disabled = over
        self._answer.update()

    # asked -------------------------------------------------------------------------------------------------------

    def _slider(self, knob: Setting) -> StepSlider:
        answer = Answer(knob.title, self._easel.texts, self._easel.background)
        return StepSlider(knob, partial(self._tune, knob, answer), self._easel.texts, answer, tells=True)

    def _tune(self, knob: Setting, answer: Answer, value: str) -> bool:
        """Restart the query with another value, and say what it was and is, and from which batch on."""
        job = self.job

        def tune() -> tuple[Any, Any, int]:
            before = job.status()[knob.name]
            after = job.tune(**{knob.name: value})
            return before, after[knob.name], after["batches"]

        def told(found: tuple[Any, Any, int]) -> str:
            before, after, batch = found
            return f"{before} → {after}: the query has started again at batch {batch}"

        return answer.ask_slowly(f"tune {knob.name}", tune, told)

    def _pause_or_resume(self) -> None:
        paused = self.pause.label == RESUME
        action: Callable[[], object] = self.job.resume if paused else self.job.pause
        self._answer.ask_slowly("pause on Spark", action, "resumed" if paused else "paused")

    def _stop(self) -> None:
        self._answer.ask(partial(self.job.stop, wait=False), "stop requested")

    def _return(self) -> None:
        job = self.job
        self._answer.ask_slowly(
            "run again in the kernel", lambda: self._easel.follow(job.run_again()), "runs again in the kernel"
        )


def _after_a_rest(draw: Callable[[], Any]) -> Any:
    threading.Event().wait(_REDRAWN_S)
    return draw()
