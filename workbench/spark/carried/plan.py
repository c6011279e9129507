"""The carried plan: the tasks of a physical graph in levels, each of which is one stateful operator of Spark.

Spark executes a chain: the source, then level after level. A task is a group of Spark's grouping by key, and receives
one parcel from each of its channels. What is addressed to a later level, or to a sink, passes through unchanged. So a
source is read once for all its consumers, whatever the shape of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from workbench.plan.logical import Node
from workbench.plan.physical import Edge, PhysicalGraph, Vertex

TICK = -1
"""The channel of a row without elements, which tells a task the time of its batch, so that a batch that runs again sees
the same clock: otherwise a window could come out in the one run and be dropped from the state in the other."""
TOLD = -1
"""The task of rows for the driver in which tasks tell their figures, as JSON."""
_FIRST_SINK = -2


@dataclass(frozen=True)
class CarriedPlan:
    """A physical graph with numbers for its tasks and channels.

    Attributes:
        graph: without aggregation before exchanges.
        job: its name.
        run: identifies the pipeline's first run in its checkpoint directory.

    Example:
        >>> import pyarrow as pa, workbench as wb
        >>> from workbench.plan.physical import build_physical_graph
        >>> counts = wb.Stream.from_table(pa.table({"k": ["a"]})).key_by("k").aggregate(n=wb.count())
        >>> graph = build_physical_graph(counts.sink_to(wb.TableSink("n")).logical_graph(), 2)
        >>> plan = CarriedPlan(graph, "counts")
        >>> plan.levels, [plan.place(task)[0].name for task in range(4)]
        (2, ['table', 'table', 'aggregate', 'aggregate'])
    """

    graph: PhysicalGraph
    job: str
    run: str = ""
    _first: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first, number = {}, 0
        for vertex in self.graph.vertices:
            first[vertex.id] = number
            number += vertex.parallelism
        object.__setattr__(self, "_first", first)

    @cached_property
    def level_of(self) -> dict[str, int]:
        """The level of each vertex: the longest way from a source."""
        found: dict[str, int] = {}
        for vertex in self.graph.vertices:
            found[vertex.id] = max((found[edge.source.id] + 1 for edge in vertex.ins), default=0)
        return found

    @property
    def levels(self) -> int:
        """The number of levels; a vertex that is only a sink has none."""
        return 1 + max(self.level_of[vertex.id] for vertex in self.graph.vertices if not is_sink(vertex))

    @cached_property
    def sinks(self) -> list[tuple[str, Node]]:
        """The uid and the node of each sink."""
        return [
            (uid, node)
            for vertex in self.graph.vertices
            for node, uid in zip(vertex.nodes, vertex.uids, strict=True)
            if node.role == "sink"
        ]

    @property
    def sources(self) -> Iterator[Vertex]:
        """The vertices whose head is a source."""
        return (vertex for vertex in self.graph.vertices if vertex.is_source)

    def task(self, vertex: Vertex, subtask: int) -> int:
        """The number of a task."""
        return self._first[vertex.id] + subtask

    @property
    def tasks(self) -> list[int]:
        """The numbers of all tasks that run on Spark."""
        return [
            self.task(vertex, subtask)
            for vertex in self.graph.vertices
            if not is_sink(vertex)
            for subtask in range(vertex.parallelism)
        ]

    def place(self, task: int) -> tuple[Vertex, int]:
        """The vertex and the subtask of a task."""
        for vertex in reversed(self.graph.vertices):
            if (first := self._first[vertex.id]) <= task:
                return vertex, task - first
        raise ValueError(f"there is no task {task}")

    def sink_task(self, uid: str) -> int:
        """The task number that stands for a sink, in the driver."""
        return _FIRST_SINK - [own for own, _ in self.sinks].index(uid)

    def sink_of(self, task: int) -> str:
        """The uid of the sink for which such a number stands."""
        return self.sinks[_FIRST_SINK - task][0]

    def channels(self, vertex: Vertex, subtask: int) -> list[tuple[Edge, int]]:
        """The input channels of a task, each with the sending subtask; their order is their number."""
        return [(edge, sender) for edge in vertex.ins for sender, own in edge.pairs if own == subtask]

    def channel(self, edge: Edge, sender: int, receiver: int) -> int:
        """The number of a channel among those of its receiver."""
        return self.channels(edge.target, receiver).index((edge, sender))


def is_sink(vertex: Vertex) -> bool:
    """Whether a vertex is a sink alone, which runs in the driver."""
    return vertex.nodes[0].role == "sink"
