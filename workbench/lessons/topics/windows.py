"""Lesson 3: windows (F1-4 to F1-10, assigner, trigger, evictor, holistic aggregates)."""

from __future__ import annotations

from workbench.lessons.checks.visits import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

LESSON = LessonPlan(
    number="03",
    title="Windows",
    promise="Afterwards you can cut an endless stream into the finite pieces that your question needs.",
    questions=(
        Number(
            "sliding",
            "A count window of length 4 slides by 3, over the numbers 1 to 10. In how many windows is the number 4?",
            "windows",
            "The windows are 1 to 4, 4 to 7 and 7 to 10: where they overlap, a record counts in both.",
            factor=1.0,
        ),
        Choice(
            "sessions",
            "Clicks at seconds 0, 2, 3, 9, 10 and 20; a session ends after a gap of 5 seconds. How many are there?",
            (
                Option("2", lambda n: n == 2),
                Option("3", lambda n: n == 3),
                Option("6", lambda n: n == 6),
            ),
            "A session lasts until 5 seconds after its last click: the first until second 8, so the click at 9 begins another "
            "one, which lasts until 15.",
        ),
        Choice(
            "colours",
            "There are count windows of two records for each colour. Red, blue, blue, red, red arrive. How many windows "
            "are complete?",
            (
                Option("One: the first two records, red and blue, do not match.", lambda n: n == 1),
                Option("Two: one red, one blue.", lambda n: n == 2),
                Option("Two and a half.", lambda n: n > 2),
            ),
            "Each key has its own windows. The third red record waits for a fourth.",
        ),
        Choice(
            "median",
            "A window keeps a sum and a count, two numbers, however many records arrive. What does it need for a median?",
            (
                Option("Two numbers.", lambda state: state == "stays"),
                Option("All values in the window.", lambda state: state == "grows"),
            ),
            "A median is a holistic aggregate: no summary of limited size is enough to compute it exactly.",
        ),
    ),
    exercises=(
        Exercise(
            "visits",
            "Write `visits(clicks)`: from clicks with the columns `user` and `at` (event time), make one row for each "
            "visit, with `user` and `clicks`. A visit of a user ends when the user is silent for more than ten "
            "minutes.",
            (
                "Which of the windows of this lesson ends with silence?",
                "Each user is silent at different times: start with `key_by`.",
                "`clicks.key_by('user').window(wb.session('10min')).aggregate(clicks=wb.count())`",
            ),
            JUDGE,
        ),
    ),
)
