"""How a job comes to its end: its sources have read everything, or somebody stops it.

Either way a last checkpoint commits what was processed; when it is complete the sources send the end, and when that has
gone through every task the job is over.
"""

from __future__ import annotations

from collections.abc import Collection

from workbench.plan.physical import PhysicalGraph


class Ending:
    """How far one job is on its way to the end.

    Attributes:
        stopping: somebody has asked for it; a failure on the way does not change that.
        agreed: the last checkpoint is complete; nothing but the end comes now.
        all_committed: that checkpoint covers everything that there was to read.
        held: every source has read everything, and the job is to stay open.
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
        """Whether the job can go back to an earlier checkpoint only as a whole, because its end has begun."""
        return self.agreed or self.stopping or bool(self._finished)

    def drained(self, task: str, graph: PhysicalGraph) -> bool:
        """A source has read everything; whether every source has."""
        self._drained.add(task)
        return len(self._drained) == sum(vertex.parallelism for vertex in graph.vertices if vertex.is_source)

    def finished(self, task: str, graph: PhysicalGraph) -> bool:
        """The end has gone through a task; whether it has gone through all."""
        self._finished.add(task)
        return len(self._finished) == sum(vertex.parallelism for vertex in graph.vertices)

    def agree(self, *, all_committed: bool) -> None:
        """The last checkpoint is complete."""
        self.agreed = True
        self.all_committed = all_committed

    def start_over(self, tasks: Collection[str] | None = None) -> None:
        """These tasks, or all, go on from a checkpoint before."""
        self.agreed = self.held = False
        if tasks is None:
            self._drained.clear()
            self._finished.clear()
        else:
            self._drained.difference_update(tasks)
