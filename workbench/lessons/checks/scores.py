"""Exercise `scores` of lesson 4: what is special is a tap that comes exactly 90 seconds late, and a result that must
leave by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Judge
from workbench.lessons.exercises.own_numbers import told
from workbench.lessons.exercises.pipelines import PipelineCheck
from workbench.lessons.exercises.running import Emitted, Run

SECOND_US = 1_000_000
DELAY_S = 90
PATIENCE_S = 120


_Tap = tuple[float, float, str, int]
"""When it was seen and when it was played, in seconds; the player, and points."""


def _table(found: Sequence[_Tap]) -> tuple[pa.Table]:
    return (
        pa.table(
            {
                "player": [player for _, _, player, _ in found],
                "points": [points for *_, points in found],
                "played": pa.array([round(at * SECOND_US) for _, at, _, _ in found], pa.timestamp("us", "UTC")),
                "seen": pa.array([round(at * SECOND_US) for at, *_ in found], pa.timestamp("us", "UTC")),
            }
        ),
    )


_SPECIAL = (
    (0, 0, "zoe", 0),  # no points, at the time that is 0
    (30, 30, "alice", 3),
    (60, 60, "alice", 5),  # at the beginning of the next minute
    (149.999, 149.999, "bob", 2),
    (149.999, 59.999, "alice", 4),  # exactly 90 s late, at the end of its minute
    (150, 61, "", 6),  # a player without a name
    (150, 149.999, "bob", 2),
    (150, 149.999, "bob", 2),  # the same again
    (180, 180, "alice", 1),  # two minutes after the end of the first minute
    (181, 170, "bob", 1),  # time stands still for a while
    (182, 171, "bob", 1),
    (183, 172, "bob", 1),
    (184, 173, "alice", 1),
    (185, 174, "alice", 1),
    (400, 400, "alice", 7),
    (400, 310, "bob", 3),  # exactly 90 s late
    (449.999, 449.999, "once", 9),
    (449.999, 359.999, "alice", 2),
)
EDGES = (
    _table(_SPECIAL),
    _table([(11 * n + 90 * (n % 5 == 4), 11 * n, ("alice", "bob")[n % 2], 1 + n % 4) for n in range(24)]),
)


def taps(chance: Random, rows: int) -> tuple[pa.Table]:
    """Taps of a game as they arrive, some of them up to a minute and a half after they were played."""
    now, played = 0, []
    for _ in range(rows):
        now += chance.choice((2, 7, 20, 45))
        delay = chance.choice((0, 0, 1, 30, DELAY_S))
        played.append((now + delay, now, chance.choice(("alice", "bob")), chance.randrange(1, 9)))
    return _table(sorted(played))


def scores(table: pa.Table, time: str = "played", keep: Any = None) -> list[dict[str, Any]]:
    """The points of each player in each minute."""
    found: dict[tuple[str, Any], int] = {}
    columns = [table[name].to_pylist() for name in ("player", "points", time)]
    for index, (player, points, at) in enumerate(zip(*columns, strict=True)):
        minute = at.replace(second=0, microsecond=0)
        if keep is None or keep(index):
            found[player, minute] = found.get((player, minute), 0) + points
    return [{"player": player, "window_start": minute, "points": n} for (player, minute), n in found.items()]


def _in_time(wait_us: int, table: pa.Table) -> list[dict[str, Any]]:
    """The result if stragglers are dropped, which arrive when the watermark has passed their minute."""
    highest, kept = 0.0, []
    for at in table["played"].to_pylist():
        kept.append(at.replace(second=0, microsecond=0).timestamp() + 60 > highest - wait_us / 1e6)
        highest = max(highest, at.timestamp())
    return scores(table, keep=lambda index: kept[index])


def _folded(table: pa.Table, fold: Callable[[list[int]], int]) -> list[dict[str, Any]]:
    """The points of each player and minute, combined by another function than the sum."""
    found: dict[tuple[str, Any], list[int]] = {}
    for row in table.to_pylist():
        found.setdefault((row["player"], row["played"].replace(second=0, microsecond=0)), []).append(row["points"])
    return [{"player": player, "window_start": minute, "points": fold(n)} for (player, minute), n in found.items()]


def _overlapping(table: pa.Table) -> list[dict[str, Any]]:
    """The points in windows of a minute that begin every half minute."""
    found: dict[tuple[str, Any], int] = {}
    for row in table.to_pylist():
        last = row["played"].replace(second=row["played"].second // 30 * 30, microsecond=0)
        for begin in (last, last - timedelta(seconds=30)):
            found[row["player"], begin] = found.get((row["player"], begin), 0) + row["points"]
    return [{"player": player, "window_start": begin, "points": n} for (player, begin), n in found.items()]


def _hours(table: pa.Table) -> list[dict[str, Any]]:
    hours = [at.replace(minute=0) for at in table["played"].to_pylist()]
    return scores(table.set_column(2, "played", pa.array(hours, table.schema.field("played").type)))


def _patient(run: Run) -> tuple[str, str, int] | None:
    """Check that the first result of a window is emitted when a tap two minutes after its end is seen, or earlier."""
    if run.failed:
        return None
    played = [at.timestamp() for at in run.tables[0]["played"].to_pylist()]
    first: dict[tuple[Any, Any], Emitted] = {}
    for emitted in run.results:
        for row in emitted.batch.to_pylist():
            first.setdefault((row["player"], row["window_start"]), emitted)
    for (player, start), emitted in first.items():
        due = next((n for n, at in enumerate(played) if at >= start.timestamp() + 60 + PATIENCE_S), None)
        if due is not None and emitted.time_us > (due + 2) * SECOND_US:
            waits = [told(wait) for wait in run.durations if wait > PATIENCE_S * SECOND_US]
            own = f" Your program waits {waits[0]}; at most 120 s are allowed." if waits else ""
            return (
                "results within two minutes",
                f"the points of {player} in the minute from {start:%H:%M} were emitted when record "
                f"{emitted.time_us // SECOND_US} was read; record {due} was already two minutes past the end of that "
                f"minute. Waiting loses nothing, but somebody waits.{own}",
                emitted.step,
            )
    return None


def _streams(table: pa.Table) -> tuple[Stream]:
    return (Stream.from_table(table, rate=1).with_parallelism(1),)


JUDGE: Judge = PipelineCheck(
    EDGES,
    taps,
    _streams,
    scores,
    keys=("player", "window_start"),
    final=True,
    lookalikes=(
        (_overlapping, "These windows overlap: each tap counts in two of them."),
        (_hours, "These are the points of each hour."),
        (
            partial(_in_time, 0),
            "Stragglers are missing: the watermark had passed their minute when they arrived.",
        ),
        (lambda table: _folded(table, len), "This is the number of taps."),
        (lambda table: _folded(table, max), "These are the points of the best tap."),
        (lambda table: scores(table, "seen"), "These are the minutes in which taps arrived."),
    ),
    families=(
        (
            lambda wait_us: partial(_in_time, wait_us),
            "Stragglers are missing: your program gives them {}, but they arrive up to 90 s late.",
        ),
    ),
    properties=(_patient,),
    settings={"parallelism": 1},
)
