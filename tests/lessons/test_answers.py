"""Typical wrong answers to each exercise are rejected with an explanation; several right ones pass."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import workbench as wb
from workbench.lessons.course import COURSE, plan_of
from workbench.lessons.exercises.exercise import Judge, MissingAnswerError, ViolatedError

ANSWERS = {number: import_module(f"answers_{number}") for number in COURSE}


QUICK = {
    "hashtags": ("equal posts once", "memory outside of state", "collected"),
    "settings": ("7 ms", "21 ms", "a buffer of two"),
    "visits": ("a second more", "in order of arrival", "strict"),
    "scores": ("85 s", "150 s", "corrections too short"),
    "alarms": ("a dictionary", "a global variable", "zero is nothing"),
    "ledger": ("the last thousand", "in the class", "0 is nothing"),
    "alignment": ("no waiting", "in the class", "no snapshot of 0"),
    "acker": ("counting", "sets", "in the class"),
    "fix": ("equal orders once", "no uid", "no orders of 0"),
    "matched": ("a millisecond more", "not at once", "a window"),
    "highest": ("different rows", "hopping", "all groups"),
    "move": ("more than a minute", "nulls", "a function"),
}
"""The wrong answers that are tried in fast tests, too."""


def right() -> list[Any]:
    return [
        pytest.param(
            number, exercise, answer, id=f"{number} {exercise}: {name}", marks=[pytest.mark.slow] * bool(index)
        )
        for number, answers in ANSWERS.items()
        for exercise, named in answers.RIGHT.items()
        for index, (name, answer) in enumerate(named.items())
    ]


def wrong() -> list[Any]:
    return [
        pytest.param(
            number, exercise, answer, words,
            id=f"{number} {exercise}: {name}", marks=[pytest.mark.slow] * (name not in QUICK[exercise]),
        )
        for number, answers in ANSWERS.items()
        for exercise, named in answers.WRONG.items()
        for name, (answer, words) in named.items()
    ]  # fmt: skip


def judge_of(number: str, exercise: str) -> Judge:
    return next(each.judge for each in plan_of(number).exercises if each.name == exercise)


@pytest.mark.parametrize("number", COURSE)
def test_each_exercise_has_ten_wrong_answers_and_three_right_ones(number: str) -> None:
    names = {exercise.name for exercise in plan_of(number).exercises}
    assert names
    assert ANSWERS[number].RIGHT.keys() == ANSWERS[number].WRONG.keys() == names
    assert {name: len(answers) for name, answers in ANSWERS[number].RIGHT.items() if len(answers) < 3} == {}
    assert {name: len(answers) for name, answers in ANSWERS[number].WRONG.items() if len(answers) < 10} == {}
    said = [words for named in ANSWERS[number].WRONG.values() for _, words in named.values()]
    assert all(said), "a message says what is wrong"
    assert {
        name: set(quick) - ANSWERS[number].WRONG[name].keys() for name, quick in QUICK.items() if name in names
    } == {name: set() for name in names}


@pytest.mark.parametrize(("number", "exercise", "answer"), right())
def test_a_right_answer_passes(number: str, exercise: str, answer: Any) -> None:
    said = wb.lesson(number, progress=False).check(exercise, answer)
    assert said.passed, said


@pytest.mark.parametrize(("number", "exercise", "answer", "words"), wrong())
def test_a_wrong_answer_is_rejected_with_what_is_wrong(number: str, exercise: str, answer: Any, words: str) -> None:
    """By the fixed inputs alone, which are part of every attempt: so it is rejected however often it is tried."""
    with pytest.raises((ViolatedError, MissingAnswerError)) as found:
        judge_of(number, exercise)(answer, None)
    assert words in str(found.value)


@pytest.mark.slow
@pytest.mark.parametrize("number", COURSE)
def test_a_right_answer_passes_again_and_again(number: str) -> None:
    for exercise, answers in ANSWERS[number].RIGHT.items():
        answer = list(answers.values())[-1]
        for seed in range(20):
            assert judge_of(number, exercise)(answer, seed)


@pytest.mark.slow
@pytest.mark.parametrize("number", COURSE)
def test_a_lesson_says_not_yet_to_each_wrong_answer(number: str) -> None:
    lesson = wb.lesson(number, progress=False)
    for exercise, answers in ANSWERS[number].WRONG.items():
        for answer, words in answers.values():
            said = lesson.check(exercise, answer)
            assert not said.passed
            assert repr(said).startswith(("Not yet.", "Not answered yet"))
            assert words in repr(said)
    assert not lesson.complete
