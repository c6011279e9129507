"""Lesson 10: joins and asking services (E6, windowed, interval and lookup joins)."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.pipelines import PipelineCheck
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

MINUTE_S = 60


def views_and_buys(chance: Random, rows: int) -> tuple[pa.Table, pa.Table]:
    """Views of items, and purchases some time after some of them; numbered."""
    now, views, buys = 0, [], []
    for number in range(rows):
        now += chance.choice((5, 30, 100, 240))
        user, item = chance.choice(("ann", "bob")), chance.choice(("pen", "cup"))
        views.append((user, item, number, now))
        if chance.random() < 0.7:
            after = chance.choice((-120, 0, 60, 540, 600, 601, 900, 1500))
            buys.append((user, item, number, max(0, now + after)))
    buys.sort(key=lambda row: row[3])
    return _table(views, "view"), _table(buys, "buy")


def _table(rows: list[tuple[str, str, int, int]], number: str) -> pa.Table:
    return pa.table(
        {
            "user": pa.array([row[0] for row in rows], pa.string()),
            "item": pa.array([row[1] for row in rows], pa.string()),
            number: pa.array([row[2] for row in rows], pa.int64()),
            "at": pa.array([row[3] * 1_000_000 for row in rows], pa.timestamp("us", "UTC")),
        }
    )


def matched(
    views: pa.Table,
    buys: pa.Table,
    low_s: float = 0,
    high_s: float = 10 * MINUTE_S,
    on: tuple[str, ...] = ("user", "item"),
) -> list[dict[str, Any]]:
    """Pairs of a view and a purchase within some time after it."""
    pairs = []
    for view in views.to_pylist():
        for buy in buys.to_pylist():
            apart = (buy["at"] - view["at"]).total_seconds()
            if all(view[name] == buy[name] for name in on) and low_s <= apart <= high_s:
                pairs.append({"view": view["view"], "buy": buy["buy"], "user": view["user"]})
    return pairs


def _same_window(views: pa.Table, buys: pa.Table, minutes: int = 10) -> list[dict[str, Any]]:
    """Pairs whose two events are in the same window."""
    at = {row["view"]: row["at"] for row in views.to_pylist()}, {row["buy"]: row["at"] for row in buys.to_pylist()}
    windows = [{n: time.timestamp() // (60 * minutes) for n, time in times.items()} for times in at]
    pairs = matched(views, buys, -60 * minutes, 60 * minutes)
    return [pair for pair in pairs if windows[0][pair["view"]] == windows[1][pair["buy"]]]


def _with_rest(views: pa.Table, buys: pa.Table) -> list[dict[str, Any]]:
    """The pairs, and the views without a purchase."""
    pairs = matched(views, buys)
    found = {pair["view"] for pair in pairs}
    rest = [row for row in views.to_pylist() if row["view"] not in found]
    return pairs + [{"view": row["view"], "buy": None, "user": row["user"]} for row in rest]


LESSON = LessonPlan(
    number="10",
    title="Joins, and asking services",
    promise="Afterwards you can join two streams, and say what each kind of join has to remember.",
    questions=(
        Number(
            "window-join",
            "A view happens at minute 9, and the purchase at minute 11. They are joined if they are in the same window of "
            "ten minutes. How many pairs are found?",
            "pairs",
            "One window ends at minute 10, between the two. Events that belong together do not respect the limits of "
            "windows.",
            factor=1.0,
        ),
        Choice(
            "state",
            "A join waits for purchases until ten minutes after a view. How long is a view remembered?",
            (
                Option("Forever: the purchase may be late.", lambda rows: rows > 20),
                Option("Until the watermark is ten minutes past the view.", lambda rows: 0 < rows <= 20),
                Option("Until its first purchase arrives.", lambda rows: rows == 0),
            ),
            "The bound on event time keeps the state of a join of endless streams finite.",
        ),
        Choice(
            "service",
            "A service needs 20 ms for an answer. A stream has 400 records with 40 different keys, and the answer for a key "
            "is kept. Roughly how long do the requests take, with 16 at a time?",
            (
                Option("8 s: 400 times 20 ms.", lambda ms: ms > 1_000),
                Option("Between 50 ms and a second: 40 keys, 16 at a time.", lambda ms: 50 <= ms <= 1_000),
                Option("20 ms.", lambda ms: ms < 50),
            ),
            "Keep the answer for each key, and do not wait for an answer before the next request.",
        ),
    ),
    exercises=(
        Exercise(
            "matched",
            "Write `matched(views, buys)`: from views (`user`, `item`, `view`, `at`) and purchases (`user`, `item`, `buy`, "
            "`at`) make a row for each purchase of the same user and item up to ten minutes after the view, with at least "
            "`view`, `buy` and `user`.",
            (
                "Which of the joins does not cut time into windows?",
                "`views.join(buys, on=[...], between=(...))`: the bounds say when the right record may happen.",
                "The keys are user and item; the purchase happens between 0 and 10 minutes after the view.",
            ),
            PipelineCheck(
                views_and_buys,
                lambda views, buys: (
                    Stream.from_table(views, event_time="at", out_of_orderness="1min").with_parallelism(1),
                    Stream.from_table(buys, event_time="at", out_of_orderness="1min").with_parallelism(1),
                ),
                matched,
                keys=("view", "buy"),
                lookalikes=(
                    (lambda v, b: matched(v, b, -600, 600), "Purchases before the view are included."),
                    (lambda v, b: matched(v, b, -600, 0), "These purchases happened before the view."),
                    (lambda v, b: matched(v, b, 0, 300), "Your bound is only five minutes."),
                    (
                        _same_window,
                        "These pairs are in the same window of ten minutes: the time between two events counts instead.",
                    ),
                    (
                        lambda v, b: _same_window(v, b, 60),
                        "These pairs are in the same window of an hour: the time between two events counts instead.",
                    ),
                    (_with_rest, "Views without a purchase are included."),
                    (lambda v, b: matched(v, b, 0, 1200), "Your bound is twenty minutes."),
                    (lambda v, b: matched(v, b, 0, 3600), "Your bound is an hour."),
                    (lambda v, b: matched(v, b, on=("user",)), "Some purchases are of a different item."),
                    (lambda v, b: matched(v, b, on=("item",)), "Some purchases are by a different user."),
                    (lambda v, b: matched(v, b, 0.001), "A purchase at exactly the time of the view counts, too."),
                    (lambda v, b: matched(v, b, 0, 599.9), "A purchase after exactly ten minutes counts, too."),
                ),
            ),
        ),
    ),
)
