"""A slider over the usual values of a setting and a field for any other, which follow what is in force without fighting
the hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from bokeh.models import Column, CustomJSTickFormatter, InlineStyleSheet, Row, Slider

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import Texts
from workbench.dashboard.contract.actions import Answer, field
from workbench.durations import parse_duration, parse_speed
from workbench.errors import SettingError
from workbench.runtime.barriers.policies import POLICIES, fault_tolerance

PATIENCE_S = 3.0
"""How long a slider waits for what its user asked before it shows again what is in force."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting that can be tuned.

    Attributes:
        setting: its name in a frame's settings, and the argument of ``tune``.
        title: what people read.
        steps: the values that the slider offers, as text, in order.
        scale: a value as a number, for comparing.
        absent: said where the job has no use for it.
    """

    setting: str
    title: str
    steps: tuple[str, ...]
    scale: Callable[[str], float]
    absent: str = "does not apply"


def duration_scale(text: str) -> float:
    """Microseconds; ``disabled`` is longer than any duration."""
    return math.inf if text == "disabled" else float(parse_duration(text, "setting"))


BUFFER_TIMEOUT = Knob(
    "buffer_timeout",
    "Buffer timeout",
    ("0ms", "1ms", "2ms", "5ms", "10ms", "20ms", "50ms", "100ms", "200ms", "500ms", "1s", "disabled"),
    duration_scale,
)
CHECKPOINT_INTERVAL = Knob(
    "checkpoint_interval",
    "Checkpoint interval",
    ("100ms", "200ms", "500ms", "1s", "2s", "5s", "10s", "20s", "30s", "60s", "disabled"),
    duration_scale,
)
SPEED = Knob(
    "speed",
    "Replay speed",
    ("60x", "600x", "3600x", "21600x", "86400x", "604800x", "2592000x", "max"),
    parse_speed,
    "nothing is replayed",
)


def number_scale(text: str) -> float:
    """The number; ``max`` is larger than any."""
    try:
        return math.inf if text == "max" else float(text.replace("_", ""))
    except ValueError:
        raise SettingError(f"{text!r} is not a number") from None


BUFFER_SIZE = Knob(
    "buffer_size",
    "Buffer size (records)",
    ("1", "10", "100", "1000", "4096", "16384", "65536", "262144"),
    number_scale,
)
RATE = Knob(
    "rate",
    "Source rate (records/s)",
    ("1", "10", "100", "1000", "10000", "100000", "1000000", "max"),
    number_scale,
    "no source has a rate",
)


def mode_scale(text: str) -> float:
    """The place of a checkpoint mode among the modes."""
    return float(tuple(POLICIES).index(fault_tolerance(text).name))


ALIGNED_TIMEOUT = Knob(
    "aligned_checkpoint_timeout",
    "Aligned timeout",
    ("10ms", "50ms", "100ms", "500ms", "1s", "5s", "30s", "disabled"),
    duration_scale,
)
PARALLELISM = Knob("parallelism", "Parallelism", ("1", "2", "3", "4", "6", "8", "12", "16"), number_scale)


def knobs() -> tuple[Knob, ...]:
    """The settings that the dashboard's controls change."""
    checkpoint_mode = Knob("checkpoint_mode", "Checkpoint mode", tuple(POLICIES), mode_scale)
    return (
        BUFFER_TIMEOUT, BUFFER_SIZE, CHECKPOINT_INTERVAL, checkpoint_mode, ALIGNED_TIMEOUT, SPEED, RATE, PARALLELISM,
    )  # fmt: skip


def same_value(knob: Knob, first: str, second: str) -> bool:
    """Whether two texts mean the same value, such as ``1s`` and ``1000ms``."""
    try:
        return first == second or knob.scale(first) == knob.scale(second)
    except SettingError:
        return False


def nearest(knob: Knob, value: str) -> int:
    """The index of the step nearest to a value, in proportion; a value that cannot be read is the first step."""
    try:
        wanted = knob.scale(value)
    except SettingError:
        return 0
    return min(range(len(knob.steps)), key=lambda index: _distance(knob.scale(knob.steps[index]), wanted))


def _distance(step: float, wanted: float) -> float:
    if step == wanted:
        return 0.0
    return abs(math.log(step + 1) - math.log(wanted + 1)) if math.isfinite(step) and math.isfinite(wanted) else math.inf


class StepSlider:
    """One knob's slider, with what is in force written below it.

    Args:
        knob: the setting.
        ask: called with the text of the value that the user chose; True when the job accepted it.
        texts: where the note below the slider is written.
        answer: where the job's answer stands.
    """

    def __init__(self, knob: Knob, ask: Callable[[str], bool], texts: Texts, answer: Answer) -> None:
        self._knob, self._ask = knob, ask
        self.answer = answer
        self._asked: str | None = None
        self._asked_at = 0.0
        self._following = False
        self._place: float = 0
        self.slider = Slider(
            start=0, end=len(knob.steps) - 1, step=1, value=0, title="", name=knob.setting, show_value=False, margin=0,
            sizing_mode="stretch_width",  # what is in force need not be a step: it is said below, steps in the tooltip
            format=CustomJSTickFormatter(args={"steps": list(knob.steps)}, code="return steps[Math.round(tick)]"),
            stylesheets=[InlineStyleSheet(css=SLIDER_CSS)],
            html_attributes={"role": "group", "aria-label": knob.title},
        )  # fmt: skip
        self.slider.on_change("value", self._moved)
        self.exact = field(f"{knob.title}: any value", "other value", 92)
        self.exact.on_change("value", self._typed)
        self._note = texts.piece(f"{knob.title} in force", css=_NOTE_CSS, role="note")
        below = Row(
            children=[self._note.div, self.exact], sizing_mode="stretch_width", margin=0,
            stylesheets=[InlineStyleSheet(css=_BELOW_CSS)],
        )  # fmt: skip
        name = texts.piece(f"Name of {knob.title}", css=_NAME_CSS, role="note")
        name.write(wording.html_text(knob.title))
        self.model = Column(
            children=[name.div, self.slider, below, answer.div],
            sizing_mode="stretch_width",
            css_classes=["wb-knob"],
            margin=0,
        )

    @property
    def inputs(self) -> tuple[Slider, Any]:
        """What a person moves and fills in."""
        return self.slider, self.exact

    def update(self, in_force: str | None, over: bool) -> None:
        """Show what is in force; None when the setting does not apply to the job."""
        self.slider.disabled = self.exact.disabled = over or in_force is None
        self.answer.update()
        if in_force is None:
            self._note.write(self._knob.absent)
            return
        self._note.write(f"in force: <b>{wording.html_text(in_force)}</b>")
        if self._asked is not None:
            arrived = same_value(self._knob, in_force, self._asked)
            if not arrived and monotonic() - self._asked_at < PATIENCE_S:
                return
            self._asked = None
        self._show(nearest(self._knob, in_force))

    def _show(self, index: int) -> None:
        if self.slider.value != self._place:  # a hand has moved it, and what was to hear of that has yet to be called
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
        self._asked, self._asked_at = (value, monotonic()) if self._ask(value) else (None, 0.0)

    def _moved(self, _attribute: str, _old: float, new: float) -> None:
        self._place = new
        if self._following:
            return
        step = self._knob.steps[max(0, min(len(self._knob.steps) - 1, round(new)))]
        self._request(step)


SLIDER_CSS = """
.bk-slider-title { color: var(--wb-ink); font-size: 12px; margin-bottom: 6px; }
.bk-slider-value { font-weight: 650; }
.noUi-target { background: var(--wb-track); border-color: var(--wb-line); box-shadow: none; }
.noUi-connect { background: var(--wb-accent) !important; }
.noUi-handle { background: var(--wb-card); border: 2px solid var(--wb-accent); box-shadow: none; border-radius: 50%; }
.noUi-handle:focus-visible { outline: 3px solid var(--wb-accent); outline-offset: 2px; }
"""

_NAME_CSS = ":host { margin-bottom: 6px; }"
_NOTE_CSS = """
:host { font-size: 11px; color: var(--wb-muted); flex: 1 1 60px; width: auto; min-width: 0; }
b { color: var(--wb-ink); overflow-wrap: anywhere; }
"""
_BELOW_CSS = ":host { display: flex !important; align-items: center; gap: 6px; margin-top: 5px; }"
