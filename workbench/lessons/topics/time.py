"""Lesson 4: event time, processing time and watermarks (F1-11 to F1-13, F2-5, F2-6, lateness, idleness)."""

from __future__ import annotations

from workbench.lessons.checks.scores import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

LESSON = LessonPlan(
    number="04",
    title="Time",
    promise="Afterwards you can explain what a watermark is, what waiting costs, and what late means.",
    questions=(
        Choice(
            "tunnel",
            "Alice plays in the subway. She taps 5 times in the first minute; her phone is offline from second 30 to second "
            "90, so 2 of the 5 taps arrive at second 90. How many of her taps does a window over the arrival time count "
            "for the first minute?",
            (
                Option("5", lambda n: n == 5),
                Option("3", lambda n: n == 3),
                Option("7", lambda n: n == 7),
            ),
            "Processing time counts what arrives. Alice loses a bonus because of a tunnel.",
        ),
        Number(
            "eager",
            "Now the window uses the time at which the taps were played, and a watermark that assumes that they arrive in "
            "order (out_of_orderness 0). Bob, who is online, taps at second 65. How many of Alice's five taps are counted?",
            "taps",
            "The watermark passes the end of the minute with the first tap of the next one, Bob's. Alice's stragglers are "
            "late.",
            factor=1.0,
        ),
        Choice(
            "slowest",
            "A task reads two channels. The watermark of one is 20, that of the other 4. What is the watermark of the "
            "task?",
            (
                Option("20: the newest information counts.", lambda w: w == 20),
                Option("12: the mean.", lambda w: w == 12),
                Option("4: the smallest.", lambda w: w == 4),
            ),
            "A watermark promises that nothing older will arrive. A task can only promise what all its inputs promise.",
        ),
        Choice(
            "idle",
            "One of two sources has no records for a while. What does that do to the windows?",
            (
                Option("Nothing: no records, no effect.", lambda results: results == "same"),
                Option("None of them ends until that source sends something, or is declared idle.", lambda r: r == 0),
                Option("They end earlier.", lambda results: isinstance(results, int) and results > 0),
            ),
            "The silent source keeps its old watermark, which holds back all tasks downstream. An idle source is ignored.",
        ),
    ),
    exercises=(
        Exercise(
            "scores",
            "Write `scores(taps)`: the points of each player in each minute, by the time at which taps were played, not "
            "seen. Taps arrive up to 90 seconds late, and all of them count. A minute's first result may be at most two "
            "minutes late.",
            (
                "The stream has no event time yet: `taps.assign_timestamps('played', ...)` gives it one.",
                "`out_of_orderness` says how long to wait for stragglers: at least 90 s, at most 120 s.",
                "Instead of waiting, you can correct results: use a smaller `out_of_orderness`, and `allowed_lateness`.",
            ),
            JUDGE,
        ),
    ),
)
