"""The physical graph with the sums over its subtasks and channels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.plan.acking import is_of_acks
from workbench.plan.physical import PhysicalGraph, Vertex
from workbench.runtime.tasks.execution import Execution
from workbench.telemetry.channels import ChannelFrames
from workbench.telemetry.frames import EdgeFrame, TaskFrame, VertexFrame
from workbench.telemetry.tasks import Metrics

_MEANS = ("busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond")
_MAXIMA = (
    *("inPoolUsage", "outPoolUsage", "watermarkLag", "isBackPressured", "sourceIdleTime"),
    *("connectionAttempts", "connectionRetryInMs"),
)
_WORST = (
    ("maxBusyTimeMsPerSecond", "busyTimeMsPerSecond"),
    ("maxBackPressuredTimeMsPerSecond", "backPressuredTimeMsPerSecond"),
)
_MINIMA = re.compile(r"current(Input\d*|Output)Watermark")


def vertex_frames(graph: PhysicalGraph, tasks: Sequence[TaskFrame]) -> tuple[VertexFrame, ...]:
    """A frame for each vertex, in topological order."""
    return tuple(_vertex(vertex, [task for task in tasks if task.vertex == vertex.id]) for vertex in graph.vertices)


def data_skew(values: Sequence[float]) -> float:
    """How unevenly subtasks are loaded, in percent: 0 if all receive the same, 100 at most.

    It is the mean distance from the mean, as a share of the mean.

    Source: the Data Skew of Flink's web dashboard.

    Args:
        values: the load of each subtask, not negative.

    Example:
        >>> [round(data_skew(values)) for values in ((23, 3, 10), (5, 5), (300, 0, 0), (0, 0))]
        [61, 0, 100, 0]
    """
    mean = sum(values) / len(values) if values else 0.0
    if not mean:
        return 0.0
    return min(100.0, 100 * sum(abs(value - mean) for value in values) / len(values) / mean)


def edge_frames(graph: PhysicalGraph, execution: Execution | None, channels: ChannelFrames) -> tuple[EdgeFrame, ...]:
    """A frame for each edge that carries records, with the sums of its channels, in the order of the graph."""
    frames = []
    sums = channels.sums()
    for edge in graph.edges:
        if is_of_acks(edge):
            continue
        queued, capacity, rate = sums.get(edge.id, (0, 0, 0.0))
        if execution is not None:
            capacity += sum(task.pool.total for task in execution.tasks if task.vertex == edge.source.id)
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


def _vertex(vertex: Vertex, tasks: Sequence[TaskFrame]) -> VertexFrame:
    metrics: Metrics = {}
    for name in dict.fromkeys(name for task in tasks for name in task.metrics):  # tasks may have different metrics
        values = [value for task in tasks if (value := task.metrics.get(name)) is not None]
        if not values:
            metrics[name] = None
        elif name in _MEANS:
            metrics[name] = sum(values) / len(tasks)
        elif name in _MAXIMA:
            metrics[name] = max(values)
        elif _MINIMA.fullmatch(name):
            metrics[name] = min(values) if len(values) == len(tasks) else None
        else:
            metrics[name] = sum(values)
    if tasks:
        for name, share in _WORST:
            metrics[name] = max(float(task.metrics[share] or 0) for task in tasks)
        metrics["dataSkew"] = data_skew([float(task.metrics["numRecordsInPerSecond"] or 0) for task in tasks])
    operators = tuple(
        (uid, node.spec.kind, node.spec.describe()) for uid, node in zip(vertex.uids, vertex.nodes, strict=True)
    )
    return VertexFrame(vertex.id, vertex.name, operators, vertex.parallelism, metrics, vertex.x, vertex.y, vertex.chain)
