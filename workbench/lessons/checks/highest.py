"""Exercise `highest` of lesson 11: what is special is a bid at the end of a window, equal bids, and the price 0."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Judge, MissingAnswerError, ViolatedError
from workbench.lessons.exercises.pipelines import PipelineCheck
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


def _bids(*found: tuple[float, int, int]) -> tuple[pa.Table]:
    """Bids in the order in which they arrive: seconds since 1970, auction, price."""
    return (
        pa.table(
            {
                "auction": [auction for _, auction, _ in found],
                "price": [price for *_, price in found],
                "ts": pa.array([round(at * 1_000_000) for at, *_ in found], pa.timestamp("us", "UTC")),
            }
        ),
    )


_SPECIAL = (
    (0, 1, 30),  # at the beginning of a window
    (10, 2, 0),
    (10, 2, 0),  # the same again, and the price is 0
    (30, 0, 7),  # the auction 0
    (40, 0, 7),  # as much again
    (50, 3, 9),  # one bid
    (60, 4, -5),
    (70, 4, -3),  # below 0
    (599.999, 1, 10),  # at the end of the window
    (600, 3, 9),  # at the beginning of the next one
    (660, 5, 1),
    (600, 5, 3),  # a minute late
    (661, 5, 2),
    (1_199.999, 3, 8),
    (1_200, 1, 30),  # again 30 and 10, in another window
    (1_260, 1, 10),
    (1_300, 6, 4),
    (1_799.999, 6, 2),
    (1_800, 6, 9),
    (1_750, 6, 11),
    (1_751, 6, 4_000),  # the fourth one, and a high one
)
EDGES = (_bids(*_SPECIAL), _bids(*((130 * n, n % 2, 10 + n * 7 % 5) for n in range(24))))


def highest(
    table: pa.Table, least: int = 2, best: Any = max, size_us: int = 10 * MINUTE_US, slide_us: int | None = None
) -> list[dict[str, Any]]:
    """The highest bid and the number of bids of each auction in windows of ten minutes with at least two bids.

    Args:
        least: the bids that a group needs.
        best: which bid is wanted.
        size_us: of the windows, in microseconds.
        slide_us: the time between the beginnings of two windows; None: their size.
    """
    slide_us = slide_us or size_us
    groups: dict[tuple[int, int], list[int]] = {}
    times = table["ts"].cast(pa.int64()).to_pylist()
    for at, auction, price in zip(times, table["auction"].to_pylist(), table["price"].to_pylist(), strict=True):
        last = at // slide_us
        for window in range(last - size_us // slide_us + 1, last + 1):
            groups.setdefault((auction, window), []).append(price)
    return [
        {"auction": auction, "bids": len(prices), "highest": best(prices)}
        for (auction, _), prices in groups.items()
        if len(prices) >= least
    ]


CHECK = PipelineCheck(
    EDGES,
    bids,
    lambda table: (Stream.from_table(table, event_time="ts", out_of_orderness="1min").with_parallelism(1),),
    highest,
    keys=("auction", "bids"),
    lookalikes=(
        (lambda table: highest(table, least=1), "Auctions with only one bid are included: `HAVING` filters groups."),
        (lambda table: highest(table, least=3), "Two bids are enough."),
        (
            lambda table: highest(table, slide_us=5 * MINUTE_US),
            "These windows overlap: each bid counts in two of them.",
        ),
        (lambda table: highest(table, best=min), "This is the lowest bid."),
        (lambda table: highest(table, best=sum), "This is the sum of the bids."),
    ),
    families=(
        (
            lambda size_us: partial(highest, size_us=size_us),
            "Your windows have {} instead of ten minutes.",
        ),
    ),
)


def judge(answer: Any, seed: int | None) -> str:
    """Judge the text of a query."""
    if answer is ... or answer is None or (isinstance(answer, str) and not answer.strip(" .\n")):
        raise MissingAnswerError("there is no query yet")
    if not isinstance(answer, str):
        raise ViolatedError("a query", f"the answer is {type(answer).__name__}: write the query as text")
    if "select" not in answer.lower():
        raise ViolatedError("a query", f"{answer.strip()!r} is not a query: begin with SELECT")
    return CHECK(lambda bid: sql(answer, bid=bid), seed)


JUDGE: Judge = judge
