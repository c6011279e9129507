"""The sliders of some settings, placed with the view that they affect."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from workbench.dashboard.charts.html import row
from workbench.dashboard.contract.actions import Answer
from workbench.dashboard.contract.job_port import OVER
from workbench.dashboard.contract.part import Easel
from workbench.dashboard.contract.steps import KNOBS, StepSlider
from workbench.runtime.settings.architecture_knobs import ARCHITECTURE_KNOBS
from workbench.runtime.settings.setting import Setting
from workbench.telemetry.effects.acting import TOLD
from workbench.telemetry.frames import Frame


class Knobs:
    """A row of sliders.

    Args:
        easel: of the view.
        names: of the settings; those without a slider, and those of architectures that the job does not have, are
            skipped.

    Attributes:
        sliders: by the name of the setting.
        models: the row; none without a slider.
    """

    def __init__(self, easel: Easel, names: Collection[str]) -> None:
        self._easel = easel
        frame = easel.job.recorder.latest()
        elsewhere = () if frame is None else ARCHITECTURE_KNOBS.keys() - frame.knobs.keys()
        wanted = (knob for knob in KNOBS if knob.name in names and knob.name not in elsewhere)
        self.sliders = {knob.name: self._slider(knob) for knob in wanted}
        sliders = [slider.model for slider in self.sliders.values()]
        self.models = [row(sliders, "knobs")] if sliders else []

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The models that a user changes."""
        return tuple(item for slider in self.sliders.values() for item in slider.inputs)

    def update(self, frame: Frame) -> None:
        """Show the values in force."""
        for name, slider in self.sliders.items():
            in_force = frame.knobs.get(name, frame.settings.get(name))
            slider.update(None if in_force is None else str(in_force), frame.state in OVER, frame.effects.get(name, ""))

    def _slider(self, knob: Setting) -> StepSlider:
        answer = Answer(knob.title, self._easel.texts, self._easel.background)
        tells = knob.name in TOLD
        return StepSlider(knob, lambda value: self._tune(knob, answer, value), self._easel.texts, answer, tells=tells)

    def _tune(self, knob: Setting, answer: Answer, value: str) -> bool:
        job = self._easel.job
        if knob.name == "parallelism":  # it waits for a checkpoint
            return answer.ask_slowly("rescale", lambda: job.tune(**{knob.name: value}), f"parallelism is {value}")
        return answer.ask(lambda: job.tune(**{knob.name: value}), "requested")
