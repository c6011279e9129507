"""A small job around a transactional sink: numbered rows, checkpoints, crashes, restores; every step on demand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from workbench.connectors.contract.base import Sink
from workbench.connectors.tables.tables import Tables
from workbench.elements import Records
from workbench.operators.contract.base import OperatorContext, Output

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
KEYS = 7


class NoOutput(Output):
    def emit(self, records: Records) -> None:
        raise AssertionError("a sink emits nothing")

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError("a sink emits nothing")


def rows(values: list[int]) -> Records:
    return Records(pa.record_batch([[value % KEYS for value in values], values], schema=SCHEMA))


class SinkJob:
    """Rows 0, 1, 2, ... keyed by value % KEYS go to the sink's subtasks by key."""

    def __init__(self, sink: Sink, data_dir: Path | None, parallelism: int = 1) -> None:
        self.sink, self.data_dir = sink, data_dir
        self.tables = Tables()
        self.offset = 0
        self.attempt = 0
        self.run = "first"
        self.next_id = 1
        self.pending: dict[int, tuple[int, list[dict[str, Any]]]] = {}
        self.stored: dict[int, tuple[int, list[dict[str, Any]]]] = {}
        self.completed = 0
        self.start(parallelism)

    def start(self, parallelism: int) -> None:
        self.parallelism = parallelism
        self.subtasks = [self.sink.create(SCHEMA) for _ in range(parallelism)]
        for index, subtask in enumerate(self.subtasks):
            subtask.open(
                OperatorContext(
                    subtask=index,
                    parallelism=parallelism,
                    attempt=self.attempt,
                    run=self.run,
                    tables=self.tables,
                    data_dir=self.data_dir,
                )
            )

    def process(self, count: int) -> None:
        for index, subtask in enumerate(self.subtasks):
            values = [
                value for value in range(self.offset, self.offset + count) if value % KEYS % self.parallelism == index
            ]
            if values:
                subtask.process(rows(values), 0, NoOutput())
        self.offset += count

    def trigger(self) -> int:
        """The synchronous part of a checkpoint on every subtask."""
        checkpoint_id, self.next_id = self.next_id, self.next_id + 1
        self.pending[checkpoint_id] = (
            self.offset,
            [dict(subtask.snapshot(checkpoint_id)) for subtask in self.subtasks],
        )
        return checkpoint_id

    def write(self, checkpoint_id: int, subtasks: int | None = None) -> None:
        """The asynchronous part, on all subtasks or on the first few."""
        offset, snapshots = self.pending[checkpoint_id]
        values = [_stored(resolve(snapshot)) for snapshot in snapshots[:subtasks]]
        if subtasks is None:
            self.stored[checkpoint_id] = (offset, values)
            self.completed = max(self.completed, checkpoint_id)

    def notify(self, checkpoint_id: int, only: Callable[[int], bool] = lambda index: True) -> None:
        for index, subtask in enumerate(self.subtasks):
            if only(index):
                subtask.notify_complete(checkpoint_id)

    def checkpoint(self) -> int:
        checkpoint_id = self.trigger()
        self.write(checkpoint_id)
        self.notify(checkpoint_id)
        return checkpoint_id

    def crash(self, *, parallelism: int | None = None, killed: bool = False) -> None:
        """Lose the subtasks (and, when the process is killed, the memory) and recover from the latest checkpoint."""
        for subtask in self.subtasks:
            subtask.close()
        self.pending.clear()
        self.attempt += 1
        if killed:
            self.tables, self.attempt, self.next_id = Tables(), 0, self.completed + 1
            self.run += " and on"
        self.start(parallelism or self.parallelism)
        self.offset = 0
        if self.completed:
            self.restore(self.completed)

    def restore(self, checkpoint_id: int) -> None:
        self.offset, snapshots = self.stored[checkpoint_id]
        for subtask in self.subtasks:
            subtask.restore(snapshots)

    @property
    def completed_offset(self) -> int:
        return self.stored[self.completed][0] if self.completed else 0


CRASH_POINTS = (
    "before snapshot",
    "after snapshot",
    "half written",
    "written",
    "half notified",
    "notified",
    "notified twice",
)
"""Moments of a checkpoint, in order; it is complete from "written" on."""


def crash_at(point: str, job: SinkJob, seen: Callable[[], list[int]], *, parallelism: int, killed: bool) -> None:
    """Crash at a point of the second checkpoint: what is seen is what belongs to the latest complete one.

    Args:
        point: one of CRASH_POINTS.
        job: a new one with two subtasks.
        seen: the values that a reader of the sink finds, sorted.
        parallelism: after the crash.
        killed: the process, with all its memory.
    """
    stage = CRASH_POINTS.index(point)
    job.process(10)
    job.checkpoint()
    assert seen() == list(range(10))
    job.process(5)
    if stage >= CRASH_POINTS.index("after snapshot"):
        checkpoint_id = job.trigger()
        job.process(3)
    if point == "half written":
        job.write(checkpoint_id, subtasks=1)
    if stage >= CRASH_POINTS.index("written"):
        job.write(checkpoint_id)
    if stage < CRASH_POINTS.index("half notified"):
        assert seen() == list(range(10))
    if point == "half notified":
        job.notify(checkpoint_id, only=lambda index: index == 1)
    if stage >= CRASH_POINTS.index("notified"):
        job.notify(checkpoint_id)
        assert seen() == list(range(15))
    if point == "notified twice":
        job.notify(checkpoint_id)
    job.crash(parallelism=parallelism, killed=killed)
    committed = 15 if stage >= CRASH_POINTS.index("written") else 10
    assert seen() == list(range(committed))
    assert job.offset == committed


def go_on(job: SinkJob, seen: Callable[[], list[int]], *, killed: bool) -> None:
    """After a crash: a second one changes nothing, nothing is missed or comes twice, and nothing is lost later."""
    committed = job.offset
    job.crash(killed=killed)  # what was repeated, repeated
    assert seen() == list(range(committed))
    job.process(20 - committed)
    job.checkpoint()
    assert seen() == list(range(20))
    job.crash(killed=killed)
    assert seen() == list(range(20))


def resolve(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """What the checkpoint's background writer does with delayed encodings: it calls them."""
    return {name: value() if callable(value) else value for name, value in snapshot.items()}


def _stored(snapshot: dict[str, Any]) -> dict[str, Any]:
    """What comes back from disk: tables as they were, everything else through JSON."""
    return {
        key: value if isinstance(value, pa.Table) else json.loads(json.dumps(value)) for key, value in snapshot.items()
    }
