"""Questions that are answered before a run, and settled by what the run measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from workbench.arguments import as_given

FAR = 8.0
"""A number that is too large or too small by this factor gets a reaction of its own."""


@dataclass(frozen=True, slots=True)
class Option:
    """One answer of a choice.

    Attributes:
        text: the answer in words.
        holds: whether this answer is right for a measured value.
    """

    text: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Choice:
    """A question with a few answers, named a, b, c in order.

    Attributes:
        name: of the question in the notebook.
        text: the question.
        options: its answers; for each possible measurement exactly one of them holds.
        because: the reason, in one or two sentences; shown after the measurement.
    """

    name: str
    text: str
    options: tuple[Option, ...]
    because: str

    @property
    def letters(self) -> str:
        """The names of the answers."""
        return "abcdefgh"[: len(self.options)]

    def lines(self) -> list[str]:
        """The answers, and how to give one."""
        told = [f"{letter}: {option.text}" for letter, option in zip(self.letters, self.options, strict=True)]
        return [*told, f"Replace the `...` with one of {', '.join(map(repr, self.letters))}, and run the cell again."]

    def asked(self) -> str:
        """The question and its answers as Markdown."""
        options = (f"- **{letter}** {option.text}" for letter, option in zip(self.letters, self.options, strict=True))
        return "\n".join([f"**Predict:** {self.text}", "", *options])

    def problem(self, answer: object) -> str | None:
        """What is wrong with the form of an answer; None if nothing is."""
        if isinstance(answer, str) and answer.strip().lower() in set(self.letters):
            return None
        return f"{as_given(answer)} is not one of {', '.join(map(repr, self.letters))}"

    def told(self, answer: object) -> str:
        """An answer as it is kept."""
        return str(answer).strip().lower()

    def settle(self, answer: str | None, measured: object) -> tuple[bool, str]:
        """Return whether an answer is right, and the measurement in words."""
        right = [letter for letter, option in zip(self.letters, self.options, strict=True) if option.holds(measured)]
        is_number = isinstance(measured, int | float) and not isinstance(measured, bool)
        if not right:
            found = f"Measured: {_shown(measured)}" if is_number else "The run shows something else"
            return False, f"{found}. No answer fits: have you changed a cell?"
        told = f"Measured: {_shown(measured)}. That is" if is_number else "The run shows"
        return answer in right, f"{told} {right[0]}: {self.options[self.letters.index(right[0])].text}"


@dataclass(frozen=True, slots=True)
class Number:
    """A question for a number.

    Attributes:
        name, text, because: as for `Choice`.
        unit: of the number, such as ``"ms"``.
        factor: an answer is right if it differs from the measured number by at most this factor.
    """

    name: str
    text: str
    unit: str
    because: str
    factor: float = 1.5

    def lines(self) -> list[str]:
        """How to give an answer."""
        return [f"Replace the `...` with a number ({self.unit}), and run the cell again. A guess is enough."]

    def asked(self) -> str:
        """The question as Markdown."""
        return f"**Predict:** {self.text} (Answer with a number: {self.unit}.)"

    def problem(self, answer: object) -> str | None:
        """What is wrong with the form of an answer; None if nothing is."""
        number: Any = answer
        if isinstance(answer, Real) and not isinstance(answer, bool) and 0 <= number < 1e15:
            return None
        return f"{as_given(answer)} is not a number of {self.unit}"

    def told(self, answer: object) -> str:
        """An answer as it is kept."""
        assert isinstance(answer, Real)
        return f"{abs(float(answer)):g}"  # no -0

    def settle(self, answer: str | None, measured: object) -> tuple[bool, str]:
        """Return whether an answer is near enough, and the measurement in words."""
        assert isinstance(measured, int | float)
        told = f"Measured: {_shown(measured)} {self.unit}."
        if answer is None:
            return False, told
        right = _near(float(answer), float(measured), self.factor)
        return right, told if right else f"{told}{_far_off(float(answer), float(measured))}"


Question = Choice | Number


def _far_off(answer: float, measured: float) -> str:
    """What to say about an answer that is wrong by an order of magnitude, or by nothing against something."""
    if min(answer, measured) <= 0:
        return " You expected something where there is nothing." if answer else " You expected nothing at all."
    times = max(answer, measured) / min(answer, measured)
    if times < FAR:
        return ""
    more = "large" if answer > measured else "small"
    return (
        f" Your number is about {times:,.0f} times too {more}: that is no matter of a wrong guess, but of another "
        "picture. Which factor is missing in it, or which unit?"
    )


def _near(answer: float, measured: float, factor: float) -> bool:
    if min(answer, measured) <= 0:
        return abs(answer - measured) < 1e-9
    return max(answer, measured) / min(answer, measured) <= factor


def _shown(measured: object) -> str:
    return f"{measured:,.6g}" if isinstance(measured, float) else str(measured)
