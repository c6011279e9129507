"""The stepper: a job that stands still between steps, every record a marble, and buttons to go on, back and aside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bokeh.models import Slider

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.static import sheet
from workbench.dashboard.contract.actions import Answer, button, choice, field, group, offer
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.contract.released import follow
from workbench.dashboard.contract.steps import KNOBS
from workbench.telemetry.frames import Frame

_LIVE = (
    "<p class='none'>This job runs live. Run its pipeline with driver=\"stepping\" to go through it step by step.</p>"
)

_VERBS = (
    ("◀◀ 10", "back", (10,), "Ten steps back", "default"),
    ("◀ back", "back", (), "One step back", "default"),
    ("step ▶", "step", (), "The next step", "primary"),
    ("10 ▶▶", "step", (10,), "Ten steps", "default"),
    ("record", "next_record", (), "Step until a task receives a record", "default"),
    ("buffer", "next_buffer", (), "Step until a buffer is taken from a channel", "default"),
    ("barrier", "next_barrier", (), "Step until a checkpoint barrier moves", "default"),
    ("watermark", "next_watermark", (), "Step until event time advances in a task", "default"),
    ("aligned", "until_aligned", (), "Step until a task has received all its barriers", "default"),
    ("checkpoint", "until_checkpoint", (), "Step until a checkpoint completes", "default"),
    ("window", "until_window_fires", (), "Step until a window fires", "default"),
)
"""What each button says, the method of the job that it calls and with what, its hint and its kind."""


_RESTARTS = "parallelism"
"""The setting that a fork does not offer: a rescaled job does not stand where the other one stands."""
_SAME = ("", "with the same settings")

_KEYS = (("n", "step ▶"), ("b", "◀ back"))
"""Letters, and the label of the button that each presses."""


class StepperPart(Part):
    """The picture of a stepping job and its verbs; see `Part`."""

    hint = (
        "keys: N next, B back · the record nearest to its receiver is received next · ▲ barrier · "
        "W watermark · ‖ held by alignment"
    )

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._picture = easel.texts.piece("Records, barriers and state", "stepper")
        self._answer = Answer("steps", easel.texts, easel.background)
        self._shown: tuple[object, int, str] | None = None
        on = [button(label, partial(self._verb, name, *by), hint, kind) for label, name, by, hint, kind in _VERBS]
        self.keys = {key: one for one, verb in zip(on, _VERBS, strict=True) for key, label in _KEYS if label == verb[0]}
        self._furthest = 0
        self.slider = Slider(
            start=0, end=1, step=1, value=0, title="Steps taken", margin=(0, 12, 4, 12), sizing_mode="stretch_width",
            stylesheets=[sheet("slider", "whole")], html_attributes={"role": "group", "aria-label": "Steps taken"},
        )  # fmt: skip
        self.slider.on_change("value_throttled", lambda _attribute, _old, new: self._slid(int(new)))
        self._condition = field("Condition on the records that an operator emits", "total > 5", 130)
        self._operator = choice("Operator whose records are tested", 110)
        self._told = field("Words that a step should say", "is replayed", 90)
        self._setting = choice("Setting of the other job", 190)
        more = [
            self._condition,
            self._operator,
            button("until", self._until, "Step until the operator emits a record that meets the condition"),
            self._told,
            button("until told", self._until_told, "Step until a step says these words"),
            button("trigger checkpoint", lambda: self._go(lambda: self.easel.job.checkpoint()), "Trigger a checkpoint"),
            self._setting,
            button("fork here", self._fork, "Start another job from this step with other settings"),
        ]
        self.inputs = (self._condition, self._operator, self._told, self._setting, self.slider)
        rows = group(*on), group(*more, self._answer.div)
        rows[0].margin = rows[1].margin = (0, 0, 6, 0)
        self.models = (*rows, self.slider, self._picture.div)
        self.asides = [rows[1]]

    def update(self, frame: Frame) -> None:
        """Redraw the moment if the job has moved."""
        self._answer.update()
        if self.easel.runs_live():
            self.slider.visible = False
            self._picture.write(_LIVE)
            return
        self._offer(frame)
        shown = (self.easel.job.recorder, frame.sequence, frame.state)
        if shown != self._shown:
            self._shown = shown
            self._draw()

    def _offer(self, frame: Frame) -> None:
        """The operators that emit records, and the usual values of the settings that the job has."""
        read = {each.uid for one in frame.operators for each in one.inputs}
        offer(self._operator, [one.uid for one in frame.operators if one.uid in read], last=True)
        in_force = {**frame.settings, **frame.knobs}
        known = [knob for knob in KNOBS if knob.name != _RESTARTS and in_force.get(knob.name) is not None]
        values = {knob.title: [(text := f"{knob.name}={step}", text) for step in knob.choices] for knob in known}
        options = {"Fork": [_SAME], **values}
        if self._setting.options != options:
            self._setting.options = options

    def _draw(self) -> None:
        view = self.easel.job.stepper.scene()
        step = view.scene.step
        self._furthest = max(self._furthest, step)
        self.slider.update(end=max(1, self._furthest), disabled=self._furthest == 0)
        follow(self.slider, step)
        self._picture.write(f"<p class='wb-words'>{view.headline()}</p><div class='wb-picture'>{view.svg}</div>")

    def _verb(self, name: str, *arguments: object) -> None:
        self._go(lambda: getattr(self.easel.job.stepper, name)(*arguments))

    def _slid(self, step: int) -> None:
        """Go back to a step that was taken, or on to one from which the job went back."""
        away = step - self.easel.job.stepper.scene().scene.step
        if away:
            self._verb("step" if away > 0 else "back", abs(away))

    def _go(self, verb: Callable[[], object]) -> None:
        """Take steps, and say so when what was waited for did not happen."""
        reached: list[object] = []
        if not self._answer.ask(lambda: reached.append(verb()), "done"):
            self._draw()  # the slider, too, is where the job is
            return
        if reached[0] is not None and not reached[0]:
            self._answer.refuse("this did not happen: the job has ended or makes no progress")
        self._draw()

    def _until(self) -> None:
        self._verb("until", self._condition.value, self._operator.value)

    def _until_told(self) -> None:
        self._verb("until_told", self._told.value)

    def _fork(self) -> None:
        name, _, value = self._setting.value.partition("=")
        settings: Any = {name: value} if name else {}

        def fork() -> object:
            other = self.easel.job.stepper.fork(**settings)
            self._forked = other.name
            return other.stepper.scene()

        if self._answer.ask(fork, ""):
            made = self._forked
            self._answer.ask(lambda: None, f"{made} starts from here: wb.job({wording.fit(repr(made), 300, 11)})")
