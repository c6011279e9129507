"""Finds the key that causes most of the load of a task, from a sample of the buffers that it receives."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from itertools import islice

from workbench.elements import Records
from workbench.operators.functions.dead_letters import key_text
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.operator_task import OperatorTask

ROWS, BUFFERS = 256, 40
"""The sample: this many records of a buffer, and this many of the latest buffers."""
LEAST = 50
"""The minimum number of sampled records for a share."""
HOT = 0.5
"""The share of a task's records from which a key is reported."""
LETTERS = 40

_Key = tuple[object, ...]


class HotKeys:
    """Samples tasks for as long as it is asked about them; other tasks have no extra work."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[tuple[str, ...], Counter[_Key]]]] = {}

    def sample(self, graph: PhysicalGraph, execution: Execution, names: Collection[str]) -> dict[str, str]:
        """The key that dominates the records of each task, in words; only for tasks that have such a key.

        Args:
            graph: of the job.
            execution: its running attempt.
            names: of the tasks.
        """
        self._seen = {name: self._seen.get(name, deque(maxlen=BUFFERS)) for name in names}
        told: dict[str, str] = {}
        if not names:
            return told
        keys = {vertex.id: [edge.keys for edge in vertex.ins if edge.exchange == "hash"] for vertex in graph.vertices}
        for task in execution.tasks:
            if task.name not in self._seen or not isinstance(task, OperatorTask):
                continue
            seen, shown = self._seen[task.name], task.shown
            if shown is not None and (counted := _counted(shown, keys[task.vertex])) is not None:
                seen.append(counted)
            task.shown, task.watched = None, True
            if text := _text(seen):
                told[task.name] = text
        return told


def _counted(records: Records, keys: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], Counter[_Key]] | None:
    """How often each key occurs in the first records; None if they have no key columns."""
    batch = records.batch.slice(0, ROWS)
    own = next((names for names in keys if set(names) <= set(batch.schema.names)), None)
    if own is None:
        return None
    return tuple(own), Counter(zip(*(batch.column(name).to_pylist() for name in own), strict=True))


def _text(seen: Collection[tuple[tuple[str, ...], Counter[_Key]]]) -> str:
    total: Counter[tuple[tuple[str, ...], _Key]] = Counter()
    for names, counts in seen:
        for key, count in counts.items():
            total[names, key] += count
    rows = total.total()
    if rows < LEAST:
        return ""
    (((names, key), count),) = islice(total.most_common(1), 1)
    if count < HOT * rows:
        return ""
    value = key_text(key[0] if len(key) == 1 else key)
    value = value if len(value) <= LETTERS else f"{value[: LETTERS - 1]}…"
    return f"{100 * count / rows:.0f} % of them have {', '.join(names)} = {value}"
