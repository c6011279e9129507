"""Judges what is no pipeline: a class or function in plain Python, or values, by a property over many random trials."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from workbench.lessons.exercises.calls import failing
from workbench.lessons.exercises.exercise import Judge, MissingAnswerError, ViolatedError

ENOUGH = 30
"""Among so many trials that go wrong there is a short one."""


def program(judge: Callable[[Any, Random], None], trials: int, checked: str) -> Judge:
    """The judge of an answer by many trials; of those in which it violates something, the shortest is shown.

    Args:
        judge: tries the answer once, and raises `ViolatedError` or `MissingAnswerError`; whatever else the answer
            raises is told with its line.
        trials: how many.
        checked: what was checked, for an answer that is right.
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
