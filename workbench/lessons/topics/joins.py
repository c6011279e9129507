"""Lesson 10: joins and asking services (E6, windowed, interval and lookup joins)."""

from __future__ import annotations

from workbench.lessons.checks.matched import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

LESSON = LessonPlan(
    number="10",
    title="Joins, and asking services",
    promise="Afterwards you can join two streams, and say what each kind of join has to remember.",
    questions=(
        Number(
            "window-join",
            "A view happens at minute 9, and the purchase at minute 11. They are joined if they are in the same window of "
            "ten minutes. How many pairs are found?",
            "pairs",
            "One window ends at minute 10, between the two. Events that belong together do not respect the limits of "
            "windows.",
            factor=1.0,
        ),
        Choice(
            "state",
            "A join waits for purchases until ten minutes after a view. How long is a view remembered?",
            (
                Option("Forever: the purchase may be late.", lambda rows: rows > 20),
                Option("Until the watermark is ten minutes past the view.", lambda rows: 0 < rows <= 20),
                Option("Until its first purchase arrives.", lambda rows: rows == 0),
            ),
            "The bound on event time keeps the state of a join of endless streams finite.",
        ),
        Choice(
            "service",
            "A service needs 20 ms for an answer. A stream has 400 records with 40 different keys, and the answer for a key "
            "is kept. Roughly how long do the requests take, with 16 at a time?",
            (
                Option("8 s: 400 times 20 ms.", lambda ms: ms > 1_000),
                Option("Between 50 ms and a second: 40 keys, 16 at a time.", lambda ms: 50 <= ms <= 1_000),
                Option("20 ms.", lambda ms: ms < 50),
            ),
            "Keep the answer for each key, and do not wait for an answer before the next request.",
        ),
    ),
    exercises=(
        Exercise(
            "matched",
            "Write `matched(views, buys)`: from views (`user`, `item`, `view`, `at`) and purchases (`user`, `item`, `buy`, "
            "`at`) make a row for each purchase of the same user and item up to ten minutes after the view, with at least "
            "`view`, `buy` and `user`.",
            (
                "Which of the joins does not cut time into windows?",
                "`views.join(buys, on=[...], between=(...))`: the bounds say when the right record may happen.",
                "The keys are user and item; the purchase happens between 0 and 10 minutes after the view.",
            ),
            JUDGE,
        ),
    ),
)
