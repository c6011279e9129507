"""A slider over the usual values of a setting and a field for any other, which follow the value in force without
interfering with the user."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic
from typing import Any

from bokeh.models import Slider

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import Texts, column, row
from workbench.dashboard.charts.static import sheet, ticks
from workbench.dashboard.contract.actions import Answer, field
from workbench.errors import SettingError
from workbench.runtime.settings.architecture_knobs import ARCHITECTURE_KNOBS
from workbench.runtime.settings.setting import Setting
from workbench.runtime.settings.table import OF_TUNE

PATIENCE_S = 3.0
"""How long a slider waits for its user's request before it shows the current value again."""

KNOBS = (
    *sorted((each for each in OF_TUNE.values() if each.steps), key=lambda each: each.name == "parallelism"),
    *ARCHITECTURE_KNOBS.values(),
)
"""The settings with a slider: parallelism is last of those of every job, because changing it restarts its tasks; then
those of single architectures."""


def same_value(knob: Setting, first: str, second: str) -> bool:
    """Whether two texts mean the same value, such as ``1s`` and ``1000ms``."""
    try:
        return first == second or knob.scale(first) == knob.scale(second)
    except SettingError:
        return False


def nearest(knob: Setting, value: str) -> int:
    """The index of the step nearest to a value, in proportion; the first step for a value that cannot be parsed."""
    try:
        wanted = knob.scale(value)
    except SettingError:
        return 0
    return min(range(len(knob.choices)), key=lambda index: _distance(knob.scale(knob.choices[index]), wanted))


def _distance(step: float, wanted: float) -> float:
    if step == wanted:
        return 0.0
    return abs(math.log(step + 1) - math.log(wanted + 1)) if math.isfinite(step) and math.isfinite(wanted) else math.inf


class StepSlider:
    """One knob's slider; above it, the current value and the job's answer or the effect of the setting.

    Args:
        knob: the setting.
        ask: called with the text of the value that the user chose; True if the job accepted it.
        texts: where the current value and the setting's effect are written.
        answer: the place of the job's answer.
        tells: whether there is a place for the effect of the setting.
    """

    def __init__(
        self, knob: Setting, ask: Callable[[str], bool], texts: Texts, answer: Answer, *, tells: bool = False
    ) -> None:
        self._knob, self._ask = knob, ask
        self.answer = answer
        self._asked: str | None = None
        self._asked_at = 0.0
        self._following = False
        self._place: float = 0
        # The value in force need not be a step: it is shown above, steps in the tooltip.
        self.slider = Slider(
            start=0, end=len(knob.choices) - 1, step=1, value=0, title="", name=knob.name, show_value=False, margin=0,
            sizing_mode="stretch_width", css_classes=["wb-slider"],
            format=ticks("wordAt", words=list(knob.choices)), stylesheets=[sheet("slider")],
            html_attributes={"role": "group", "aria-label": knob.title},
        )  # fmt: skip
        self.slider.on_change("value", self._moved)
        self.exact = field(f"{knob.title}: any value", "other value", 92)
        self.exact.on_change("value", self._typed)
        self._note = texts.piece(f"{knob.title} in force", "knob_note", role="note")
        self._effect = texts.piece(f"What {knob.title} does", "knob_effect", role="note") if tells else None
        name = texts.piece(f"Name of {knob.title}", "knob_name", role="note")
        name.write(wording.html_text(knob.title))
        said = [name.div, self._note.div]
        if self._effect is None:
            words = [row([*said, answer.div], "knob_said")]
        else:
            told = [self._effect.div, answer.div]
            words = [row(said, "knob_said"), row(told, "knob_told")]
        moved = row([self.slider, self.exact], "knob_moved")
        self.model = column([column(words), moved], "knob", css_classes=["wb-knob"])

    @property
    def inputs(self) -> tuple[Slider, Any]:
        """The models that a user changes."""
        return self.slider, self.exact

    def update(self, in_force: str | None, over: bool, effect: str = "") -> None:
        """Show what is in force; None when the setting does not apply to the job; `effect`: what it does now."""
        self.slider.disabled = self.exact.disabled = over or in_force is None
        self.model.visible = in_force is not None
        self.answer.update()
        if in_force is None:
            self._note.write(self._knob.absent)
            return
        self._note.write(f"in force: <b>{wording.html_text(in_force)}</b>")
        if self._effect is not None:
            effect = wording.html_text(effect)
            self._effect.write(f"<span title='{effect}'>{effect}</span>" if effect and self.answer.is_empty else "")
        if self._asked is not None:
            arrived = same_value(self._knob, in_force, self._asked)
            if not arrived and monotonic() - self._asked_at < PATIENCE_S:
                return
            self._asked = None
        self._show(nearest(self._knob, in_force))

    def _show(self, index: int) -> None:
        if self.slider.value != self._place:  # a user has moved it, and the callback has not run yet
            return
        self._following = True
        try:
            self._place = self.slider.value = index
        finally:
            self._following = False

    def _typed(self, _attribute: str, _old: str, new: str) -> None:
        value = new.strip()
        if value:
            self._request(value)
            self.exact.value = ""

    def _request(self, value: str) -> None:
        if self._effect is not None:
            self._effect.write("")  # first: the answer would lie over it until the next update
        self._asked, self._asked_at = (value, monotonic()) if self._ask(value) else (None, 0.0)

    def _moved(self, _attribute: str, _old: float, new: float) -> None:
        self._place = new
        if self._following:
            return
        step = self._knob.choices[max(0, min(len(self._knob.choices) - 1, round(new)))]
        self._request(step)
