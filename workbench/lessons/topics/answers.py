"""Lesson 8: other answers to failure (E8, E9, D1 to D6 compared; acks, transactions, changelogs, micro-batches)."""

from __future__ import annotations

from workbench.lessons.checks.acker import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Option

LESSON = LessonPlan(
    number="08",
    title="Other answers",
    promise="Afterwards you can compare fault-tolerance architectures by what they save, cost and guarantee.",
    questions=(
        Choice(
            "batches",
            "A query counts the records of every 5 seconds; one record arrives per second. It runs in micro-batches of "
            "10 seconds, and its windows are rounded up to whole batches. What does it count?",
            (
                Option("5: the window says so.", lambda n: n == 5),
                Option("10: a window is as long as the batch.", lambda n: n == 10),
                Option("2.5", lambda n: n == 2.5),
            ),
            "In this architecture, the batch interval is part of the program: if you change it for speed, the windows have to "
            "follow, and the results change.",
        ),
        Choice(
            "weakest",
            "One task dies. Which architectures end with the right counts?",
            (
                Option("All of them.", lambda right: right == 6),
                Option(
                    "Those whose copy of the state matches the positions of the sources.", lambda right: 1 < right < 6
                ),
                Option("Snapshots only.", lambda right: right <= 1),
            ),
            "Snapshots, transactions and micro-batches are exact. Acknowledgements and logs without transactions are not.",
        ),
        Choice(
            "stop",
            "A checkpoint is taken. What do the sources do under naive, stop-the-world checkpoints?",
            (
                Option("They continue to read.", lambda read: read > 0),
                Option("They wait until the copy is complete.", lambda read: read == 0),
            ),
            "It is simple and exact, and the pause grows with the state.",
        ),
    ),
    exercises=(
        Exercise(
            "acker",
            "Write Storm's acker: a class with `begin(root, id)`, which is called when a source has sent a record, and "
            "`update(root, processed, created)`, which is called when the record with the id `processed` is done and has "
            "produced records with the ids in the list `created`. Both return True exactly when the root and everything "
            "derived from it are done. Messages arrive in any order, and only a few numbers may be kept for each root.",
            (
                "Each id occurs twice: once as created (or begun), once as processed.",
                "`a ^ b ^ a` is `b`: with XOR, what occurs twice disappears, in any order.",
                "Keep one number for each root. XOR all ids of a message into it; if it is 0, the root is complete, and "
                "you can forget it.",
            ),
            JUDGE,
        ),
    ),
)
