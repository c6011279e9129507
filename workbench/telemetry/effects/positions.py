"""How many records the sources of a job have read, counted on over its attempts.

A task counts from zero in each attempt. Where a checkpoint is restored, its sources go on from the count that they had
at the checkpoint's barrier; so the difference is what they read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.operators.contract.base import Counters
from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord
from workbench.runtime.tasks.source_task import SourceTask

KEPT = 100
"""Checkpoints, of which the latest is restored; older ones only as savepoints."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A source task: its attempt, the count at which that began, and what it has counted since."""

    attempt: int
    base: int
    counters: Counters

    @property
    def count(self) -> int:
        return self.base + self.counters.numRecordsIn


class Positions:
    """The counts of all source tasks of one job; used on the master's turn."""

    def __init__(self) -> None:
        self._read: dict[str, _Read] = {}
        self._at: dict[int, dict[str, int]] = {}

    def tasks(self) -> dict[str, int]:
        """Records read by each source task."""
        return {name: read.count for name, read in self._read.items()}

    def note(self, records: Iterable[CheckpointRecord]) -> None:
        """Remember where the sources were at these checkpoints, which the tasks that run have taken."""
        for record in records:
            if record.state == "COMPLETED" and record.checkpoint_id not in self._at:
                acks = record.acknowledgements
                self._at[record.checkpoint_id] = {
                    name: read.base + acks[name].records_in for name, read in self._read.items() if name in acks
                }
        while len(self._at) > KEPT:
            del self._at[next(iter(self._at))]

    def deployed(self, tasks: Sequence[SourceTask], checkpoint: int | None, *, replays: bool) -> int:
        """Source tasks run, some of them anew; returns how many records these read again.

        Args:
            tasks: all that run.
            checkpoint: that the new ones were restored from; None: they begin from the start.
            replays: False where they continue after the last record that they had read.
        """
        on = {task.name for task in tasks if self._goes_on(task)}
        gone = {name: read.count for name, read in self._read.items() if name not in on}
        restored = {} if replays else gone
        if checkpoint is not None:
            restored = self._at.setdefault(checkpoint, {})  # of one of another process, counts begin with it
        new = [task for task in tasks if task.name not in on]
        sums, seen = _by_source(restored.items()), set[str]()
        same = {task.name for task in tasks} == restored.keys()
        self._read = {name: self._read[name] for name in on}
        for task in new:
            uid = _source_of(task.name)
            base = restored.get(task.name, 0) if same or on else 0 if uid in seen else sums.get(uid, 0)
            seen.add(uid)
            self._read[task.name] = _Read(task.attempt, base, task.root.counters)
        before = _by_source(gone.items())
        begin = _by_source((task.name, self._read[task.name].base) for task in new)
        return sum(max(0, count - begin.get(uid, count)) for uid, count in before.items())

    def _goes_on(self, task: SourceTask) -> bool:
        read = self._read.get(task.name)
        return read is not None and read.attempt == task.attempt


def _source_of(task: str) -> str:
    return task[: task.rindex("[")]


def _by_source(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, count in counts:
        sums[_source_of(name)] = sums.get(_source_of(name), 0) + count
    return sums
