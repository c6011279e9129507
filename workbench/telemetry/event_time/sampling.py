"""Collects the event times that operators have sampled, and asks them for more samples."""

from __future__ import annotations

from collections import deque
from typing import TypeVar

from workbench.operators.contract.base import Counters
from workbench.operators.contract.python_rows import python_rows
from workbench.runtime.tasks.task import Task
from workbench.telemetry.event_time.frames import EventTimesFrame, FiredFrame, OpenFrame, PointFrame

LETTERS = 60
_T = TypeVar("_T")


def event_times_of(task: Task) -> tuple[EventTimesFrame, ...]:
    """A frame for each operator of the task that has seen event times."""
    frames = (_frame(link.uid, link.counters) for link in task.links)
    return tuple(frame for frame in frames if frame is not None)


def _frame(uid: str, counters: Counters) -> EventTimesFrame | None:
    seen = counters.event_times
    seen.asked += 1
    points, fired = _taken(seen.points), _taken(seen.fired)
    if not (seen.examined or seen.shortfalls or seen.updated or seen.open or fired):
        return None
    return EventTimesFrame(
        uid, counters.numRecordsIn + counters.numRecordsInFolded, seen.examined, seen.disorder, seen.bound_us,
        seen.dropped, seen.aside, seen.updated, seen.shortfalls,
        tuple(PointFrame(*point) for point in points),
        tuple(
            FiredFrame(start, end, time_us, count, _text(row))
            for time_us, starts, ends, counts, rows in fired
            for start, end, count, row in zip(
                starts.tolist(), ends.tolist(), counts.tolist(), python_rows(rows), strict=True
            )
        ),
        tuple(OpenFrame(*window) for window in seen.open),
    )  # fmt: skip


def _taken(queue: deque[_T]) -> list[_T]:
    """Everything in the queue; its task may continue to add to it."""
    return [queue.popleft() for _ in range(len(queue))]


def _text(row: dict[str, object]) -> str:
    shown = [f"{name}={value}" for name, value in row.items() if name not in ("window_start", "window_end")]
    text = " ".join(shown)
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
