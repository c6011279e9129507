"""An exercise: its task, its hints, and the judge that finds what is wrong with an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.api.job.job import Job


class ViolatedError(Exception):
    """An answer violates a property.

    Args:
        violated: the property in a few words, such as ``"no loss"``.
        words: what happened, with an example, and a question or advice.
        job: the stepping job in which it happened, if there is one.
        calls: the lines of a program in which it happens, if there is no job.
        opens: runs the job again, to just before it goes wrong.
    """

    def __init__(
        self,
        violated: str,
        words: str,
        job: Job | None = None,
        calls: Sequence[str] = (),
        opens: Callable[[], Job] | None = None,
    ) -> None:
        super().__init__(f"{violated}: {words}")
        self.violated = violated
        self.words = words
        self.job = job
        self.calls = tuple(calls)
        self.opens = opens


class MissingAnswerError(Exception):
    """There is no answer yet; the text says what is missing."""


Judge = Callable[[Any, int | None], str]
"""Judges an answer, given a seed that the notebook does not show; with None on the fixed inputs alone, which are part
of every attempt. Returns what was checked, in one sentence.

Raises `ViolatedError` or `MissingAnswerError`.
"""


@dataclass(frozen=True, slots=True)
class Exercise:
    """An exercise of a lesson.

    Attributes:
        name: in the notebook.
        task: what to write, in one or two sentences.
        hints: from a first idea to nearly the solution.
        judge: finds what an answer violates.
    """

    name: str
    task: str
    hints: tuple[str, ...]
    judge: Judge
