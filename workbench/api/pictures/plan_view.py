"""The physical graph of a pipeline or job, for display: as a picture, as text and as data (F1-2, F2-2, F2-3)."""

from __future__ import annotations

from workbench.api.pictures.picture import graph_svg
from workbench.api.pictures.status import Table
from workbench.operators.changelogs.row_kinds import Grows
from workbench.plan.physical import Edge, PhysicalGraph
from workbench.runtime.settings.settings import Settings
from workbench.telemetry.frames import Frame

_LIMIT = "a window, bounds on event time, or state_ttl('1d')"
_LIMITS = {
    **dict.fromkeys(("aggregate", "apply", "reduce"), "a window of time"),
    "match": "within('1h')",
    "over": "a range of time",
}
"""What limits the state of an operator, by its kind; otherwise `_LIMIT`."""


class PlanView:
    """What runs where; made by ``Pipeline.explain`` and ``Job.graph``.

    Source: F1-2, F2-2, F2-3.

    Attributes:
        svg: the picture; with a frame, including the rates of its moment.
        slots: the tasks in each slot, by the slot's name (``"tm-0/slot-1"``).
        channels: the number of channels of all exchanges.
        buffers: the number of buffers that receivers grant on them; the senders' pools are additional.

    Example:
        >>> import pyarrow as pa
        >>> from workbench import Stream, TableSink
        >>> stream = Stream.from_table(pa.table({"n": [1]})).rebalance().filter("n > 0")
        >>> plan = stream.sink_to(TableSink("out")).explain(parallelism=4)
        >>> plan.channels
        16
        >>> plan.slots["tm-1/slot-0"]
        ['table[2]', 'filter[2]']
    """

    def __init__(self, graph: PhysicalGraph, title: str, settings: Settings, frame: Frame | None = None) -> None:
        self._graph = graph
        self._credit = settings.buffers_per_channel
        self.svg = graph_svg(graph, title=title, frame=frame)
        self.slots = graph.placement
        self.channels = graph.channels
        self.buffers = graph.channels * self._credit

    @property
    def vertices(self) -> Table:
        """One row per vertex: its name, operators, parallelism, slot sharing group and the slots of its subtasks."""
        name = self._graph.slot_name
        return Table(
            [
                {
                    "vertex": vertex.name,
                    "operators": ", ".join(vertex.chain),
                    "parallelism": vertex.parallelism,
                    "slot_sharing_group": vertex.slot_sharing_group,
                    "slots": ", ".join(name(slot) for slot in vertex.slots),
                }
                for vertex in self._graph.vertices
            ]
        )

    @property
    def edges(self) -> Table:
        """One row per exchange: its ends, kind, channels and the buffers that the receivers grant."""
        return Table(
            [
                {
                    "source": edge.source.name,
                    "target": edge.target.name,
                    "exchange": _kind(edge),
                    "channels": edge.channels,
                    "buffers": edge.channels * self._credit,
                }
                for edge in self._graph.edges
            ]
        )

    @property
    def growing(self) -> dict[str, str]:
        """By operator, the state that grows with the input for ever; a window, or bounds on event time, limit it."""
        found = {}
        for vertex in self._graph.vertices:
            for node, uid in zip(vertex.nodes, vertex.uids, strict=True):
                kept = node.spec.growing() if isinstance(node.spec, Grows) else None
                if kept is not None:
                    found[uid] = kept
        return found

    @property
    def _kinds(self) -> dict[str, str]:
        nodes = (pair for vertex in self._graph.vertices for pair in zip(vertex.uids, vertex.nodes, strict=True))
        return {uid: node.spec.kind for uid, node in nodes}

    def __repr__(self) -> str:
        graph = self._graph
        tasks = sum(vertex.parallelism for vertex in graph.vertices)
        managers = -(-graph.slots // graph.slots_per_taskmanager)
        lines = [
            f"{_count(tasks, 'task')} in {_count(graph.slots, 'slot')} of {_count(managers, 'TaskManager')}, "
            f"{_count(self.channels, 'channel')}, {_count(self.buffers, 'buffer')} granted by the receivers, "
            f"{_count(graph.max_parallelism, 'key group')}"
        ]
        lines += [f"  {vertex.name} x {vertex.parallelism}: {' -> '.join(vertex.chain)}" for vertex in graph.vertices]
        lines += [
            f"  {edge.source.name} -> {edge.target.name}: {_kind(edge)}, {edge.source.parallelism} x "
            f"{edge.target.parallelism} subtasks, {_count(edge.channels, 'channel')}"
            for edge in graph.edges
        ]
        lines += [f"  {slot}: {', '.join(tasks) or 'empty'}" for slot, tasks in self.slots.items()]
        lines += [
            f"  {uid} keeps {kept} for ever: {_LIMITS.get(self._kinds[uid], _LIMIT)} would limit its state"
            for uid, kept in self.growing.items()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.svg


def _kind(edge: Edge) -> str:
    """For example ``hash by origin``, or ``forward (late)`` of a side output."""
    by = ", ".join(edge.keys) if edge.partitioner is None else edge.partitioner.describe()
    return edge.exchange + (f" by {by}" if by else "") + (f" ({edge.tag})" if edge.tag else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
