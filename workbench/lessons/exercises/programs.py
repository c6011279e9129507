"""Judges answers that are not pipelines (a class or function in plain Python, or values) in many random trials."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from workbench.lessons.exercises.calls import failing
from workbench.lessons.exercises.exercise import Judge, MissingAnswerError, ViolatedError

ENOUGH = 30
"""The number of violating trials from which the shortest is chosen."""


def program(judge: Callable[[Any, Random], None], trials: int, checked: str) -> Judge:
    """A judge that tries an answer many times; of the trials with a violation, the shortest is shown.

    Args:
        judge: tries the answer once, and raises `ViolatedError` or `MissingAnswerError`; any other error of the answer
            is reported with its line.
        trials: the number of trials.
        checked: a sentence about what was checked, shown for a right answer.
    """

    def judged(answer: object, seed: int) -> str:
        if answer is ... or answer is None:
            raise MissingAnswerError("there is no answer yet")
        found: list[ViolatedError] = []
        for trial in range(trials):
            try:
                judge(answer, Random(f"{seed} {trial}"))
            except MissingAnswerError:
                raise
            except ViolatedError as violated:
                found.append(violated)
            except Exception as error:
                raise failing(error) from error
            if len(found) == ENOUGH or (found and not found[0].calls):
                break
        if found:
            raise min(found, key=lambda violated: len(violated.calls))
        return checked

    return judged
