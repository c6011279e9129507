"""The physical graph with the sums over its subtasks and channels."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from workbench.plan.physical import PhysicalGraph, Vertex
from workbench.runtime.deployment import Execution
from workbench.telemetry.frames import ChannelFrame, EdgeFrame, TaskFrame, VertexFrame
from workbench.telemetry.tasks import HORIZON_US, Metrics

_MEANS = ("busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond")
_MAXIMA = ("inPoolUsage", "outPoolUsage", "watermarkLag", "isBackPressured", "sourceIdleTime")
_MINIMA = ("currentInputWatermark", "currentOutputWatermark")


def vertex_frames(graph: PhysicalGraph, tasks: Sequence[TaskFrame]) -> tuple[VertexFrame, ...]:
    """A frame for each vertex, in topological order."""
    return tuple(_vertex(vertex, [task for task in tasks if task.vertex == vertex.id]) for vertex in graph.vertices)


class EdgeSampler:
    """Sums channels up to edges, and turns their counts into rates."""

    def __init__(self) -> None:
        self._attempt = -1
        self._past: dict[str, deque[tuple[int, int]]] = {}

    def sample(
        self, graph: PhysicalGraph, execution: Execution | None, channels: Sequence[ChannelFrame], now_us: int
    ) -> tuple[EdgeFrame, ...]:
        """A frame for each edge, in the order of the graph."""
        if execution is not None and execution.number != self._attempt:
            self._attempt = execution.number
            self._past.clear()
        frames = []
        for edge in graph.edges:
            own = [channel for channel in channels if channel.edge == edge.id]
            queued = sum(channel.inputQueueLength + channel.outputQueueLength for channel in own)
            capacity = sum(channel.capacity for channel in own)
            rate = 0.0
            if execution is not None:
                capacity += sum(task.pool.total for task in execution.tasks if task.vertex == edge.source.id)
                received = sum(c.records_received for c in execution.channels if c.edge == edge.id)
                rate = self._rate(edge.id, received, now_us)
            frames.append(
                EdgeFrame(
                    id=edge.id,
                    source=edge.source.id,
                    target=edge.target.id,
                    exchange=edge.exchange,
                    queued_buffers=queued,
                    capacity_buffers=capacity,
                    usage=queued / capacity if capacity else 0.0,
                    records_per_second=rate,
                )
            )
        return tuple(frames)

    def _rate(self, edge: str, received: int, now_us: int) -> float:
        past = self._past.setdefault(edge, deque())
        while len(past) > 1 and now_us - past[0][0] > HORIZON_US:
            past.popleft()
        past.append((now_us, received))
        seconds = (now_us - past[0][0]) / 1e6
        return (received - past[0][1]) / seconds if seconds else 0.0


def _vertex(vertex: Vertex, tasks: Sequence[TaskFrame]) -> VertexFrame:
    metrics: Metrics = {}
    for name in tasks[0].metrics if tasks else ():
        values = [value for task in tasks if (value := task.metrics[name]) is not None]
        if not values:
            metrics[name] = None
        elif name in _MEANS:
            metrics[name] = sum(values) / len(tasks)
        elif name in _MAXIMA:
            metrics[name] = max(values)
        elif name in _MINIMA:
            metrics[name] = min(values) if len(values) == len(tasks) else None
        else:
            metrics[name] = sum(values)
    operators = tuple(
        (uid, node.spec.kind, node.spec.describe()) for uid, node in zip(vertex.uids, vertex.nodes, strict=True)
    )
    return VertexFrame(vertex.id, vertex.name, operators, vertex.parallelism, metrics, vertex.x, vertex.y)
