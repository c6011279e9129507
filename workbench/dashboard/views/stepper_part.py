"""The stepper: a job that stands still between steps, every record a marble, and buttons to go on, back and aside (F2-5
to F2-15)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from workbench.dashboard.charts import wording
from workbench.dashboard.contract.actions import Answer, button, field, group
from workbench.dashboard.contract.part import Easel, Part
from workbench.errors import SettingError
from workbench.telemetry.frames import Frame

_LIVE = (
    "<p class='none'>This job runs live. Run its pipeline with driver=\"stepping\" to go through it step by step.</p>"
)
_CSS = """
.wb-words { font-size: 13px; line-height: 1.5; min-height: 40px; padding: 4px 0; white-space: normal; }
.wb-picture { overflow-x: auto; }
"""


class StepperPart(Part):
    """The picture of a stepping job and its verbs; see `Part`."""

    title = "Stepper"
    hint = "the next record to be received lies nearest to its receiver · ▲ barrier · W watermark · ‖ held back"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._picture = easel.texts.piece("Records, barriers and state", css=_CSS)
        self._answer = Answer("steps", easel.texts, easel.errands)
        self._shown: tuple[object, int, str] | None = None
        on = [
            button(label, partial(self._step, verb, *words), hint, kind)
            for label, verb, words, hint, kind in (
                ("◀◀ 10", "back", (10,), "Ten steps back", "default"),
                ("◀ back", "back", (), "One step back", "default"),
                ("step ▶", "step", (), "The next step", "primary"),
                ("10 ▶▶", "step", (10,), "Ten steps", "default"),
                ("record", "next_record", (), "Until a task takes in a record", "default"),
                ("buffer", "next_buffer", (), "Until a buffer is taken from a channel", "default"),
                ("barrier", "next_barrier", (), "Until a checkpoint barrier moves", "default"),
                ("watermark", "next_watermark", (), "Until event time advances in a task", "default"),
                ("aligned", "until_aligned", (), "Until a task has all its barriers", "default"),
                ("checkpoint", "until_checkpoint", (), "Until one is complete", "default"),
                ("window", "until_window_fires", (), "Until a window fires", "default"),
            )
        ]
        self._condition = field("Condition on the records that an operator emits", "total > 5", 130)
        self._operator = field("Operator whose records are asked", "operator", 90)
        self._setting = field("Settings of the other job", "buffer_timeout=5ms", 150)
        more = [
            self._condition,
            self._operator,
            button("until", self._until, "Until the operator emits a record for which the condition is true"),
            button(
                "trigger checkpoint", lambda: self._go(lambda: self.easel.job.checkpoint()), "Ask for a checkpoint now"
            ),
            self._setting,
            button("fork here", self._fork, "Another job that goes on from this step with other settings"),
        ]
        self.inputs = (self._condition, self._operator, self._setting)
        rows = group(*on), group(*more, self._answer.div)
        rows[0].margin = rows[1].margin = (0, 0, 6, 0)
        self.models = (*rows, self._picture.div)

    def update(self, frame: Frame) -> None:
        """Draw the moment anew if the job has moved."""
        self._answer.update()
        if self.easel.runs_live():
            self._picture.write(_LIVE)
            return
        shown = (self.easel.job.recorder, frame.sequence, frame.state)
        if shown != self._shown:
            self._shown = shown
            self._draw()

    def _draw(self) -> None:
        view = self.easel.job.stepper.scene()
        self._picture.write(f"<p class='wb-words'>{view.headline()}</p><div class='wb-picture'>{view.svg}</div>")

    def _step(self, verb: str, *words: object) -> None:
        self._go(lambda: getattr(self.easel.job.stepper, verb)(*words))

    def _go(self, verb: Callable[[], object]) -> None:
        """Take steps, and say so when what was waited for did not happen."""
        reached: list[object] = []
        if not self._answer.ask(lambda: reached.append(verb()), "done"):
            return
        if reached[0] is not None and not reached[0]:
            self._answer.refuse("that did not happen: the job is over, or stands still")
        self._draw()

    def _until(self) -> None:
        self._step("until", self._condition.value, self._operator.value)

    def _fork(self) -> None:
        def fork() -> object:
            other = self.easel.job.stepper.fork(**_settings(self._setting.value))
            self._forked = other.name
            return other.stepper.scene()

        if self._answer.ask(fork, ""):
            name = self._forked
            self._answer.ask(lambda: None, f"{name} goes on from here: wb.job({wording.fit(repr(name), 300, 11)})")


def _settings(text: str) -> dict[str, str]:
    """``buffer_timeout=5ms checkpoint_interval=1s`` as settings.

    Raises:
        SettingError: a word without a value.
    """
    found = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise SettingError(f"{word!r} has no value: write for example buffer_timeout=5ms")
        found[name] = value
    return found
