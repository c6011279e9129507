"""A step that was taken: its actor, its input and its output, with a description in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from workbench.drivers.contract.serial import CLOCK, MASTER, WRITER
from workbench.durations import MAX_TIME, format_instant
from workbench.elements import (
    CheckpointBarrier,
    Element,
    EndOfInFlight,
    EndOfStream,
    LatencyMarker,
    Records,
    Watermark,
    WatermarkStatus,
)
from workbench.operators.contract.python_rows import python_rows

WORDS = 96
"""The maximum number of characters of a record in a step's description."""

FAILED = "failed"
"""The outcome of a step in which a task has failed."""


@dataclass(frozen=True, slots=True)
class Move:
    """An element that came from, or went to, another task.

    Attributes:
        task: the other task.
        element: the element.
    """

    task: str
    element: Element


def told(element: Element) -> str:
    """An element in words; a record with its values.

    Example:
        >>> told(EndOfStream())
        'the end'
    """
    match element:
        case Records(batch):
            if batch.num_rows != 1:
                return f"{batch.num_rows} records"
            values = ", ".join(f"{name}={value}" for name, value in python_rows(batch)[0].items())
            return "record " + (values if len(values) <= WORDS else values[: WORDS - 1] + "…")
        case Watermark(timestamp_us):
            return "the last watermark" if timestamp_us >= MAX_TIME else f"watermark {format_instant(timestamp_us)}"
        case CheckpointBarrier(checkpoint_id):
            return f"barrier {checkpoint_id}"
        case WatermarkStatus(idle):
            return "'idle'" if idle else "'active again'"
        case LatencyMarker():
            return "a latency marker"
        case EndOfInFlight():
            return "the end of the in-flight data"
        case EndOfStream():
            return "the end"


@dataclass(frozen=True, slots=True)
class Step:
    """One step that was taken.

    Attributes:
        actor: a task's name, ``"master"``, ``"writer"`` or ``"clock"``.
        outcome: how it ended.
        time_us: the job's time after it.
        number: the number of this step, from 1.
        took: the element that a task took from one of its channels, if any.
        sent: the elements that it put on its channels.
        notes: further sentences: what it meant to the job's architecture of fault tolerance.
        names: tells an element in words.

    Example:
        >>> Step("sum[0]", "progressed", 0, 3, Move("numbers[0]", Watermark(0))).words
        'sum[0] took watermark 1970-01-01 00:00:00 from numbers[0].'
    """

    actor: str
    outcome: str
    time_us: int
    number: int = 0
    took: Move | None = None
    sent: tuple[Move, ...] = ()
    notes: tuple[str, ...] = field(default=(), repr=False)
    names: Callable[[Element], str] = field(default=told, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.actor}: {self.outcome}"

    @property
    def words(self) -> str:
        """The step, described in a sentence, and what it meant to the architecture of fault tolerance."""
        return " ".join(filter(None, [self._moved, *self.notes]))

    @property
    def _moved(self) -> str:
        """The elements received and sent; empty for a task without any."""
        if self.actor == CLOCK:
            return f"Nothing could happen before {format_instant(self.time_us)}: the clock advanced to it."
        if self.actor == MASTER:
            return f"The job's master had a turn: the job is {self.outcome}."
        if self.actor == WRITER:
            return "A part of a checkpoint was written in the background."
        did = []
        if self.took is not None:
            did.append(f"took {self.names(self.took.element)} from {self.took.task}")
        targets: dict[str, Counter[str]] = {}
        for move in self.sent:
            targets.setdefault(self.names(move.element), Counter())[move.task] += 1
        for what, tasks in targets.items():
            to = (task if times == 1 else f"{task} ({times} times)" for task, times in tasks.items())
            did.append(f"sent {what} to {' and '.join(to)}")
        if not did:
            return "" if self.outcome == "progressed" and self.notes else f"{self.actor}: {self.outcome}."
        return f"{self.actor} {', then '.join([', '.join(did[:1]), *did[1:]])}."
