"""Lesson 12: from one machine to a cluster (Spark, history to live, rescaling; E10, F1-13)."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.connectors.tables.table_sink import TableSink
from workbench.lessons.exercises.exercise import Exercise, ViolatedError
from workbench.lessons.exercises.pipelines import PipelineCheck
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

BEGIN_S = 1_800_000_000
STATIONS = ("airport", "castle", "zoo")


def trips(chance: Random, rows: int) -> tuple[pa.Table]:
    """Bicycle trips, slightly out of order."""
    now, found = 0, []
    for _ in range(rows):
        now += chance.choice((5, 40, 130, 290))
        at = max(0, now - chance.choice((0, 0, 50)))
        seconds = chance.choice((20, 59, 60, 61, 400, 900))
        found.append((chance.choice(STATIONS), seconds, chance.randrange(100, 900), chance.random() < 0.4, at))
    return (
        pa.table(
            {
                "station": pa.array([row[0] for row in found], pa.string()),
                "seconds": pa.array([row[1] for row in found], pa.int64()),
                "cents": pa.array([row[2] for row in found], pa.int64()),
                "member": pa.array([row[3] for row in found], pa.bool_()),
                "t": pa.array([(BEGIN_S + row[4]) * 1_000_000 for row in found], pa.timestamp("us", "UTC")),
            }
        ),
    )


def paid(
    table: pa.Table,
    least_s: int = 60,
    window_s: int = 600,
    slide_s: int | None = None,
    *,
    members_pay: bool = False,
    members_ride: bool = True,
) -> list[dict[str, Any]]:
    """The number of trips of at least a minute, and the cents paid for them, by station and ten minutes.

    Args:
        least_s: the shortest trip that counts.
        window_s: the size of the windows.
        slide_s: the time between the beginnings of two windows; None: their size.
        members_pay, members_ride: whether members pay, and whether their trips count.
    """
    slide_us = (slide_s or window_s) * 1_000_000
    groups: dict[tuple[str, int], tuple[int, int]] = {}
    times = table["t"].cast(pa.int64()).to_pylist()
    for row, at in zip(table.to_pylist(), times, strict=True):
        if row["seconds"] < least_s or (row["member"] and not members_ride):
            continue
        free = row["member"] and not members_pay
        last = at - at % slide_us
        for begin in range(last, last - window_s * 1_000_000, -slide_us):
            trips, cents = groups.get((row["station"], begin), (0, 0))
            groups[row["station"], begin] = trips + 1, cents + (0 if free else row["cents"])
    return [
        {"station": station, "window_start": datetime.fromtimestamp(at / 1e6, UTC), "trips": trips, "paid": cents}
        for (station, at), (trips, cents) in groups.items()
    ]


def stream(table: pa.Table) -> Stream:
    """The trips as a stream."""
    return Stream.from_table(table, event_time="t", out_of_orderness="1min").with_parallelism(1)


CHECK = PipelineCheck(
    trips,
    lambda table: (stream(table),),
    paid,
    keys=("station", "window_start"),
    lookalikes=(
        (lambda table: paid(table, least_s=0), "Trips of less than a minute are included."),
        (lambda table: paid(table, least_s=61), "A trip of exactly 60 seconds counts."),
        (lambda table: paid(table, members_pay=True), "Members pay nothing."),
        (lambda table: paid(table, members_ride=False), "The trips of members count, although members pay nothing."),
        (lambda table: paid(table, window_s=300), "Your windows have five minutes."),
        (lambda table: paid(table, window_s=3600), "Your windows have an hour."),
        (lambda table: paid(table, slide_s=300), "These windows overlap: each trip counts in two of them."),
    ),
)


def judge(answer: Any, seed: int) -> str:
    """Judge the rows of an answer, then its plan on Spark."""
    told = CHECK(answer, seed)
    plan = answer(stream(*trips(Random(seed), 6))).sink_to(TableSink("revenue")).explain(engine="spark")
    for operator in plan.operators:
        if operator.tier != "native" and not operator.reason.startswith("native by itself"):
            raise ViolatedError(
                "a program that can move",
                f"the rows are right, but on Spark {operator.operator!r} is {operator.tier}: {operator.reason}. "
                "Expressions and one window are enough.",
            )
    return f"{told} On Spark all operators are native."


LESSON = LessonPlan(
    number="12",
    title="From one machine to a cluster",
    promise="Afterwards you can say what stays the same when a program moves, catches up and grows, and design your own.",
    questions=(
        Choice(
            "tiers",
            "A pipeline has a source, a filter, a window and a sink; only the session window is not native. How many of "
            "the four run as Spark's own operators?",
            (
                Option("Three: all but the window.", lambda native: native == 3),
                Option("Two: the source and the filter, which come before the window.", lambda native: native == 2),
                Option("None.", lambda native: native == 0),
            ),
            "One query cannot combine Spark's event time with the workbench's. So all operators are carried.",
        ),
        Choice(
            "seam",
            "The history ends at 8:35, and live data continues from there. How many rows does a station have for the "
            "window from 8:30 to 8:40?",
            (
                Option("Two: one from the history, and one from the live data.", lambda rows: rows == 2),
                Option("One, with all trips of the window.", lambda rows: rows == 1),
                Option("None: the window is cut in two.", lambda rows: rows == 0),
            ),
            "State and watermarks continue from one source to the other. For the program, it is one stream.",
        ),
        Number(
            "minutes",
            "A job reads 35 minutes of history, then 25 minutes of live data. How many minutes does the run take?",
            "minutes",
            "The past is read as fast as the machine can. The present takes its time.",
            factor=1.1,
        ),
        Number(
            "hot",
            "In the second city 70 % of the trips begin at the airport. Of eight subtasks, what percentage of all "
            "records does the busiest one receive?",
            "percent",
            "All records of a key go to one subtask, however many subtasks there are.",
            factor=1.1,
        ),
    ),
    exercises=(
        Exercise(
            "move",
            "Write `revenue(trips)`: for each `station` and each ten minutes (tumbling, with `window_start`), the number "
            "of `trips` of at least 60 seconds, and the cents `paid`, where a `member` pays nothing. On Spark all of it is "
            "native.",
            (
                "`print(revenue(stream).sink_to(wb.TableSink('x')).explain(engine='spark'))` says what is not native, and why.",
                "You need a filter and a column, both as expressions, then a key, a window, and two aggregates.",
                "The column is `CASE WHEN member THEN 0 ELSE cents END`; its sum is `paid`.",
            ),
            judge,
        ),
    ),
)
