"""The table of the course: its lessons, and where their questions and texts are."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from workbench.arguments import as_given
from workbench.errors import SettingError
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Question

COURSE = {
    "01": "table_in_motion",
    "02": "buffers",
    "03": "windows",
    "04": "time",
    "05": "state",
    "06": "failure",
    "07": "snapshots",
    "08": "answers",
    "09": "operations",
    "10": "joins",
    "11": "queries",
    "12": "cluster",
}
"""The topic of each lesson; its text is ``sources/01_table_in_motion.md``."""

SOURCES = Path(__file__).parent / "sources"


def numbered(number: str | int) -> str:
    """The number of a lesson, with two digits.

    Raises:
        SettingError: there is no such lesson.
    """
    name = f"{number:02}" if isinstance(number, int) and not isinstance(number, bool) else str(number).zfill(2)
    if name not in COURSE:
        raise SettingError(f"there is no lesson {as_given(number)}: the lessons are {', '.join(COURSE)}")
    return name


def plan_of(number: str) -> LessonPlan:
    """The questions and exercises of a lesson."""
    plan: LessonPlan = import_module(f"workbench.lessons.topics.{COURSE[number]}").LESSON
    return plan


def questions_of(number: str) -> tuple[Question, ...]:
    """The questions of a lesson, in the order of its text."""
    return plan_of(number).questions


def source_of(number: str) -> str:
    """The text of a lesson."""
    return (SOURCES / f"{number}_{COURSE[number]}.md").read_text(encoding="utf-8")
