"""Lesson 5: state (keyed state, backends, time to live, queryable state, D4)."""

from __future__ import annotations

from workbench.lessons.checks.alarms import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

LESSON = LessonPlan(
    number="05",
    title="State",
    promise="Afterwards you can explain where a stream processor keeps its state, and how it limits it.",
    questions=(
        Choice(
            "where",
            "Two subtasks count words by key. The word `fish` occurs 10 times. Which subtask has its count?",
            (
                Option("Both: they share a dictionary.", lambda holders: holders == 2),
                Option("One of them, always the same.", lambda holders: holders == 1),
                Option("Each has a part; a third task adds the parts up.", lambda holders: holders == 0),
            ),
            "A key belongs to one subtask. So records are sent by key, and no locks are needed.",
        ),
        Number(
            "forget",
            "200 visitors arrive, each of them once, one per second. Their state has a time to live of 60 seconds. How many "
            "visitors are remembered at the end?",
            "visitors",
            "With a time to live, the size of the state depends on how fast keys arrive, not on how many have ever arrived.",
            factor=1.2,
        ),
        Choice(
            "look",
            "You query the count of `fish` while the job runs. What happens to the job?",
            (
                Option("It stops until the answer is there.", lambda state: state == "stopped"),
                Option("It continues: a task answers between two records.", lambda state: state == "RUNNING"),
                Option("This is not possible: results leave only through a sink.", lambda state: state is None),
            ),
            "The query is put into the mailbox of the task that owns the key.",
        ),
    ),
    exercises=(
        Exercise(
            "alarms",
            "Write `alarms(readings)`: of the readings with `sensor`, `number` and `celsius`, keep those that are more "
            "than 5 degrees above the previous reading of the same sensor, with the same three columns.",
            (
                "You have to remember one number for each sensor: what does this lesson call that?",
                "`readings.key_by('sensor').process(function, schema, state={'last': pa.int64()})`; `state.last` is None at "
                "first.",
                "Compare `record['celsius']` with `state.last`, then always write `state.last`, and return the "
                "record if it is an alarm.",
            ),
            JUDGE,
        ),
    ),
)
