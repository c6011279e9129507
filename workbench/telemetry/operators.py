"""The logical graph: every operator of the pipeline, with the sums of its subtasks' counts (F1-1)."""

from __future__ import annotations

from collections import deque

from workbench.plan.logical import Node
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.tasks.execution import Execution
from workbench.telemetry.frames import OperatorFrame, OperatorInput
from workbench.telemetry.tasks import HORIZON_US, Deployed, deployed, runs

_COUNTS = ("numRecordsIn", "numRecordsOut", "numLateRecordsDropped", "numFiredTimers")

_Subtasks = tuple[str | Deployed, ...]
"""An operator's uid and the tasks that count for it: a rate compares counts of the same tasks."""


class OperatorSampler:
    """Sums the counts of each operator over all chains, and computes rates of records."""

    def __init__(self) -> None:
        self._past: dict[_Subtasks, deque[tuple[int, int, int]]] = {}
        self._places: dict[Node, tuple[float, float]] = {}
        self._graph: PhysicalGraph | None = None

    def sample(self, graph: PhysicalGraph, execution: Execution | None, now_us: int) -> tuple[OperatorFrame, ...]:
        """A frame for each operator, inputs first."""
        if graph is not self._graph:
            self._graph, self._places = graph, _lay_out(graph)
        totals, subtasks = _totals(execution)
        self._past = {key: self._past.get(key, deque()) for key in subtasks.values()}
        alive = {
            link.uid for task in (() if execution is None else execution.tasks) if runs(task) for link in task.links
        }
        logical = graph.logical
        vertices = {uid: vertex.id for vertex in graph.vertices for uid in vertex.uids}
        frames = []
        for node in logical.nodes:
            uid = logical.uids[node]
            counts = totals.get(uid, dict.fromkeys(_COUNTS, 0))
            rate_in, rate_out = 0.0, 0.0
            if uid in alive:
                past = self._past[subtasks[uid]]
                rate_in, rate_out = _rates(past, counts["numRecordsIn"], counts["numRecordsOut"], now_us)
            x, y = self._places[node]
            frames.append(
                OperatorFrame(
                    uid=uid,
                    kind=node.spec.kind,
                    description=node.spec.describe(),
                    vertex=vertices[uid],
                    inputs=tuple(
                        OperatorInput(logical.uids[item.node], item.exchange or "forward", item.tag)
                        for item in node.inputs
                    ),
                    metrics={**counts, "numRecordsInPerSecond": rate_in, "numRecordsOutPerSecond": rate_out},
                    x=x,
                    y=y,
                )
            )
        return tuple(frames)


def _rates(past: deque[tuple[int, int, int]], records_in: int, records_out: int, now_us: int) -> tuple[float, float]:
    while len(past) > 1 and now_us - past[0][0] > HORIZON_US:
        past.popleft()
    past.append((now_us, records_in, records_out))
    seconds = (now_us - past[0][0]) / 1e6
    if not seconds:
        return 0.0, 0.0
    return (records_in - past[0][1]) / seconds, (records_out - past[0][2]) / seconds


def _totals(execution: Execution | None) -> tuple[dict[str, dict[str, int]], dict[str, _Subtasks]]:
    """The sums of the counts of each operator's subtasks, and the names of these subtasks."""
    totals: dict[str, dict[str, int]] = {}
    subtasks: dict[str, _Subtasks] = {}
    for task in () if execution is None else execution.tasks:
        for link in task.links:
            own = totals.setdefault(link.uid, dict.fromkeys(_COUNTS, 0))
            subtasks[link.uid] = (*subtasks.get(link.uid, (link.uid,)), deployed(task))
            for name in _COUNTS:
                own[name] += getattr(link.counters, name)
    return totals, subtasks


def _lay_out(graph: PhysicalGraph) -> dict[Node, tuple[float, float]]:
    """Assign layers by the longest path from a source; within a layer, order operators by the mean position of their
    inputs."""
    depth: dict[Node, int] = {}
    layers: dict[int, list[Node]] = {}
    for node in graph.logical.nodes:
        depth[node] = max((depth[item.node] + 1 for item in node.inputs), default=0)
        layers.setdefault(depth[node], []).append(node)
    places: dict[Node, tuple[float, float]] = {}
    last = max(layers)
    for level in sorted(layers):
        row = layers[level]
        row.sort(key=lambda node: sum(places[item.node][1] for item in node.inputs) / max(1, len(node.inputs)))
        for place, node in enumerate(row):
            places[node] = (level / last if last else 0.5, (place + 0.5) / len(row))
    return places
