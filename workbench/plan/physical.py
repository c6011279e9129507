"""The physical graph: chained operators as vertices, their parallelism, exchanges and slots (F1-2, F2-2).

An operator is chained to its input when the records would not change subtask anyway: one input, a forward exchange, the
same parallelism and the same slot sharing group. A chain runs as one task, without a buffer between its operators.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from workbench.errors import PlanError
from workbench.operators.aggregates.local_aggregate import LocalAggregation, aggregates_locally
from workbench.operators.contract.base import KeepsWindows
from workbench.operators.event_time.timestamps import AssignTimestamps
from workbench.plan.exact_watermarks import exact_emitters, may_idle, takes_exact
from workbench.plan.logical import DEFAULT_GROUP, ExchangeKind, Input, LogicalGraph, Node
from workbench.plan.partitioner import Partitioner
from workbench.plan.pruning import pruned, travelling
from workbench.plan.slots import SLOTS_PER_TASKMANAGER, assign_slots, slot_name
from workbench.plan.watermark_strategy import WatermarkStrategy
from workbench.state.key_groups import KEY_GROUPS_MOST, default_max_parallelism

LOCAL_AGGREGATE = "local aggregate"
"""The name of the aggregation before an exchange among the operators of a chain."""

CHANNELS_MOST = 1_000_000
"""The limit of a job; that many take some 6 GB, and a typing error could request a thousand times as many."""


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """An exchange between two vertices.

    Attributes:
        id: ``"v1->v2"``, numbered from the second edge between the same two on.
        source, target: vertices.
        producer: the node of the source vertex whose output it carries; `tag` names a side output.
        port: which input of the target's head operator it feeds.
        exchange, keys: how records are spread over the target's subtasks.
        schema: of what travels: only the columns that the target reads, if it knows them.
        partitioner: of a custom exchange.
        local: what can be aggregated before the exchange; None if nothing can or nothing is gained.
        exact: each watermark stays between the records where it was emitted, because an operator behind it sees that.
    """

    id: str
    source: Vertex
    target: Vertex
    producer: Node
    tag: str | None
    port: int
    exchange: ExchangeKind
    keys: tuple[str, ...]
    schema: pa.Schema
    partitioner: Partitioner | None = None
    local: LocalAggregation | None = None
    exact: bool = False

    @property
    def producer_uid(self) -> str:
        """The uid of its producer."""
        return self.source.uids[self.source.nodes.index(self.producer)]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The (sending, receiving) subtasks that have a channel (F2-3).

        Usually all pairs: their number grows with the square of the parallelism. Forward connects equal subtasks only.
        With a local rebalance every subtask of the larger side belongs to one of the smaller side, so there are no more
        channels than subtasks.
        """
        senders, receivers = self.source.parallelism, self.target.parallelism
        if self.exchange == "forward":
            return [(index, index) for index in range(senders)]
        if self.exchange == "local rebalance":
            if senders > receivers:
                return [(sender, sender * receivers // senders) for sender in range(senders)]
            return [(receiver * senders // receivers, receiver) for receiver in range(receivers)]
        return [(sender, receiver) for sender in range(senders) for receiver in range(receivers)]

    @property
    def channels(self) -> int:
        """The number of pairs, without creating them."""
        senders, receivers = self.source.parallelism, self.target.parallelism
        if self.exchange in ("forward", "local rebalance"):
            return max(senders, receivers)
        return senders * receivers


@dataclass(slots=True, eq=False)
class Vertex:
    """A chain of operators that runs as one task per subtask.

    Attributes:
        id: ``"v0"``, ``"v1"``, ... in topological order.
        nodes: head first; every other node's single input is an earlier one.
        uids: of the nodes, in the same order.
        parallelism: number of subtasks.
        slot_sharing_group: vertices of different groups do not share slots.
        slots: the slot of each subtask.
        ins, outs: edges, by port and by creation.
        tells_last: it is a source, and another input may be idle when it ends, whose time does not end then.
        exact: the nodes that emit each watermark between the records where it arose.
        x, y: place in the drawing, 0 to 1.
    """

    id: str
    nodes: list[Node]
    uids: list[str]
    parallelism: int
    slot_sharing_group: str = DEFAULT_GROUP
    slots: tuple[int, ...] = ()
    ins: list[Edge] = field(default_factory=list)
    outs: list[Edge] = field(default_factory=list)
    exact: frozenset[Node] = frozenset()
    tells_last: bool = False
    x: float = 0.0
    y: float = 0.5

    @property
    def name(self) -> str:
        """The head operator's uid; tasks are called ``name[subtask]``."""
        return self.uids[0]

    @property
    def is_source(self) -> bool:
        """Whether the head is a source."""
        return self.nodes[0].role == "source"

    @property
    def sinks(self) -> list[str]:
        """The uids of its sinks."""
        return [uid for node, uid in zip(self.nodes, self.uids, strict=True) if node.role == "sink"]

    @property
    def tasks(self) -> list[str]:
        """The names of its subtasks, ``"aggregate[0]"``."""
        return [f"{self.name}[{subtask}]" for subtask in range(self.parallelism)]

    @property
    def chain(self) -> tuple[str, ...]:
        """The uids of its operators, followed by `LOCAL_AGGREGATE` if large batches are aggregated."""
        local = any(edge.local is not None for edge in self.outs)
        return (*self.uids, LOCAL_AGGREGATE) if local else tuple(self.uids)

    @property
    def watermarks(self) -> WatermarkStrategy | None:
        """How its source derives event time."""
        head = self.nodes[0]
        strategy = head.watermarks
        return strategy.exactly() if strategy is not None and head in self.exact else strategy

    def spec_of(self, node: Node) -> Any:
        """What one of its nodes runs."""
        spec = node.spec
        return spec.exactly() if isinstance(spec, AssignTimestamps) and node in self.exact else spec

    def partner(self) -> Vertex | None:
        """The vertex whose records this one receives subtask by subtask, without an exchange between subtasks."""
        return next((edge.source for edge in self.ins if edge.exchange == "forward"), None)


@dataclass(frozen=True, slots=True)
class PhysicalGraph:
    """Vertices in topological order and the edges between them.

    Attributes:
        max_parallelism: number of key groups, the smallest units of keyed state.
        logical: the graph that it was built from, without unused columns.
        slots: the number of slots that the job needs.
        slots_per_taskmanager: the number of slots of a TaskManager.
        returns: edges that go backwards, from ackers to sources; not among the edges.
    """

    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]
    logical: LogicalGraph
    slots: int
    max_parallelism: int
    slots_per_taskmanager: int = SLOTS_PER_TASKMANAGER
    returns: tuple[Edge, ...] = ()

    def slot_name(self, slot: int) -> str:
        """``"tm-0/slot-1"``: the TaskManager (the failure domain) and its slot."""
        return slot_name(slot, self.slots_per_taskmanager)

    @property
    def number_of_tasks(self) -> int:
        """The number of subtasks of all vertices."""
        return sum(vertex.parallelism for vertex in self.vertices)

    @property
    def placement(self) -> dict[str, list[str]]:
        """The tasks in each slot, by the slot's name, in the order of the vertices (F2-2)."""
        placed: dict[str, list[str]] = {self.slot_name(slot): [] for slot in range(self.slots)}
        for vertex in self.vertices:
            for task, slot in zip(vertex.tasks, vertex.slots, strict=True):
                placed[self.slot_name(slot)].append(task)
        return placed

    @property
    def channels(self) -> int:
        """The number of channels of the job; each needs at least one buffer (F2-3)."""
        return sum(edge.channels for edge in self.edges)

    @property
    def parallelism(self) -> dict[str, int]:
        """Of every operator, by its uid."""
        return {uid: vertex.parallelism for vertex in self.vertices for uid in vertex.uids}

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of every operator, by its uid; it determines whose state the operator can restore: the name of its
        spec's
        class, and its windows: ``WindowAggregate of tumbling 1h windows``.
        """
        specs = {
            uid: node.spec for vertex in self.vertices for node, uid in zip(vertex.nodes, vertex.uids, strict=True)
        }
        windows = {uid: spec.windows_kept() for uid, spec in specs.items() if isinstance(spec, KeepsWindows)}
        return {
            uid: type(spec).__name__ + (f" of {windows[uid]} windows" if uid in windows else "")
            for uid, spec in specs.items()
        }

    def vertex_of(self, uid: str) -> Vertex | None:
        """The vertex whose chain holds the operator `uid`."""
        return next((vertex for vertex in self.vertices if uid in vertex.uids), None)


def build_physical_graph(
    graph: LogicalGraph,
    parallelism: int,
    slots_per_taskmanager: int = SLOTS_PER_TASKMANAGER,
    *,
    local_aggregation: bool = True,
    max_parallelism: int | None = None,
) -> PhysicalGraph:
    """Choose exchanges, chain operators, assign subtasks to slots, and lay out the drawing.

    Args:
        graph: the logical graph.
        parallelism: of all operators without one.
        slots_per_taskmanager: slots of one TaskManager.
        local_aggregation: aggregate batches before exchanges, where possible.
        max_parallelism: number of key groups; None: depends on the largest parallelism of an operator.

    Raises:
        PlanError: a parallelism below 1 or above the number of key groups, or too many channels.
    """
    most = KEY_GROUPS_MOST if max_parallelism is None else max_parallelism
    if not 1 <= parallelism <= most:
        raise _out_of_range("parallelism", parallelism, most)
    for node in graph.nodes:
        if (node.parallelism or 1) > most:
            raise _out_of_range(f"the parallelism of {graph.uids[node]!r}", node.parallelism, most, node)
    if max_parallelism is None:
        max_parallelism = default_max_parallelism(max(node.parallelism or parallelism for node in graph.nodes))
    graph = pruned(graph)
    groups = graph.slot_sharing_groups()
    home: dict[Node, Vertex] = {}
    vertices: list[Vertex] = []
    for node in graph.nodes:
        width, group = node.parallelism or parallelism, groups[node]
        before = home[node.inputs[0].node] if len(node.inputs) == 1 else None
        if before is not None and _chains(node.inputs[0], before, width, group):
            vertex = before
            vertex.nodes.append(node)
            vertex.uids.append(graph.uids[node])
        else:
            vertex = Vertex(f"v{len(vertices)}", [node], [graph.uids[node]], width, group)
            vertices.append(vertex)
        home[node] = vertex
    edges: list[Edge] = []
    exact, idles = exact_emitters(graph), may_idle(graph)
    for vertex in vertices:
        vertex.exact = exact.intersection(vertex.nodes)
        vertex.tells_last = vertex.is_source and idles
        seen = takes_exact(vertex.nodes[0], exact)
        for port, item in enumerate(vertex.nodes[0].inputs):
            schema = travelling(graph, item, vertex.nodes[0])
            local = _local(graph, item, vertex, schema) if local_aggregation else None
            edges.append(_connect(item, home[item.node], vertex, port, edges, schema, local, exact=seen))
    slots = assign_slots(vertices)
    physical = PhysicalGraph(tuple(vertices), tuple(edges), graph, slots, max_parallelism, slots_per_taskmanager)
    if physical.channels > CHANNELS_MOST:
        raise PlanError(
            f"the exchanges have {physical.channels:,} channels, more than the maximum of {CHANNELS_MOST:,}: lower "
            "the parallelism, with whose square they grow, or only that of the operators on one side of an exchange"
        )
    lay_out(physical)
    return physical


def _out_of_range(what: str, parallelism: int | None, most: int, node: Node | None = None) -> PlanError:
    limit = "which no job exceeds" if most == KEY_GROUPS_MOST else "the job's max_parallelism: set that higher"
    return PlanError(
        f"{what} is {parallelism}: it must be between 1 and {most}, {limit}",
        origin=None if node is None else node.origin,
    )


def _chains(item: Input, before: Vertex, width: int, group: str) -> bool:
    direct = item.exchange in (None, "forward")
    return direct and before.parallelism == width and before.slot_sharing_group == group


def _connect(
    item: Input,
    source: Vertex,
    target: Vertex,
    port: int,
    edges: list[Edge],
    schema: pa.Schema,
    local: LocalAggregation | None,
    *,
    exact: bool,
) -> Edge:
    exchange = item.exchange or _chosen(item, source, target)
    if exchange == "forward" and source.parallelism != target.parallelism:
        raise PlanError(
            f"forward from {source.name!r} (parallelism {source.parallelism}) to {target.name!r} "
            f"(parallelism {target.parallelism}): use rebalance()",
            origin=target.nodes[0].origin,
        )
    keys = () if exchange == "forward" else item.keys
    twins = sum(edge.source is source and edge.target is target for edge in edges)
    edge_id = f"{source.id}->{target.id}" + (f"#{twins + 1}" if twins else "")
    edge = Edge(
        edge_id, source, target, item.node, item.tag, port, exchange, keys, schema, item.partitioner, local, exact
    )
    source.outs.append(edge)
    target.ins.append(edge)
    return edge


def _chosen(item: Input, source: Vertex, target: Vertex) -> ExchangeKind:
    """The exchange of an input that leaves it open: one that keeps the order of a key's changes, if it has one."""
    if source.parallelism == target.parallelism:
        return "forward"
    return "hash" if item.keys else "rebalance"


def _local(graph: LogicalGraph, item: Input, target: Vertex, schema: pa.Schema) -> LocalAggregation | None:
    """What can be aggregated before a hash exchange; with a single target nothing is spread, so nothing is saved."""
    head = target.nodes[0]
    if item.exchange != "hash" or target.parallelism == 1 or not aggregates_locally(head.spec):
        return None
    if graph.used_tags(head):
        return None  # a consumer of late records needs single records
    local = head.spec.local_aggregation()
    return local if local is not None and local.keys == item.keys and local.suits(schema) else None


def lay_out(graph: PhysicalGraph) -> None:
    """Layers by the longest path from a source; within a layer, by the mean position of a vertex's inputs."""
    depth: dict[str, int] = {}
    layers: dict[int, list[Vertex]] = {}
    for vertex in graph.vertices:
        depth[vertex.id] = max((depth[edge.source.id] + 1 for edge in vertex.ins), default=0)
        layers.setdefault(depth[vertex.id], []).append(vertex)
    last = max(layers)
    for level in sorted(layers):
        row = layers[level]
        row.sort(key=lambda v: sum(e.source.y for e in v.ins) / len(v.ins) if v.ins else 0.0)
        for place, vertex in enumerate(row):
            vertex.x = level / last if last else 0.5
            vertex.y = (place + 0.5) / len(row)
