"""The plan of a lesson: its title, its promise, its questions and its exercises."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.question import Question


@dataclass(frozen=True, slots=True)
class LessonPlan:
    """A lesson without its text.

    Attributes:
        number: ``"04"``.
        title: of the lesson.
        promise: what a learner can explain afterwards, as one sentence.
        questions: asked before the runs, in the order of the text.
        exercises: in the order of the text.
    """

    number: str
    title: str
    promise: str
    questions: tuple[Question, ...]
    exercises: tuple[Exercise, ...]
