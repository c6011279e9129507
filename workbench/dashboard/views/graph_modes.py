"""Other looks at the same dataflow: the logical graph, and vertices taken apart into their subtasks.

Each look is a frame again, with other boxes and edges, so that one drawing shows them all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from workbench.telemetry.frames import EdgeFrame, Frame, VertexFrame

BOXES_MOST = 32
"""Subtasks of a vertex that can be drawn, with all their channels; a wider one stays a single box."""
MODES = ("Logical", "Physical", "Subtasks")
_LOAD = (
    "busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond", "maxBusyTimeMsPerSecond",
    "maxBackPressuredTimeMsPerSecond",
)  # fmt: skip


def look(frame: Frame, mode: str, expanded: Collection[str] = ()) -> Frame:
    """The frame as one of `MODES` shows it.

    Args:
        mode: logical: a box per operator; physical: a box per chain; subtasks: a box per task, where a vertex has
            no more than `BOXES_MOST`.
        expanded: ids of vertices that the physical graph shows as subtasks.
    """
    if mode == "Logical" and frame.operators:
        return logical(frame)
    if mode == "Subtasks":
        return subtasks(frame, {vertex.id for vertex in frame.vertices})
    return subtasks(frame, expanded) if expanded else frame


def logical(frame: Frame) -> Frame:
    """A box per operator; the load is that of the chain that it runs in, buffers those of the exchange it reads."""
    homes = {vertex.id: vertex for vertex in frame.vertices}
    exchanges = {(edge.source, edge.target): edge for edge in frame.edges}
    operators = {operator.uid: operator for operator in frame.operators}
    boxes = tuple(
        VertexFrame(
            id=operator.uid,
            name=operator.uid,
            operators=((operator.uid, operator.kind, operator.description),),
            parallelism=homes[operator.vertex].parallelism,
            metrics={**{name: homes[operator.vertex].metrics.get(name) for name in _LOAD}, **operator.metrics},
            x=operator.x,
            y=operator.y,
        )
        for operator in frame.operators
        if operator.vertex in homes
    )
    edges = []
    for operator in frame.operators:
        for item in operator.inputs:
            source = operators[item.uid]
            edge = exchanges.get((source.vertex, operator.vertex))
            name = f"{item.uid}->{operator.uid}"
            if edge is not None:
                edges.append(replace(edge, id=name, source=item.uid, target=operator.uid))
                continue
            rate = float(source.metrics["numRecordsOutPerSecond"])
            edges.append(EdgeFrame(name, item.uid, operator.uid, item.exchange, 0, 0, 0.0, rate))
    return replace(frame, vertices=boxes, edges=tuple(edges))


def subtasks(frame: Frame, expanded: Collection[str]) -> Frame:
    """The physical graph in which some vertices are a box per subtask, with an edge per channel to and from these."""
    tasks = {vertex.id: [task for task in frame.tasks if task.vertex == vertex.id] for vertex in frame.vertices}
    expanded = {vertex for vertex in expanded if 0 < len(tasks.get(vertex, ())) <= BOXES_MOST}
    boxes: list[VertexFrame] = []
    for vertex in frame.vertices:
        own = tasks[vertex.id]
        if vertex.id not in expanded:
            boxes.append(vertex)
            continue
        alone = sum(other.x == vertex.x for other in frame.vertices) == 1
        for place, task in enumerate(own):
            spread = (place + 0.5) / len(own) - 0.5
            y = 0.5 + spread if alone else vertex.y + spread * 0.5
            boxes.append(
                VertexFrame(task.name, task.name, vertex.operators, 1, task.metrics, vertex.x, y, vertex.chain)
            )
    edges: list[EdgeFrame] = []
    for edge in frame.edges:
        if edge.source not in expanded and edge.target not in expanded:
            edges.append(edge)
            continue
        edges.extend(_channel_edges(frame, edge, expanded))
    return replace(frame, vertices=tuple(boxes), edges=tuple(edges))


def _channel_edges(frame: Frame, edge: EdgeFrame, expanded: Collection[str]) -> list[EdgeFrame]:
    """The channels of an edge, those that join the same two boxes as one."""
    joined: dict[tuple[str, str], list[float]] = {}
    for channel in frame.channels:
        if channel.edge != edge.id:
            continue
        ends = (
            channel.source if edge.source in expanded else edge.source,
            channel.target if edge.target in expanded else edge.target,
        )
        sums = joined.setdefault(ends, [0, 0, 0.0])
        sums[0] += channel.inputQueueLength + channel.outputQueueLength
        sums[1] += channel.capacity
        sums[2] += channel.records_per_second
    return [
        EdgeFrame(
            id=f"{source}->{target}",
            source=source,
            target=target,
            exchange=edge.exchange,
            queued_buffers=int(queued),
            capacity_buffers=int(capacity),
            usage=queued / capacity if capacity else 0.0,
            records_per_second=rate,
        )
        for (source, target), (queued, capacity, rate) in joined.items()
    ]
