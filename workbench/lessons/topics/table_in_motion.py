"""Lesson 1: a stream is a table in motion (F1-1 to F1-5, F2-1, F2-2)."""

from __future__ import annotations

from workbench.lessons.checks.hashtags import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

LESSON = LessonPlan(
    number="01",
    title="A table in motion",
    promise="Afterwards you can say what a stream and a dataflow graph are, and what runs when you start one.",
    questions=(
        Choice(
            "same",
            "The same query counts records per key over a table, and over the same rows as a stream. When the stream "
            "has ended, how do its last counts of each key compare with the table's?",
            (
                Option("They are the same.", lambda equal: equal is True),
                Option("They are smaller: a stream sees each record only once.", lambda equal: equal == "smaller"),
                Option("They depend on the order of the rows.", lambda equal: equal is False),
            ),
            "A bounded table is a stream that ends. Counting does not depend on the order, so both agree.",
        ),
        Number(
            "channels",
            "Two parallel sources send to two parallel counts, by key. How many channels connect them?",
            "channels",
            "Every sender may have a record for every receiver: 2 x 2. At a parallelism of 100, there are 10,000.",
            factor=1.0,
        ),
        Choice(
            "task-dies",
            "A TaskManager is a process with slots. It dies. What dies with it?",
            (
                Option("Only the task that was running at that moment.", lambda tasks: tasks == 1),
                Option("All tasks in its slots.", lambda tasks: 1 < tasks < 6),
                Option("The whole job, for good.", lambda tasks: tasks >= 6),
            ),
            "Slots share the fate of their process. The tasks restart, here or elsewhere, from the last checkpoint.",
        ),
    ),
    exercises=(
        Exercise(
            "hashtags",
            "Write `hashtags(posts)`: from a stream of posts with a column `text`, make a stream with the columns `tag` "
            "and `n` that counts every occurrence of each word that begins with `#`.",
            (
                "One post becomes several records: which operator can do that? `filter` and `map` cannot.",
                "`posts.flat_map(function, schema)` calls the function with a record and emits the records that it returns.",
                "Split the text at spaces, keep the words that begin with `#`, and return one record for each. Then "
                "`key_by` the tag, and `aggregate(n=wb.count())`.",
            ),
            JUDGE,
        ),
    ),
)
