"""Lesson 11: SQL on streams (D4, and two features that the documents announce: SQL and patterns)."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Exercise, Judge, MissingAnswerError, ViolatedError
from workbench.lessons.exercises.pipelines import PipelineCheck
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Option
from workbench.queries import sql

MINUTE_US = 60_000_000


def bids(chance: Random, rows: int) -> tuple[pa.Table]:
    """Bids for a few auctions, slightly out of order."""
    now, found = 0, []
    for _ in range(rows):
        now += chance.choice((10, 60, 150, 300))
        found.append((now - chance.choice((0, 0, 40)), chance.randrange(1, 4), chance.randrange(5, 90)))
    return (
        pa.table(
            {
                "auction": [auction for _, auction, _ in found],
                "price": [price for *_, price in found],
                "ts": pa.array([max(at, 0) * 1_000_000 for at, *_ in found], pa.timestamp("us", "UTC")),
            }
        ),
    )


def highest(
    table: pa.Table, minutes: int = 10, least: int = 2, best: Any = max, slide: int | None = None
) -> list[dict[str, Any]]:
    """The highest bid and the number of bids of each auction in windows of ten minutes with at least two bids.

    Args:
        minutes: the size of the windows.
        least: the bids that a group needs.
        best: which bid is wanted.
        slide: the minutes between the beginnings of two windows; None: their size.
    """
    slide = slide or minutes
    groups: dict[tuple[int, int], list[int]] = {}
    times = table["ts"].cast(pa.int64()).to_pylist()
    for at, auction, price in zip(times, table["auction"].to_pylist(), table["price"].to_pylist(), strict=True):
        last = at // (slide * MINUTE_US)
        for window in range(last - minutes // slide + 1, last + 1):
            groups.setdefault((auction, window), []).append(price)
    return [
        {"auction": auction, "bids": len(prices), "highest": best(prices)}
        for (auction, _), prices in groups.items()
        if len(prices) >= least
    ]


CHECK = PipelineCheck(
    bids,
    lambda table: (Stream.from_table(table, event_time="ts", out_of_orderness="1min").with_parallelism(1),),
    highest,
    keys=("auction", "bids"),
    lookalikes=(
        (lambda table: highest(table, least=1), "Auctions with only one bid are included: `HAVING` filters groups."),
        (lambda table: highest(table, least=3), "Two bids are enough."),
        (lambda table: highest(table, minutes=5), "Your windows have five minutes."),
        (lambda table: highest(table, minutes=20), "Your windows have twenty minutes."),
        (lambda table: highest(table, minutes=60), "Your windows have an hour."),
        (lambda table: highest(table, slide=5), "These windows overlap: each bid counts in two of them."),
        (lambda table: highest(table, best=min), "This is the lowest bid."),
        (lambda table: highest(table, best=sum), "This is the sum of the bids."),
    ),
)


def judge(answer: Any, seed: int) -> str:
    """Judge the text of a query."""
    if answer is ... or answer is None or (isinstance(answer, str) and not answer.strip(" .\n")):
        raise MissingAnswerError("there is no query yet")
    if not isinstance(answer, str):
        raise ViolatedError("a query", f"the answer is {type(answer).__name__}: write the query as text")
    if "select" not in answer.lower():
        raise ViolatedError("a query", f"{answer.strip()!r} is not a query: begin with SELECT")
    return CHECK(lambda bid: sql(answer, bid=bid), seed)


def _once_each(left: dict[str, Any]) -> bool:
    """Whether each result has left once, and not all of them at the same moment."""
    return bool(left["times"] == 1 and len(left["moments"]) > 1)


JUDGE: Judge = judge

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
