"""The tasks that must restart together: the regions of a physical graph.

Tasks that exchange records restart together, because the records that one of them repeats would reach the others twice.
So do all subtasks of an operator, because they share its state and its sink's commits, and sources with aligned
watermarks. Unconnected parts, such as two streams that end in different sinks, continue when the other fails.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from workbench.plan.physical import PhysicalGraph, Vertex


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Vertices that restart together.

    Attributes:
        vertices: in the order of the graph.
    """

    vertices: tuple[Vertex, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of its tasks."""
        return tuple(task for vertex in self.vertices for task in vertex.tasks)

    def disjoint(self, tasks: Collection[str]) -> bool:
        """Whether none of these tasks belongs to this region."""
        return set(self.tasks).isdisjoint(tasks)

    def __str__(self) -> str:
        return " -> ".join(vertex.name for vertex in self.vertices)


def regions_of(graph: PhysicalGraph) -> tuple[Region, ...]:
    """The regions of a graph, in the order of their first vertices."""
    home = {vertex.id: vertex.id for vertex in graph.vertices}

    def root(vertex: str) -> str:
        while home[vertex] != vertex:
            vertex = home[vertex]
        return vertex

    for edge in graph.edges:
        home[root(edge.target.id)] = root(edge.source.id)
    aligned: dict[str, str] = {}
    for vertex in graph.vertices:
        watermarks = vertex.nodes[0].watermarks
        if vertex.is_source and watermarks is not None and watermarks.align is not None:
            first = aligned.setdefault(watermarks.align, vertex.id)
            home[root(vertex.id)] = root(first)
    members: dict[str, list[Vertex]] = {}
    for vertex in graph.vertices:
        members.setdefault(root(vertex.id), []).append(vertex)
    return tuple(Region(tuple(vertices)) for vertices in members.values())
