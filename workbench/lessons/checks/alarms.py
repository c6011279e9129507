"""Exercise `alarms` of lesson 5: what is special is a rise of exactly 5, a 0, a first reading, and a failure between
two readings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Judge
from workbench.lessons.exercises.pipelines import PipelineCheck

RISE = 5
PAUSE_S = 1_000_000
"""Between two readings, on the virtual clock: a sensor may be silent for long."""


def readings(chance: Random, rows: int) -> tuple[pa.Table]:
    """Temperatures of a few sensors, some of which jump."""
    last = {sensor: chance.randrange(15, 25) for sensor in ("north", "east", "west")}
    found = []
    for number in range(rows):
        sensor = chance.choice(list(last))
        last[sensor] += chance.choice((-9, -6, -5, -3, 0, 0, 3, 5, 6, 9))
        found.append((sensor, number, last[sensor]))
    names, numbers, values = zip(*found, strict=True)
    return (pa.table({"sensor": names, "number": numbers, "celsius": values}),)


def _readings(*found: tuple[str, int]) -> tuple[pa.Table]:
    """Readings with consecutive numbers."""
    return (
        pa.table(
            {
                "sensor": [sensor for sensor, _ in found],
                "number": list(range(len(found))),
                "celsius": [celsius for _, celsius in found],
            }
        ),
    )


_SPECIAL = (
    ("north", 20),  # the first of its sensor
    ("east", 0),
    ("east", 6),  # after a 0
    ("north", 25),  # exactly 5 more
    ("north", 31),  # 6 more
    ("north", 37),  # an alarm after an alarm
    ("north", 37),
    ("north", 20),  # a fall
    ("east", 9),
    ("east", 12),  # slowly: 6 more than the one before the previous one
    ("east", -3),
    ("east", 3),  # across 0
    ("", 7),  # a sensor without a name
    ("", 13),
    ("west", 40),  # seen once
    ("north", 26),  # its previous one is long ago
    ("east", -20),
    ("east", -10),  # below 0
    ("north", 0),
    ("north", 5),
    ("east", 0),
)
EDGES = (
    _readings(*_SPECIAL),
    _readings(*((sensor, 6 * n) for n in range(12) for sensor in ("north", "east"))),
)
"""In the second one every reading but the first is an alarm: whoever forgets, or remembers a later one, misses it."""

Rule = Callable[[list[int], int], bool]
"""Whether a reading is an alarm, given the earlier ones of its sensor."""


def alarms(table: pa.Table, rule: Rule = lambda earlier, now: bool(earlier) and now - earlier[-1] > RISE) -> Any:
    """The readings that are more than 5 degrees above the previous one of the same sensor."""
    earlier: dict[str, list[int]] = {}
    found = []
    for row in table.to_pylist():
        before = earlier.setdefault(row["sensor"], [])
        if rule(before, row["celsius"]):
            found.append({"sensor": row["sensor"], "number": row["number"], "celsius": row["celsius"]})
        before.append(row["celsius"])
    return found


def _quiet(table: pa.Table) -> Any:
    """As if the reading of an alarm were not kept."""
    last: dict[str, int] = {}
    found = []
    for row in table.to_pylist():
        if row["sensor"] in last and row["celsius"] - last[row["sensor"]] > RISE:
            found.append({"sensor": row["sensor"], "number": row["number"], "celsius": row["celsius"]})
        else:
            last[row["sensor"]] = row["celsius"]
    return found


def _forgetful(ttl_us: int, table: pa.Table) -> Any:
    """As if a reading were forgotten after some time."""
    last: dict[str, tuple[int, int]] = {}
    found = []
    for place, row in enumerate(table.to_pylist()):
        when, before = last.get(row["sensor"], (place, row["celsius"]))
        if (place - when) * PAUSE_S * 1_000_000 < ttl_us and row["celsius"] - before > RISE:
            found.append({"sensor": row["sensor"], "number": row["number"], "celsius": row["celsius"]})
        last[row["sensor"]] = place, row["celsius"]
    return found


JUDGE: Judge = PipelineCheck(
    EDGES,
    readings,
    lambda table: (Stream.from_table(table, rate=1 / PAUSE_S).with_parallelism(1),),
    alarms,
    keys=("sensor", "number"),
    settings={"parallelism": 1},  # several subtasks before a key would change the order of the readings
    lookalikes=(
        (lambda table: alarms(table, lambda earlier, now: True), "These are all readings."),
        (_quiet, "The reading of an alarm is the previous one of the next reading: remember it, too."),
        (
            lambda table: alarms(table, lambda earlier, now: bool(earlier) and now - earlier[-1] >= RISE),
            "Exactly 5 degrees are not more than 5.",
        ),
        (
            lambda table: alarms(table, lambda earlier, now: bool(earlier) and abs(now - earlier[-1]) > RISE),
            "A fall is not an alarm.",
        ),
        (
            lambda table: alarms(table, lambda earlier, now: now - (earlier or [0])[-1] > RISE),
            "The first reading of a sensor has no previous one, so it is not an alarm.",
        ),
        (
            lambda table: alarms(table, lambda earlier, now: bool(earlier) and now - min(earlier) > RISE),
            "This compares with the lowest reading so far, not with the previous one.",
        ),
        (
            lambda table: alarms(table, lambda earlier, now: bool(earlier) and now - earlier[0] > RISE),
            "This compares with the first reading, not with the previous one.",
        ),
    ),
    families=(
        (
            lambda ttl_us: partial(_forgetful, ttl_us),
            "After {} your state forgets a reading; a sensor may be silent for longer.",
        ),
    ),
)
