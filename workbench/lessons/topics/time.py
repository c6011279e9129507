"""Lesson 4: event time, processing time and watermarks (F1-11 to F1-13, F2-5, F2-6, lateness, idleness)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.pipelines import PipelineCheck, Run
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

SECOND_US = 1_000_000
DELAY_S = 88
PATIENCE_S = 120


def taps(chance: Random, rows: int) -> tuple[pa.Table]:
    """Taps of a game as they arrive, some of them up to a minute and a half after they were played."""
    now, played = 0, []
    for _ in range(rows):
        now += chance.choice((2, 7, 20, 45))
        delay = chance.choice((0, 0, 1, 30, DELAY_S))
        played.append((now + delay, now, chance.choice(("alice", "bob")), chance.randrange(1, 9)))
    played.sort()
    return (
        pa.table(
            {
                "player": [player for _, _, player, _ in played],
                "points": [points for *_, points in played],
                "played": pa.array([at * SECOND_US for _, at, _, _ in played], pa.timestamp("us", "UTC")),
                "seen": pa.array([at * SECOND_US for at, *_ in played], pa.timestamp("us", "UTC")),
            }
        ),
    )


def scores(table: pa.Table, time: str = "played", keep: Any = None) -> list[dict[str, Any]]:
    """The points of each player in each minute."""
    found: dict[tuple[str, Any], int] = {}
    columns = [table[name].to_pylist() for name in ("player", "points", time)]
    for index, (player, points, at) in enumerate(zip(*columns, strict=True)):
        minute = at.replace(second=0)
        if keep is None or keep(index):
            found[player, minute] = found.get((player, minute), 0) + points
    return [{"player": player, "window_start": minute, "points": n} for (player, minute), n in found.items()]


def _in_time(table: pa.Table, wait_s: int = 0) -> list[dict[str, Any]]:
    """The result if stragglers are dropped, which arrive when the watermark has passed their minute."""
    highest, kept = 0.0, []
    for at in table["played"].to_pylist():
        kept.append(at.replace(second=0).timestamp() + 60 > highest - wait_s)
        highest = max(highest, at.timestamp())
    return scores(table, keep=lambda index: kept[index])


def _folded(table: pa.Table, fold: Callable[[list[int]], int]) -> list[dict[str, Any]]:
    """The points of each player and minute, combined by another function than the sum."""
    found: dict[tuple[str, Any], list[int]] = {}
    for row in table.to_pylist():
        found.setdefault((row["player"], row["played"].replace(second=0)), []).append(row["points"])
    return [{"player": player, "window_start": minute, "points": fold(n)} for (player, minute), n in found.items()]


def _overlapping(table: pa.Table) -> list[dict[str, Any]]:
    """The points in windows of a minute that begin every half minute."""
    found: dict[tuple[str, Any], int] = {}
    for row in table.to_pylist():
        last = row["played"].replace(second=row["played"].second // 30 * 30)
        for begin in (last, last - timedelta(seconds=30)):
            found[row["player"], begin] = found.get((row["player"], begin), 0) + row["points"]
    return [{"player": player, "window_start": begin, "points": n} for (player, begin), n in found.items()]


def _hours(table: pa.Table) -> list[dict[str, Any]]:
    hours = [at.replace(minute=0) for at in table["played"].to_pylist()]
    return scores(table.set_column(2, "played", pa.array(hours, table.schema.field("played").type)))


def _patient(run: Run) -> tuple[str, str] | None:
    """Check that the first result of a window is emitted when a tap two minutes after its end is seen, or earlier."""
    if run.failed:
        return None
    played = [at.timestamp() for at in run.tables[0]["played"].to_pylist()]
    first: dict[tuple[Any, Any], int] = {}
    for row, left_us in zip(run.rows, run.left_us, strict=True):
        first.setdefault((row["player"], row["window_start"]), left_us)
    for (player, start), left_us in first.items():
        due = next((n for n, at in enumerate(played) if at >= start.timestamp() + 60 + PATIENCE_S), None)
        if due is not None and left_us > (due + 2) * SECOND_US:
            return "results within two minutes", (
                f"the points of {player} in the minute from {start:%H:%M} were emitted when record {left_us // SECOND_US} "
                f"was read; record {due} was already two minutes past the end of that minute. Waiting loses nothing, but "
                "somebody waits."
            )
    return None


def _streams(table: pa.Table) -> tuple[Stream]:
    return (Stream.from_table(table, rate=1).with_parallelism(1),)


LESSON = LessonPlan(
    number="04",
    title="Time",
    promise="Afterwards you can explain what a watermark is, what waiting costs, and what late means.",
    questions=(
        Choice(
            "tunnel",
            "Alice plays in the subway. She taps 5 times in the first minute; her phone is offline from second 30 to second "
            "90, and 2 of the 5 taps arrive then. How many of her taps does a window over the arrival time count for the "
            "first minute?",
            (
                Option("5", lambda n: n == 5),
                Option("3", lambda n: n == 3),
                Option("7", lambda n: n == 7),
            ),
            "Processing time counts what arrives. Alice loses a bonus because of a tunnel.",
        ),
        Number(
            "eager",
            "Now the window uses the time at which the taps were played, and a watermark that assumes that they arrive in "
            "order (out_of_orderness 0). Bob, who is online, taps at second 65. How many of Alice's five taps are counted?",
            "taps",
            "The watermark passes the end of the minute with the first tap of the next one, Bob's. Alice's stragglers are "
            "late.",
            factor=1.0,
        ),
        Choice(
            "slowest",
            "A task reads two channels. The watermark of one is 20, that of the other 4. What is the watermark of the "
            "task?",
            (
                Option("20: the newest information counts.", lambda w: w == 20),
                Option("12: the mean.", lambda w: w == 12),
                Option("4: the smallest.", lambda w: w == 4),
            ),
            "A watermark promises that nothing older will arrive. A task can only promise what all its inputs promise.",
        ),
        Choice(
            "idle",
            "One of two sources has no records for a while. What does that do to the windows?",
            (
                Option("Nothing: no records, no effect.", lambda results: results == "same"),
                Option("None of them ends until that source sends something, or is declared idle.", lambda r: r == 0),
                Option("They end earlier.", lambda results: isinstance(results, int) and results > 0),
            ),
            "The silent source keeps its old watermark, which holds back all tasks downstream. An idle source is ignored.",
        ),
    ),
    exercises=(
        Exercise(
            "scores",
            "Write `scores(taps)`: the points of each player in each minute, by the time at which taps were played, not "
            "seen. Taps arrive up to 90 seconds late, and all of them count. A minute's first result may be at most two "
            "minutes late.",
            (
                "The stream has no event time yet: `taps.assign_timestamps('played', ...)` gives it one.",
                "`out_of_orderness` says how long to wait for stragglers: at least 90 s, at most 120 s.",
                "Instead of waiting, you can correct results: use a smaller `out_of_orderness`, and `allowed_lateness`.",
            ),
            PipelineCheck(
                taps,
                _streams,
                scores,
                keys=("player", "window_start"),
                final=True,
                timed=True,
                lookalikes=(
                    (_in_time, "The stragglers are missing: the watermark had passed their minute when they arrived."),
                    *(
                        (
                            partial(_in_time, wait_s=wait_s),
                            "Some stragglers are missing: the watermark has not waited long enough for them.",
                        )
                        for wait_s in (10, 30, 60)
                    ),
                    (_overlapping, "These windows overlap: each tap counts in two of them."),
                    (_hours, "These are the points of each hour."),
                    (lambda table: _folded(table, len), "This is the number of taps."),
                    (lambda table: _folded(table, max), "These are the points of the best tap."),
                    (lambda table: scores(table, "seen"), "These are the minutes in which taps arrived."),
                ),
                properties=(_patient,),
                settings={"parallelism": 1},
            ),
        ),
    ),
)
