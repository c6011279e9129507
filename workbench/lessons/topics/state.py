"""Lesson 5: state (keyed state, backends, time to live, queryable state, D4)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.pipelines import PipelineCheck
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

RISE = 5


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


LESSON = LessonPlan(
    number="05",
    title="State",
    promise="Afterwards you can explain where a stream processor keeps its state, and how it limits it.",
    questions=(
        Choice(
            "where",
            "Two subtasks count words by key. The word `fish` occurs 10 times. Which subtask has its count?",
            (
                Option("Both: they share a dictionary.", lambda holders: holders == 2),
                Option("One of them, always the same.", lambda holders: holders == 1),
                Option("Each has a part; a third task adds the parts up.", lambda holders: holders == 0),
            ),
            "A key belongs to one subtask. So records are sent by key, and no locks are needed.",
        ),
        Number(
            "forget",
            "200 visitors arrive, each of them once, one per second. Their state has a time to live of 60 seconds. How many "
            "visitors are remembered at the end?",
            "visitors",
            "With a time to live, the size of the state depends on how fast keys arrive, not on how many have ever arrived.",
            factor=1.2,
        ),
        Choice(
            "look",
            "You query the count of `fish` while the job runs. What happens to the job?",
            (
                Option("It stops until the answer is there.", lambda state: state == "stopped"),
                Option("It continues: a task answers between two records.", lambda state: state == "RUNNING"),
                Option("This is not possible: results leave only through a sink.", lambda state: state is None),
            ),
            "The query is put into the mailbox of the task that owns the key.",
        ),
    ),
    exercises=(
        Exercise(
            "alarms",
            "Write `alarms(readings)`: of the readings with `sensor`, `number` and `celsius`, keep those that are more "
            "than 5 degrees above the previous reading of the same sensor, with the same three columns.",
            (
                "You have to remember one number for each sensor: what does this lesson call that?",
                "`readings.key_by('sensor').process(function, schema, state={'last': pa.int64()})`; `state.last` is None at "
                "first.",
                "Compare `record['celsius']` with `state.last`, then always write `state.last`, and return the "
                "record if it is an alarm.",
            ),
            PipelineCheck(
                readings,
                lambda table: (Stream.from_table(table).with_parallelism(1),),
                alarms,
                keys=("sensor", "number"),
                lookalikes=(
                    (lambda table: alarms(table, lambda earlier, now: True), "These are all readings."),
                    (_quiet, "The reading of an alarm is the previous one of the next reading: remember it, too."),
                    (
                        lambda table: alarms(table, lambda earlier, now: bool(earlier) and now - earlier[-1] >= RISE),
                        "Exactly 5 degrees are not more than 5.",
                    ),
                    (
                        lambda table: alarms(
                            table, lambda earlier, now: bool(earlier) and abs(now - earlier[-1]) > RISE
                        ),
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
            ),
        ),
    ),
)
