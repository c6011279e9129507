"""A group of controls: fields, buttons that send requests to the job, and the job's answers beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from bokeh.events import ValueSubmit
from bokeh.models import Button, Row, Select, TextInput

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import Texts, row
from workbench.dashboard.charts.static import callback, sheet
from workbench.dashboard.contract.background_actions import BackgroundActions
from workbench.errors import WorkbenchError, sentence_of

MESSAGE_S = 15.0


class Answer:
    """The place of the job's answer to one control: the request, or the sentence of a rejection.

    Args:
        label: of the control, for assistive technology.
        background: runs slow actions.
    """

    def __init__(self, label: str, texts: Texts, background: BackgroundActions) -> None:
        self._piece = texts.piece(f"Answer to {label}", "answer", role="alert")
        self._background = background
        self._said_at = 0.0
        self.div = self._piece.div
        self.div.css_classes = ["wb-answer"]

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been answered, or long ago."""
        return not self._piece.html

    def ask(self, action: Callable[[], object], done: str) -> bool:
        """Send a fast request to the job; returns whether it was accepted."""
        try:
            action()
        except WorkbenchError as error:
            self.refuse(sentence_of(error))
            return False
        self._say("good", f"✓ {done}")
        return True

    def ask_slowly(
        self,
        name: str,
        action: Callable[[], object],
        done: str | Callable[[Any], str],
        then: Callable[[Any], None] | None = None,
    ) -> bool:
        """Send a slow request to the job; the answer is shown when it arrives, and may depend on the result."""

        def answered(result: Any, problem: str | None) -> None:
            if problem is not None:
                self.refuse(problem)
                return
            self._say("good", f"✓ {done if isinstance(done, str) else done(result)}")
            if then is not None:
                then(result)

        if not self._background.run(name, action, answered):
            self.refuse("one is already running: wait until it finishes")
            return False
        self._say("muted", "… running")
        return True

    def refuse(self, sentence: str) -> None:
        """Show why the request was rejected."""
        self._say("bad", f"✗ {sentence}")

    def update(self) -> None:
        """Remove the answer after a while."""
        if self._piece.html and "…" not in self._piece.html and monotonic() - self._said_at > MESSAGE_S:
            self._piece.write("")

    def _say(self, colour: str, text: str) -> None:
        self._said_at = monotonic()
        self._piece.write(f"<span class='{colour}'>{wording.html_text(wording.fit(text, 2000, 11))}</span>")


def button(label: str, press: Callable[[], object], hint: str, kind: str = "default") -> Button:
    """A button; `hint` is shown on hover."""
    made = Button(
        label=label, button_type=kind, margin=0, height=28,
        stylesheets=[sheet("button")], html_attributes={"title": hint},
    )  # fmt: skip
    made.on_click(lambda: press())
    return made


def choice(label: str, width: int = 140) -> Select:
    """A selection list, initially empty."""
    return Select(
        title=label, options=[], value="", width=width, margin=0, stylesheets=[sheet("field")],
        html_attributes={"title": label},
    )  # fmt: skip


def field(label: str, placeholder: str, width: int = 110) -> TextInput:
    """A line of text, submitted on Enter or when the field loses focus."""
    made = TextInput(
        title=label, value="", placeholder=placeholder, width=width, margin=0,
        stylesheets=[sheet("field")], html_attributes={"title": label},
    )  # fmt: skip
    made.js_on_event(ValueSubmit, callback("takeTyped", field=made))
    return made


def offer(select: Select, options: Sequence[str], last: bool = False) -> None:
    """Set the options of a list; the selection is kept if it is still available."""
    if list(select.options) == list(options):
        return
    select.options = list(options)
    if select.value not in options:
        select.value = (options[-1] if last else options[0]) if options else ""


def group(*children: Any, name: str = "") -> Row:
    """Controls that belong together, in a line that wraps; by its name a scene of a lecture shows it."""
    return row(children, "controls_group", css_classes=["wb-group", *([f"wb-do-{name}"] if name else [])])
