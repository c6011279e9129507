"""Lesson 3: windows (F1-4 to F1-10, assigner, trigger, evictor, holistic aggregates)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.pipelines import PipelineCheck
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

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


LESSON = LessonPlan(
    number="03",
    title="Windows",
    promise="Afterwards you can cut an endless stream into the finite pieces that your question needs.",
    questions=(
        Number(
            "sliding",
            "A count window of length 4 slides by 3, over the numbers 1 to 10. In how many windows is the number 4?",
            "windows",
            "The windows are 1 to 4, 4 to 7 and 7 to 10: where they overlap, a record counts in both.",
            factor=1.0,
        ),
        Choice(
            "sessions",
            "Clicks at seconds 0, 2, 3, 9, 10 and 20; a session ends after a gap of 5 seconds. How many are there?",
            (
                Option("2", lambda n: n == 2),
                Option("3", lambda n: n == 3),
                Option("6", lambda n: n == 6),
            ),
            "A session lasts until 5 seconds after its last click: the first until second 8, so the click at 9 begins another "
            "one, which lasts until 15.",
        ),
        Choice(
            "colours",
            "There are count windows of two records for each colour. Red, blue, blue, red, red arrive. How many windows "
            "are complete?",
            (
                Option("One: the first two records, red and blue, do not match.", lambda n: n == 1),
                Option("Two: one red, one blue.", lambda n: n == 2),
                Option("Two and a half.", lambda n: n > 2),
            ),
            "Each key has its own windows. The third red record waits for a fourth.",
        ),
        Choice(
            "median",
            "A window keeps a sum and a count, two numbers, however many records arrive. What does it need for a median?",
            (
                Option("Two numbers.", lambda state: state == "stays"),
                Option("All values in the window.", lambda state: state == "grows"),
            ),
            "A median is a holistic aggregate: no summary of limited size is enough to compute it exactly.",
        ),
    ),
    exercises=(
        Exercise(
            "visits",
            "Write `visits(clicks)`: from clicks with the columns `user` and `at` (event time), make one row for each "
            "visit, with `user` and `clicks`. A visit of a user ends when the user is silent for more than ten "
            "minutes.",
            (
                "Which of the windows of this lesson ends with silence?",
                "Each user is silent at different times: start with `key_by`.",
                "`clicks.key_by('user').window(wb.session('10min')).aggregate(clicks=wb.count())`",
            ),
            PipelineCheck(
                visits,
                lambda table: (Stream.from_table(table, event_time="at", out_of_orderness="2min"),),
                visits_of,
                keys=("user",),
                lookalikes=(
                    (_totals, "This is one number for each user: where does a visit end?"),
                    (lambda table: visits_of(table, GAP_US // 2), "Your visits end after five minutes of silence."),
                    (lambda table: visits_of(table, GAP_US * 2), "Your visits end after twenty minutes of silence."),
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
            ),
        ),
    ),
)
