"""Lesson 11: SQL on streams (D4, and two features that the documents announce: SQL and patterns)."""

from __future__ import annotations

from typing import Any

from workbench.lessons.checks.highest import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Option


def _once_each(left: dict[str, Any]) -> bool:
    """Whether each result has left once, and not all of them at the same moment."""
    return bool(left["times"] == 1 and len(left["moments"]) > 1)


LESSON = LessonPlan(
    number="11",
    title="SQL and patterns",
    promise="Afterwards you can say when a query over an endless table has an answer, and read its plan.",
    questions=(
        Choice(
            "when",
            "`SELECT auction, COUNT(*) ... GROUP BY auction, window_start, window_end` runs on a stream. When is a row of "
            "the result emitted?",
            (
                Option("With each bid: the count so far.", lambda left: left["times"] > 1),
                Option("Once, when the watermark has passed the end of its window.", _once_each),
                Option(
                    "Once, at the end of the stream.", lambda left: left["times"] == 1 and len(left["moments"]) == 1
                ),
            ),
            "A group in a window becomes complete, and is then final. This is the purpose of event time.",
        ),
        Choice(
            "changes",
            "The same query runs without a window: `SELECT auction, COUNT(*) AS n FROM bid GROUP BY auction`. There are "
            "8 bids for 3 auctions. How many rows does the stream of results have?",
            (
                Option("3: one for each auction.", lambda rows: rows == 3),
                Option("More: a group is never complete, so its row changes.", lambda rows: rows > 3),
                Option("None: without a window there is no answer.", lambda rows: rows == 0),
            ),
            "The result is a table that changes, and the stream is its list of changes: a changelog.",
        ),
    ),
    exercises=(
        Exercise(
            "highest",
            "Write a query over the table `bid` (`auction`, `price`, `ts`): for each auction and each ten minutes (tumbling) "
            "with at least two bids, `auction`, the number of `bids`, and the `highest` price.",
            (
                "`FROM TUMBLE(bid, ts, INTERVAL '10' MINUTE)` gives each row its window.",
                "Group by the auction and `window_start, window_end`.",
                "`HAVING COUNT(*) >= 2` filters groups; `WHERE` would filter rows.",
            ),
            JUDGE,
        ),
    ),
)
