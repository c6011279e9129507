"""Lesson 7: distributed snapshots (F2-7 to F2-15, at least once, unaligned, E5, E7, D5)."""

from __future__ import annotations

from workbench.lessons.checks.alignment import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

LESSON = LessonPlan(
    number="07",
    title="Snapshots",
    promise="Afterwards you can take a consistent snapshot of a running system by hand, and explain why it is consistent.",
    questions=(
        Number(
            "offset",
            "A source counts 1, 2, 3, ... One task sums the even numbers, another the odd ones. The odd sum has just become "
            "9. Which offset of the source matches this state?",
            "numbers read",
            "1 + 3 + 5 = 9, and the 6 has not been read: five numbers.",
            factor=1.0,
        ),
        Choice(
            "behind",
            "A task has two inputs. The barrier has arrived on one and not on the other. What does the task do with "
            "records that arrive behind the barrier?",
            (
                Option("It processes them immediately.", lambda what: what == "processed"),
                Option("They wait until the other barrier arrives.", lambda what: what == "blocked"),
                Option("It sends them back.", lambda what: what == "returned"),
            ),
            "They do not belong to the snapshot. If they were processed before it is taken, it would contain them.",
        ),
        Number(
            "careless",
            "Now the task does not wait (at least once). Each source sends the numbers 1 to 8. At the snapshot, 5, 6, 7 and "
            "8 of one source are already in the sums. Then a task fails. The even sum should be 40. What is it?",
            "even sum",
            "The source goes back to the position after 4 and sends 6 and 8 again, which are already in the snapshot.",
            factor=1.0,
        ),
        Choice(
            "interval",
            "You take a snapshot ten times as often. Which rows does the job write in the end?",
            (
                Option("The same rows, whatever the interval.", lambda same: same is True),
                Option("Slightly different ones: each snapshot interrupts the sums.", lambda same: same is False),
            ),
            "Checkpoints do not affect the rows. (With micro-batches, the interval can: see lesson 8.)",
        ),
    ),
    exercises=(
        Exercise(
            "alignment",
            "Write the alignment: a class `Task(channels)` with two methods. `record(channel, n)` adds n to `total` and "
            "returns None. `barrier(channel)` returns None until the barriers of all channels have arrived, and then a "
            "snapshot of the total, a number. A second checkpoint may follow.",
            (
                "Keep the set of channels whose barrier has arrived, and a list of records that have to wait.",
                "`record`: if the channel is in the set, append n to the list; else add it to the total.",
                "`barrier`: add the channel to the set; if it has all channels, copy the total, clear the set, add the "
                "records in the list to the total, clear the list, and return the copy.",
            ),
            JUDGE,
        ),
    ),
)
