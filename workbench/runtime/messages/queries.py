"""Questions about the state of a running operator, each answered by the owning task between two steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from workbench.plan.physical import PhysicalGraph
from workbench.state.key_groups import key_groups_of, subtask_of_group


class Question:
    """A question and the answers to it; used on the master's turn until `done` is called.

    Args:
        uid: of the operator.
        key: a batch with one row, the key to look up; None asks for the list of keys.
        limit: the maximum number of keys from each task.
        with_values: each task also returns the state of the keys that it lists.
        done: called once, when all have answered or none will.

    Attributes:
        answers: what each task found; an exception where the lookup failed.
        refused: why there is no answer, or empty.
    """

    def __init__(
        self,
        uid: str,
        key: pa.RecordBatch | None,
        limit: int,
        done: Callable[[], None],
        *,
        with_values: bool = False,
    ) -> None:
        self.uid = uid
        self.key = key
        self.limit = limit
        self.with_values = with_values
        self.answers: dict[str, object] = {}
        self.refused = ""
        self._done = done
        self._waiting: set[str] = set()

    @property
    def key_values(self) -> Mapping[str, object] | None:
        """The key by column."""
        values: Mapping[str, object] | None = None if self.key is None else self.key.to_pylist()[0]
        return values

    def tasks(self, graph: PhysicalGraph) -> list[str]:
        """The tasks that answer: the owner of the key, or every subtask of the operator."""
        vertex = graph.vertex_of(self.uid)
        assert vertex is not None, "the caller knows the operator"
        if self.key is None:
            return vertex.tasks
        if not self.key.num_columns:
            return vertex.tasks[:1]
        group = key_groups_of(self.key, self.key.schema.names, graph.max_parallelism)[0]
        return [vertex.tasks[subtask_of_group(vertex.parallelism, graph.max_parallelism)[group]]]

    def ask(self, tasks: list[str]) -> None:
        """Expect answers of these tasks."""
        self._waiting.update(tasks)

    def answer(self, task: str, found: object) -> None:
        """A task has answered."""
        self.answers[task] = found
        self._waiting.discard(task)
        if not self._waiting:
            self._done()

    def refuse(self, reason: str) -> None:
        """No task answers."""
        self.refused = reason
        self._waiting.clear()
        self._done()

    @property
    def open(self) -> bool:
        """Whether an answer is still missing."""
        return bool(self._waiting)
