"""Judges what is no pipeline: a class or function in plain Python, or values, by a property over many random trials."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from random import Random
from typing import Any

from workbench.lessons.exercises.exercise import Judge, MissingAnswerError, ViolatedError
from workbench.raised import described

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
                line = traceback.extract_tb(error.__traceback__)[-1]
                raise ViolatedError(
                    "a program that works",
                    f"it raises an error: {described(error)}, in line {line.lineno}: {line.line}",
                ) from error
            if len(found) == ENOUGH or (found and not found[0].calls):
                break
        if found:
            raise min(found, key=lambda violated: len(violated.calls))
        return checked

    return judged
