"""The controls: what they ask goes to the job's handle at once; what the job refuses is shown as a sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

from bokeh.models import Button, Column, InlineStyleSheet, Row, Select

from workbench.dashboard import wording
from workbench.dashboard.html import Texts
from workbench.dashboard.job_port import OVER, Watched
from workbench.dashboard.steps import BUFFER_TIMEOUT, CHECKPOINT_INTERVAL, SPEED, Knob, StepSlider
from workbench.errors import WorkbenchError
from workbench.telemetry.frames import Frame

MESSAGE_S = 15.0
PAUSE, RESUME = "❚❚ Pause", "▶ Resume"
_KNOBS = (BUFFER_TIMEOUT, CHECKPOINT_INTERVAL, SPEED)


class ControlsView:
    """Sliders and buttons for a job."""

    def __init__(self, job: Watched, texts: Texts) -> None:
        self._job = job
        self._paused = False
        self._said_at = 0.0
        self.knobs = {knob.setting: StepSlider(knob, partial(self._tune, knob), texts) for knob in _KNOBS}
        self.pause = self._button(PAUSE, self._pause_or_resume, "Stop reading; what is in flight is still processed")
        self.checkpoint = self._button("Checkpoint now", job.checkpoint, "Trigger a checkpoint at once")
        self.fail = self._button("Fail task", self._crash, "Crash the task; the job recovers from its last checkpoint")
        self.stop = self._button("■ Stop job", job.stop, "Stop the job for good", kind="danger")
        self.task = Select(
            options=[], value="", width=150, margin=0, stylesheets=[InlineStyleSheet(css=_SELECT_CSS)],
            html_attributes={"aria-label": "Task to fail"},
        )  # fmt: skip
        self.message = texts.piece("Answer of the job", css=_MESSAGE_CSS, role="alert")
        sliders = Row(
            children=[slider.model for slider in self.knobs.values()], sizing_mode="stretch_width", margin=0,
            stylesheets=[InlineStyleSheet(css=_ROW_CSS)],
        )  # fmt: skip
        buttons = Row(
            children=[self.pause, self.checkpoint, self.task, self.fail, self.stop, self.message.div],
            sizing_mode="stretch_width", margin=0, stylesheets=[InlineStyleSheet(css=_ROW_CSS)],
        )  # fmt: skip
        self.model = Column(children=[sliders, buttons], sizing_mode="stretch_width", margin=0, spacing=8)

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The models that a person moves."""
        return (*(slider.slider for slider in self.knobs.values()), self.task)

    def update(self, frame: Frame) -> None:
        over = frame.state in OVER
        for setting, slider in self.knobs.items():
            in_force = frame.settings.get(setting)
            slider.update(None if in_force is None else str(in_force), over)
        self._paused = frame.paused
        self.pause.label = RESUME if self._paused else PAUSE
        for button in (self.pause, self.checkpoint, self.fail, self.stop):
            button.disabled = over
        self.task.disabled = over
        names = [task.name for task in frame.tasks]
        if self.task.options != names:
            self.task.options = names
            if self.task.value not in names:
                self.task.value = names[-1] if names else ""
        if self.message.html and monotonic() - self._said_at > MESSAGE_S:
            self.message.write("")

    def _button(self, label: str, action: Callable[[], object], hint: str, kind: str = "default") -> Button:
        button = Button(
            label=label, button_type=kind, margin=0, height=30,
            stylesheets=[InlineStyleSheet(css=_BUTTON_CSS)], html_attributes={"title": hint},
        )  # fmt: skip
        button.on_click(lambda: self._ask(action, f"asked: {button.label.strip('■▶❚ ').lower()}"))
        return button

    def _pause_or_resume(self) -> object:
        return self._job.resume() if self._paused else self._job.pause()

    def _crash(self) -> object:
        return self._job.fail(task=self.task.value)

    def _tune(self, knob: Knob, step: str) -> bool:
        return self._ask(lambda: self._job.tune(**{knob.setting: step}), f"asked: {knob.title.lower()} {step}")

    def _ask(self, action: Callable[[], object], done: str) -> bool:
        try:
            action()
        except WorkbenchError as error:
            self._say("bad", f"✗ {error}")
            return False
        self._say("good", f"✓ {done}")
        return True

    def _say(self, colour: str, text: str) -> None:
        self._said_at = monotonic()
        self.message.write(f"<span class='{colour}'>{wording.html_text(text)}</span>")


_ROW_CSS = """
:host { display: flex !important; flex-flow: row wrap; gap: 8px 22px; align-items: center; }
.wb-knob { flex: 1 1 190px; min-width: 170px; }
"""

_BUTTON_CSS = """
.bk-btn { font-size: 12px; font-weight: 600; padding: 0 12px; height: 30px; color: var(--wb-ink) !important;
  background: var(--wb-box) !important; border: 1px solid var(--wb-line) !important; box-shadow: none !important; }
.bk-btn:hover:not(:disabled) { border-color: var(--wb-accent) !important; }
.bk-btn:focus-visible { outline: 3px solid var(--wb-accent); outline-offset: 1px; }
.bk-btn:disabled { opacity: .5; }
.bk-btn-danger { color: var(--wb-bad) !important; border-color: var(--wb-bad) !important; }
"""

_SELECT_CSS = """
select.bk-input { height: 30px; font-size: 12px; padding: 0 8px; color: var(--wb-ink); background-color: var(--wb-box);
  border: 1px solid var(--wb-line); border-radius: 4px;
  background-image: none; appearance: auto; }
select.bk-input:disabled { background-color: var(--wb-box); color: var(--wb-muted); opacity: .6; }
select.bk-input option { color: var(--wb-ink); background: var(--wb-card); }
"""

_MESSAGE_CSS = ":host { flex: 1 1 220px; font-size: 12px; font-weight: 600; min-height: 18px; width: auto; }"
