"""Lesson 12: from one machine to a cluster (Spark, history to live, rescaling; E10, F1-13)."""

from __future__ import annotations

from workbench.lessons.checks.move import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

LESSON = LessonPlan(
    number="12",
    title="From one machine to a cluster",
    promise="Afterwards you can say what stays the same when a program moves, catches up and grows, and design your own.",
    questions=(
        Choice(
            "tiers",
            "A pipeline has a source, a filter, a window and a sink; only the session window is not native. How many of "
            "the four run as Spark's own operators?",
            (
                Option("Three: all but the window.", lambda native: native == 3),
                Option("Two: the source and the filter, which come before the window.", lambda native: native == 2),
                Option("None.", lambda native: native == 0),
            ),
            "One query cannot combine Spark's event time with the workbench's. So all operators are carried.",
        ),
        Choice(
            "seam",
            "The history ends at 8:35, and live data continues from there. How many rows does a station have for the "
            "window from 8:30 to 8:40?",
            (
                Option("Two: one from the history, and one from the live data.", lambda rows: rows == 2),
                Option("One, with all trips of the window.", lambda rows: rows == 1),
                Option("None: the window is cut in two.", lambda rows: rows == 0),
            ),
            "State and watermarks continue from one source to the other. For the program, it is one stream.",
        ),
        Number(
            "minutes",
            "A job reads 35 minutes of history, then 25 minutes of live data. How many minutes does the run take?",
            "minutes",
            "The past is read as fast as the machine can. The present takes its time.",
            factor=1.1,
        ),
        Number(
            "hot",
            "In the second city 70 % of the trips begin at the airport. Of eight subtasks, what percentage of all "
            "records does the busiest one receive?",
            "percent",
            "All records of a key go to one subtask, however many subtasks there are.",
            factor=1.1,
        ),
    ),
    exercises=(
        Exercise(
            "move",
            "Write `revenue(trips)`: for each `station` and each ten minutes (tumbling, with `window_start`), the number "
            "of `trips` of at least 60 seconds, and the cents `paid`, where a `member` pays nothing. On Spark all of it is "
            "native.",
            (
                "`print(revenue(stream).sink_to(wb.TableSink('x')).explain(engine='spark'))` says what is not native, and why.",
                "You need a filter and a column, both as expressions, then a key, a window, and two aggregates.",
                "The column is `CASE WHEN member THEN 0 ELSE cents END`; its sum is `paid`.",
            ),
            JUDGE,
        ),
    ),
)
