"""How a job ends: its sources have read everything, or it is stopped.

In both cases a last checkpoint commits what was processed. When it is complete, the sources send the end of the input;
when that has passed through every task, the job is over.
"""

from __future__ import annotations

from collections.abc import Collection

from workbench.plan.physical import PhysicalGraph


class Ending:
    """The progress of one job towards its end.

    Attributes:
        stopping: a stop was requested; a failure before the end does not change that.
        agreed: the last checkpoint is complete; only the end of the input follows.
        all_committed: that checkpoint covers all input.
        held: every source has read all its input, and the job is to stay open.
    """

    def __init__(self) -> None:
        self.stopping = False
        self.agreed = False
        self.all_committed = False
        self.held = False
        self._drained: set[str] = set()
        self._finished: set[str] = set()

    @property
    def begun(self) -> bool:
        """Whether the job can only go back to an earlier checkpoint as a whole, because its end has begun."""
        return self.agreed or self.stopping or bool(self._finished)

    def drained(self, task: str, graph: PhysicalGraph) -> bool:
        """A source has read everything; returns whether all sources have."""
        self._drained.add(task)
        return self.all_drained(graph)

    def all_drained(self, graph: PhysicalGraph) -> bool:
        """Whether all sources have read everything."""
        return len(self._drained) == sum(vertex.parallelism for vertex in graph.vertices if vertex.is_source)

    def finished(self, task: str, graph: PhysicalGraph) -> bool:
        """The end has passed through a task; returns whether it has passed through all."""
        self._finished.add(task)
        return len(self._finished) == sum(vertex.parallelism for vertex in graph.vertices)

    def agree(self, *, all_committed: bool) -> None:
        """The last checkpoint is complete."""
        self.agreed = True
        self.all_committed = all_committed

    def start_over(self, tasks: Collection[str] | None = None) -> None:
        """These tasks, or all, resume from an earlier checkpoint."""
        self.agreed = self.held = False
        if tasks is None:
            self._drained.clear()
            self._finished.clear()
        else:
            self._drained.difference_update(tasks)
