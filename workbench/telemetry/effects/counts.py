"""Counts of a job's tasks, such as the records that its sources have read, over all its attempts.

A task counts from zero in each attempt. After a restore, counting continues from the count at the checkpoint's barrier,
so the difference to the count before the failure is the number of records that a source reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from workbench.operators.contract.base import Counters
from workbench.runtime.checkpoints.checkpoint_record import Acknowledgement, CheckpointRecord
from workbench.runtime.exchange.chain import Link
from workbench.runtime.tasks.task import Task

KEPT = 100
"""The number of checkpoints whose counts are kept: a failure restores the latest one."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One task: its attempt, the count at which the attempt began, and the counters of its operators."""

    attempt: int
    base: int
    counters: tuple[Counters, ...]


class Counts:
    """Counts of the tasks of one job; used on the master's turn.

    Args:
        of: returns the operators of a task that count.
        count: returns an operator's count.
        at_barrier: returns the count of a task at a checkpoint's barrier.
    """

    def __init__(
        self,
        of: Callable[[Task], Iterable[Link]],
        count: Callable[[Counters], int],
        at_barrier: Callable[[Acknowledgement], int],
    ) -> None:
        self._of = of
        self._count = count
        self._at_barrier = at_barrier
        self._tasks: dict[str, _Task] = {}
        self._at: dict[int, dict[str, int]] = {}

    def tasks(self) -> dict[str, int]:
        """The count of each task."""
        return {name: task.base + sum(map(self._count, task.counters)) for name, task in self._tasks.items()}

    def note(self, records: Iterable[CheckpointRecord]) -> None:
        """Remember the counts at these checkpoints, taken by the running tasks."""
        for record in records:
            if record.state == "COMPLETED" and record.checkpoint_id not in self._at:
                acks = record.acknowledgements
                self._at[record.checkpoint_id] = {
                    name: task.base + self._at_barrier(acks[name]) for name, task in self._tasks.items() if name in acks
                }
        while len(self._at) > KEPT:
            del self._at[next(iter(self._at))]

    def deployed(self, tasks: Sequence[Task], checkpoint: int | None, *, replays: bool) -> int:
        """Note that tasks run, some of them restarted; return by how much the counts of these have decreased.

        Args:
            tasks: all running tasks.
            checkpoint: from which the restarted tasks were restored; None: they begin from the start.
            replays: False if sources continue after the last record that they had read.
        """
        on = {task.name for task in tasks if self._goes_on(task)}
        gone = {name: count for name, count in self.tasks().items() if name not in on}
        restored = {} if replays else gone
        if checkpoint is not None:
            restored = self._at.setdefault(checkpoint, {})  # for a checkpoint of another process, counts begin at it
        new = [task for task in tasks if task.name not in on]
        sums, seen = _by_vertex(restored.items()), set[str]()
        same = {task.name for task in tasks} == restored.keys()
        self._tasks = {name: self._tasks[name] for name in on}
        for task in new:
            vertex = _vertex_of(task.name)
            base = restored.get(task.name, 0) if same or on else 0 if vertex in seen else sums.get(vertex, 0)
            seen.add(vertex)
            self._tasks[task.name] = _Task(task.attempt, base, tuple(link.counters for link in self._of(task)))
        begin = _by_vertex((task.name, self._tasks[task.name].base) for task in new)
        before = _by_vertex(gone.items())
        return sum(max(0, count - begin.get(vertex, count)) for vertex, count in before.items())

    def _goes_on(self, task: Task) -> bool:
        known = self._tasks.get(task.name)
        return known is not None and known.attempt == task.attempt


def _vertex_of(task: str) -> str:
    return task[: task.rindex("[")]


def _by_vertex(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, count in counts:
        sums[_vertex_of(name)] = sums.get(_vertex_of(name), 0) + count
    return sums
