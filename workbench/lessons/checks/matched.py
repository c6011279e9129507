"""Exercise `matched` of lesson 10: what is special is a purchase at the time of the view, and one after exactly
ten minutes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Judge
from workbench.lessons.exercises.pipelines import PipelineCheck

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


_SPECIAL = (
    [
        ("ann", "pen", 0, 0.0),  # the number 0, at the time 0
        ("ann", "cup", 1, 10.0),
        ("bob", "pen", 2, 20.0),
        ("bob", "pen", 3, 30.0),  # two views before one purchase
        ("", "", 4, 40.0),
        ("cleo", "cup", 5, 500.0),
        ("ann", "pen", 6, 440.0),  # a minute late
        ("dan", "cup", 7, 900.0),  # no purchase
        ("cleo", "pen", 8, 1_500.0),
        ("ann", "cup", 9, 1_500.0),
    ],
    [
        ("ann", "pen", 0, 0.0),  # at the time of the view
        ("bob", "pen", 1, 19.999),  # before both views
        ("", "", 2, 40.0),
        ("bob", "pen", 3, 31.0),
        ("ann", "pen", 4, 600.0),  # after exactly ten minutes
        ("ann", "cup", 5, 610.001),  # after a millisecond more
        ("cleo", "pen", 7, 560.0),  # another item
        ("bob", "cup", 8, 560.0),  # another user
        ("ann", "pen", 6, 550.001),  # a minute late, when views are far ahead
        ("ann", "pen", 9, 1_040.001),
        ("cleo", "cup", 10, 1_100.0),
        ("ann", "cup", 11, 1_499.999),  # before the view
        ("cleo", "pen", 12, 2_100.0),
        ("cleo", "pen", 13, 2_100.0),  # two purchases after one view
        ("ann", "cup", 14, 2_101.0),
    ],
)


def _table(rows: Sequence[tuple[str, str, int, float]], number: str) -> pa.Table:
    return pa.table(
        {
            "user": pa.array([row[0] for row in rows], pa.string()),
            "item": pa.array([row[1] for row in rows], pa.string()),
            number: pa.array([row[2] for row in rows], pa.int64()),
            "at": pa.array([round(row[3] * 1_000_000) for row in rows], pa.timestamp("us", "UTC")),
        }
    )


EDGES = (
    (_table(_SPECIAL[0], "view"), _table(_SPECIAL[1], "buy")),
    (
        _table([("ann", "pen", n, 120.0 * n) for n in range(14)], "view"),
        _table([("ann", "pen", n, 150.0 * n) for n in range(14)], "buy"),
    ),
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


JUDGE: Judge = PipelineCheck(
    EDGES,
    views_and_buys,
    lambda views, buys: (
        Stream.from_table(views, event_time="at", out_of_orderness="1min", rate=1).with_parallelism(1),
        Stream.from_table(buys, event_time="at", out_of_orderness="1min", rate=1).with_parallelism(1),
    ),
    matched,
    keys=("view", "buy"),
    settings={"parallelism": 1},  # as the rate: whoever gives stragglers less time loses them
    lookalikes=(
        (lambda v, b: matched(v, b, -600, 600), "Purchases before the view are included."),
        (lambda v, b: matched(v, b, -600, 0), "These purchases happened before the view."),
        (
            _same_window,
            "These pairs are in the same window of ten minutes: the time between two events counts instead.",
        ),
        (
            lambda v, b: _same_window(v, b, 60),
            "These pairs are in the same window of an hour: the time between two events counts instead.",
        ),
        (_with_rest, "Views without a purchase are included."),
        (lambda v, b: matched(v, b, on=("user",)), "Some purchases are of a different item."),
        (lambda v, b: matched(v, b, on=("item",)), "Some purchases are by a different user."),
        (lambda v, b: matched(v, b, 0.001), "A purchase at exactly the time of the view counts, too."),
        (lambda v, b: matched(v, b, 0, 599.9), "A purchase after exactly ten minutes counts, too."),
    ),
    families=(
        (
            lambda bound_us: lambda v, b: matched(v, b, 0, bound_us / 1e6),
            "Your bound is {}; a purchase counts up to ten minutes after the view.",
        ),
        (
            lambda bound_us: lambda v, b: matched(v, b, bound_us / 1e6),
            "Your lower bound is {}; a purchase counts from the time of the view on.",
        ),
        (
            lambda bound_us: lambda v, b: matched(v, b, -bound_us / 1e6),
            "A purchase up to {} before the view counts in your program.",
        ),
    ),
)
