"""One level of a carried plan: what Spark calls for each task and batch, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from workbench.clock import VirtualClock
from workbench.drivers.contract.executor import ThreadedExecutor
from workbench.spark.carried.parcels import Item, packed, unpacked
from workbench.spark.carried.plan import TICK, TOLD, CarriedPlan
from workbench.spark.carried.source import CarriedSource
from workbench.spark.carried.task import CarriedTask

Row = tuple[int, int, bytes]
"""Receiving task, channel, and parcel."""


def is_at(plan: CarriedPlan, task: int, level: int) -> bool:
    """Whether a task runs at this level; other rows pass through."""
    return task >= 0 and plan.level_of[plan.place(task)[0].id] == level


def run_task(
    plan: CarriedPlan, task: int, state: bytes | None, rows: Iterable[tuple[int, bytes]]
) -> tuple[list[Row], bytes]:
    """Run one task for one batch.

    Args:
        plan: of the pipeline.
        task: its number.
        state: after the batch before; None: there is none.
        rows: the channel and the parcel of each row for it.

    Returns:
        What it sends, with a row of its figures for the driver, and its new state.
    """
    vertex, subtask = plan.place(task)
    kind = CarriedSource if vertex.is_source else CarriedTask
    executor = ThreadedExecutor(f"{vertex.name}[{subtask}]")
    rows = list(rows)
    told = next((int(payload) for channel, payload in rows if channel == TICK), None)
    clock = None if told is None else VirtualClock(told)
    one = kind(plan, vertex, subtask, state, clock, executor)
    try:
        one.run(_by_channel(rows))
        sent = [(to, channel, packed(items)) for (to, channel), items in one.parcels.items() if items]
        figures = json.dumps(one.figures()).encode()
        return [*sent, (TOLD, task, figures)], one.state()
    finally:
        one.close()
        executor.close()


def _by_channel(rows: Iterable[tuple[int, bytes]]) -> dict[int, Sequence[Item]]:
    found: dict[int, Sequence[Item]] = {}
    for channel, payload in rows:
        if channel != TICK:
            found[channel] = [*found.get(channel, ()), *unpacked(payload)]
    return found
