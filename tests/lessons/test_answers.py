"""Typical wrong answers to each exercise are rejected with an explanation; several right ones pass."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import workbench as wb
from workbench.lessons.course import COURSE, plan_of

ANSWERS = {number: import_module(f"answers_{number}") for number in COURSE}


def right() -> list[Any]:
    return [
        pytest.param(number, exercise, answer, id=f"{number} {exercise}: {name}")
        for number, answers in ANSWERS.items()
        for exercise, named in answers.RIGHT.items()
        for name, answer in named.items()
    ]


def wrong() -> list[Any]:
    return [
        pytest.param(number, exercise, answer, words, id=f"{number} {exercise}: {name}")
        for number, answers in ANSWERS.items()
        for exercise, named in answers.WRONG.items()
        for name, (answer, words) in named.items()
    ]


@pytest.mark.parametrize("number", COURSE)
def test_each_exercise_has_ten_wrong_answers_and_three_right_ones(number: str) -> None:
    names = {exercise.name for exercise in plan_of(number).exercises}
    assert names
    assert ANSWERS[number].RIGHT.keys() == ANSWERS[number].WRONG.keys() == names
    assert {name: len(answers) for name, answers in ANSWERS[number].RIGHT.items() if len(answers) < 3} == {}
    assert {name: len(answers) for name, answers in ANSWERS[number].WRONG.items() if len(answers) < 10} == {}
    said = [words for named in ANSWERS[number].WRONG.values() for _, words in named.values()]
    assert all(said), "a message says what is wrong"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "exercise", "answer"), right())
def test_a_right_answer_passes(number: str, exercise: str, answer: Any) -> None:
    said = repr(wb.lesson(number, progress=False).check(exercise, answer))
    assert said.startswith("Passed."), said


@pytest.mark.slow
@pytest.mark.parametrize(("number", "exercise", "answer", "words"), wrong())
def test_a_wrong_answer_is_rejected_with_what_is_wrong(number: str, exercise: str, answer: Any, words: str) -> None:
    said = repr(wb.lesson(number, progress=False).check(exercise, answer))
    assert said.startswith(("Not yet.", "Not answered yet")), said
    assert words in said
