"""Exercise `move` of lesson 12: what is special is a trip of exactly a minute, one at the end of a window, and members
alone at a station."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.connectors.tables.table_sink import TableSink
from workbench.lessons.exercises.exercise import Judge, ViolatedError
from workbench.lessons.exercises.pipelines import PipelineCheck

BEGIN_S = 1_800_000_000
STATIONS = ("airport", "castle", "zoo")


_Trip = tuple[str, int, int, bool, float]
"""Station, seconds, cents, member, and when it began, in seconds."""


def _table(found: Sequence[_Trip]) -> tuple[pa.Table]:
    return (
        pa.table(
            {
                "station": pa.array([row[0] for row in found], pa.string()),
                "seconds": pa.array([row[1] for row in found], pa.int64()),
                "cents": pa.array([row[2] for row in found], pa.int64()),
                "member": pa.array([row[3] for row in found], pa.bool_()),
                "t": pa.array([round((BEGIN_S + row[4]) * 1_000_000) for row in found], pa.timestamp("us", "UTC")),
            }
        ),
    )


_SPECIAL = (
    ("zoo", 60, 300, False, 0),  # exactly a minute
    ("zoo", 59, 400, False, 10),
    ("castle", 61, 200, True, 20),  # members only
    ("castle", 900, 250, True, 30),
    ("", 100, 0, False, 40),  # a station without a name, a trip without a price
    ("airport", 10, 500, False, 50),  # short trips only
    ("airport", 0, 500, True, 55),
    ("zoo", 3_600, 700, True, 599.999),  # at the end of the window
    ("zoo", 60, 100, False, 600),  # at the beginning of the next one
    ("zoo", 600, 800, False, 660),
    ("zoo", 600, 900, False, 600),  # a minute late
    ("once", 120, 150, False, 1_199.999),
    ("zoo", 60, 300, False, 1_200),
    ("zoo", 60, 300, False, 1_200),  # the same again
    ("castle", 70, 80, False, 1_250),
)
EDGES = (
    _table(_SPECIAL),
    _table([(STATIONS[n % 2], 50 + 10 * (n % 4), 100 + n, n % 3 == 0, 130 * n) for n in range(24)]),
)


def trips(chance: Random, rows: int) -> tuple[pa.Table]:
    """Bicycle trips, slightly out of order."""
    now, found = 0, []
    for _ in range(rows):
        now += chance.choice((5, 40, 130, 290))
        at = max(0, now - chance.choice((0, 0, 50)))
        seconds = chance.choice((20, 59, 60, 61, 400, 900))
        found.append((chance.choice(STATIONS), seconds, chance.randrange(100, 900), chance.random() < 0.4, at))
    return _table(found)


def paid(
    table: pa.Table,
    least_s: int = 60,
    window_us: int = 600_000_000,
    slide_us: int | None = None,
    *,
    members_pay: bool = False,
    members_ride: bool = True,
) -> list[dict[str, Any]]:
    """The number of trips of at least a minute, and the cents paid for them, by station and ten minutes.

    Args:
        least_s: the shortest trip that counts.
        window_us: the size of the windows, in microseconds.
        slide_us: the time between the beginnings of two windows; None: their size.
        members_pay, members_ride: whether members pay, and whether their trips count.
    """
    slide_us = slide_us or window_us
    groups: dict[tuple[str, int], tuple[int, int]] = {}
    times = table["t"].cast(pa.int64()).to_pylist()
    for row, at in zip(table.to_pylist(), times, strict=True):
        if row["seconds"] < least_s or (row["member"] and not members_ride):
            continue
        free = row["member"] and not members_pay
        last = at - at % slide_us
        for begin in range(last, last - window_us, -slide_us):
            trips, cents = groups.get((row["station"], begin), (0, 0))
            groups[row["station"], begin] = trips + 1, cents + (0 if free else row["cents"])
    return [
        {"station": station, "window_start": datetime.fromtimestamp(at / 1e6, UTC), "trips": trips, "paid": cents}
        for (station, at), (trips, cents) in groups.items()
    ]


def _null_for_nothing(table: pa.Table) -> list[dict[str, Any]]:
    """As if the trips of members had no price, instead of the price 0."""
    paying = paid(table, members_ride=False)
    keys = {(row["station"], row["window_start"]) for row in paying}
    return [row if (row["station"], row["window_start"]) in keys else {**row, "paid": None} for row in paid(table)]


def stream(table: pa.Table) -> Stream:
    """The trips as a stream."""
    return Stream.from_table(table, event_time="t", out_of_orderness="1min").with_parallelism(1)


CHECK = PipelineCheck(
    EDGES,
    trips,
    lambda table: (stream(table),),
    paid,
    keys=("station", "window_start"),
    lookalikes=(
        (lambda table: paid(table, least_s=0), "Trips of less than a minute are included."),
        (lambda table: paid(table, least_s=61), "A trip of exactly 60 seconds counts."),
        (lambda table: paid(table, members_pay=True), "Members pay nothing."),
        (_null_for_nothing, "Where only members ride, 0 cents are paid; a sum over nothing but nulls is null."),
        (lambda table: paid(table, members_ride=False), "The trips of members count, although members pay nothing."),
        (lambda table: paid(table, slide_us=300_000_000), "These windows overlap: each trip counts in two of them."),
    ),
    families=((lambda size_us: partial(paid, window_us=size_us), "Your windows have {} instead of ten minutes."),),
)


def judge(answer: Any, seed: int | None) -> str:
    """Judge the rows of an answer, then its plan on Spark."""
    told = CHECK(answer, seed)
    plan = answer(stream(*EDGES[0])).sink_to(TableSink("revenue")).explain(engine="spark")
    for operator in plan.operators:
        if operator.tier != "native" and not operator.reason.startswith("native by itself"):
            raise ViolatedError(
                "a program that can move",
                f"the rows are right, but on Spark {operator.operator!r} is {operator.tier}: {operator.reason}. "
                "Expressions and one window are enough.",
            )
    return f"{told} On Spark all operators are native."


JUDGE: Judge = judge
