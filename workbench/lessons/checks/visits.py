"""Exercise `visits` of lesson 3: what is special is a silence of exactly ten minutes, and a late click between two
visits."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Judge
from workbench.lessons.exercises.pipelines import PipelineCheck

GAP_US = 600_000_000
SECOND_US = 1_000_000


def visits(chance: Random, rows: int) -> tuple[pa.Table]:
    """Clicks of a few users, slightly out of order; some follow the previous one after exactly ten minutes."""
    users, at = ("ann", "bob", "cleo"), dict.fromkeys(("ann", "bob", "cleo"), 0)
    clicks = []
    for _ in range(rows):
        user = chance.choice(users)
        at[user] += chance.choice((20, 90, 240, 599, 600, 601, 1500)) * SECOND_US
        clicks.append((at[user], user))
    clicks.sort()
    for first in range(0, len(clicks) - 1, 3):
        if clicks[first + 1][0] - clicks[first][0] < 120 * SECOND_US:
            clicks[first], clicks[first + 1] = clicks[first + 1], clicks[first]
    return (
        pa.table(
            {
                "user": [user for _, user in clicks],
                "at": pa.array([time for time, _ in clicks], pa.timestamp("us", "UTC")),
            }
        ),
    )


def _clicks(*found: tuple[str, float]) -> tuple[pa.Table]:
    """Clicks in the order in which they arrive: user, and seconds since 1970."""
    return (
        pa.table(
            {
                "user": [user for user, _ in found],
                "at": pa.array([round(at * SECOND_US) for _, at in found], pa.timestamp("us", "UTC")),
            }
        ),
    )


_SPECIAL = (
    ("ann", 0),  # at the time that is 0
    ("bob", 100),
    ("ann", 600),  # after exactly ten minutes
    ("bob", 700.001),  # after a millisecond more
    ("ann", 601),
    ("", 650),  # a user without a name
    ("ann", 1_201.001),
    ("Bob", 1_250),  # another user than bob; one click
    ("bob", 1_300.001),
    ("ann", 1_202),
    ("gap", 1_400),
    ("gap", 2_119.999),  # another visit, until the next click joins the two
    ("gap", 1_999.999),  # exactly two minutes late, as the first visit is about to end
    ("ann", 2_000),
    ("twice", 2_100),
    ("twice", 2_100),  # at the same time
    ("ann", 3_600),
    ("day", 4_000),
    ("day", 4_000 + 86_400 + 300),  # a day and five minutes later
    ("ann", 90_750),
)
EDGES = (
    _clicks(*_SPECIAL),
    _clicks(
        *((user, 500 * n + later) for n in range(14) for user, later in (("ann", 0), ("bob", 100 + 100 * (n % 3))))
    ),
)


def visits_of(table: pa.Table, gap_us: int = GAP_US, *, strict: bool = False) -> list[dict[str, Any]]:
    """The visits: a user's clicks that are at most the gap apart (`strict`: less than the gap)."""
    found: list[dict[str, Any]] = []
    times = table["at"].cast(pa.int64()).to_pylist()
    last: dict[str, tuple[int, dict[str, Any]]] = {}
    for time, user in sorted(zip(times, table["user"].to_pylist(), strict=True)):
        before = last.get(user)
        if before is None or time - before[0] > gap_us or (time - before[0] == gap_us and strict):
            found.append({"user": user, "clicks": 0})
            last[user] = (time, found[-1])
        visit = last[user][1]
        visit["clicks"] += 1
        last[user] = (time, visit)
    return found


def _together(table: pa.Table) -> list[dict[str, Any]]:
    alone = pa.table({"user": ["all"] * len(table), "at": table["at"]})
    return [{"user": visit["user"], "clicks": visit["clicks"]} for visit in visits_of(alone)]


def _totals(table: pa.Table) -> list[dict[str, Any]]:
    users = table["user"].to_pylist()
    return [{"user": user, "clicks": users.count(user)} for user in sorted(set(users))]


def _by_the_clock(table: pa.Table, slide_us: int = GAP_US) -> list[dict[str, Any]]:
    """The clicks of each user in windows of ten minutes of event time."""
    times = table["at"].cast(pa.int64()).to_pylist()
    found: Counter[tuple[str, int]] = Counter()
    for time, user in zip(times, table["user"].to_pylist(), strict=True):
        last = time // slide_us * slide_us
        found.update((user, last - back) for back in range(0, GAP_US, slide_us))
    return [{"user": user, "clicks": clicks} for (user, _), clicks in found.items()]


def _pairs(table: pa.Table) -> list[dict[str, Any]]:
    return [{"user": row["user"], "clicks": 2} for row in _totals(table) for _ in range(row["clicks"] // 2)]


def _ones(table: pa.Table) -> list[dict[str, Any]]:
    return [{**visit, "clicks": 1} for visit in visits_of(table)]


JUDGE: Judge = PipelineCheck(
    EDGES,
    visits,
    lambda table: (Stream.from_table(table, event_time="at", out_of_orderness="2min", rate=1).with_parallelism(1),),
    visits_of,
    keys=("user",),
    settings={"parallelism": 1},  # as the rate: whoever gives stragglers less time loses them
    lookalikes=(
        (_totals, "This is one number for each user: where does a visit end?"),
        (
            lambda table: visits_of(table, strict=True),
            "A click after exactly ten minutes still belongs to the visit.",
        ),
        (_by_the_clock, "Your windows have ten minutes, whether users are silent or not."),
        (
            lambda table: _by_the_clock(table, GAP_US // 2),
            "These windows overlap: each click counts in two of them.",
        ),
        (_pairs, "These windows end after two clicks. A visit ends with silence."),
        (_ones, "Your visits have only one click."),
    ),
    families=(
        (
            lambda gap_us: partial(visits_of, gap_us=gap_us),
            "Your visits end after {} of silence; a visit ends after more than ten minutes, which are 600 s.",
        ),
    ),
)
