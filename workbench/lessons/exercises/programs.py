"""Judges answers that are not pipelines (a class or function in plain Python, or values) in fixed and random trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from workbench.lessons.exercises.calls import failing
from workbench.lessons.exercises.exercise import Judge, MissingAnswerError, ViolatedError
from workbench.lessons.exercises.memory import Memory

ENOUGH = 30
"""The number of violating trials from which the shortest is chosen."""


def program(
    fixed: Sequence[Callable[[Any], None]], judge: Callable[[Any, Random], None], trials: int, checked: str
) -> Judge:
    """A judge that tries an answer many times; of the drawn trials with a violation, the shortest is shown.

    Args:
        fixed: trials that are part of every attempt, in order.
        judge: tries the answer once, and raises `ViolatedError` or `MissingAnswerError`; any other error of the answer
            is reported with its line.
        trials: the number of drawn trials.
        checked: a sentence about what was checked, shown for a right answer.
    """

    def judged(answer: object, seed: int | None) -> str:
        if answer is ... or answer is None:
            raise MissingAnswerError("there is no answer yet")
        memory = Memory([answer])
        for trial in fixed:
            if (violated := _tried(trial, memory, answer)) is not None:
                raise violated
        found: list[ViolatedError] = []
        for number in range(0 if seed is None else trials):
            violated = _tried(judge, memory, answer, Random(f"{seed} {number}"))
            found += [] if violated is None else [violated]
            if len(found) == ENOUGH or (found and not found[0].calls):
                break
        if found:
            raise min(found, key=lambda violated: len(violated.calls))
        return checked

    return judged


def _tried(trial: Callable[..., None], memory: Memory, *arguments: Any) -> ViolatedError | None:
    """The violation in one trial, which begins as in a new process."""
    try:
        trial(*arguments)
    except ViolatedError as violated:
        return _with_memory(violated, memory)
    except MissingAnswerError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a program raises is its failure
        return failing(error)
    finally:
        memory.reset()
    return None


def _with_memory(violated: ViolatedError, memory: Memory) -> ViolatedError:
    """The same violation; it names what is kept outside of the object."""
    changed = memory.changed()
    if not changed:
        return violated
    words = f"{violated.words} Outside of the object, {' and '.join(changed)} changes: all objects share it."
    return ViolatedError(violated.violated, words, violated.job, violated.calls, violated.opens)
