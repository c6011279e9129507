"""Lesson 9: operations (savepoints, what-if, rescaling, high availability F2-16, E10)."""

from __future__ import annotations

from workbench.lessons.checks.fix import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Option

LESSON = LessonPlan(
    number="09",
    title="Operations",
    promise="Afterwards you can change, move, fix and rescale a program that never stops.",
    questions=(
        Choice(
            "uid",
            "You take a savepoint, change the program, and start the new one from it. How does the runtime know which "
            "state belongs to which operator?",
            (
                Option("By the order of the operators in the program.", lambda kept: kept == "order"),
                Option("By the operators' names, their uids.", lambda kept: kept == "uid"),
                Option("It does not: state is lost when a program changes.", lambda kept: kept is None),
            ),
            "A uid identifies the state of an operator. Around the operator the program may change; the operator itself needs "
            "the same key and state of the same type (in Flink, also the same maximal parallelism).",
        ),
        Choice(
            "rescale",
            "A job with two subtasks continues with three. What happens to its keyed state?",
            (
                Option("It is copied to all three.", lambda tasks: tasks == "copied"),
                Option(
                    "Key groups are redistributed: each key is in exactly one place.", lambda tasks: tasks == "once"
                ),
                Option("It stays where it is, and the third subtask has none.", lambda tasks: tasks == "stays"),
            ),
            "Keys belong to key groups, and subtasks own ranges of groups. Groups move with their state.",
        ),
        Choice(
            "coordinator",
            "The JobManager, which knows the graph, the checkpoints and the tasks, dies. What is left?",
            (
                Option("Nothing: the job begins again.", lambda what: what == "began again"),
                Option(
                    "What is in durable storage: another coordinator continues from there.",
                    lambda what: what == "continued",
                ),
            ),
            "The program, the checkpoints, and a pointer to the latest one are stored outside the JobManager.",
        ),
    ),
    exercises=(
        Exercise(
            "fix",
            "The first version of a program sums the cents of orders by shop, and counts cancelled orders, too. Write "
            "`fixed(orders)`, the second version: from the savepoint on, orders with `cancelled` do not count, and the "
            "sums so far are kept. The result has the columns `shop` and `revenue`.",
            (
                "Which operator holds the sums? The second version needs an operator with the same uid.",
                "A filter has no state, so you can add one before `key_by`.",
                "Take the first version, put a filter `NOT cancelled` before it, and keep `.uid('revenue')`.",
            ),
            JUDGE,
        ),
    ),
)
