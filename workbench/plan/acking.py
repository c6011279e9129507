"""Acker tasks in the physical graph (Storm): every task reports to them, and they report back to the sources."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pyarrow as pa

from workbench.connectors.contract.base import Source
from workbench.errors import PlanError
from workbench.operators.acking.acker import ACK_SCHEMA, DONE_SCHEMA, Ackers, done_tag
from workbench.plan.logical import Input, LogicalGraph, Node
from workbench.plan.partitioner import Partitioner
from workbench.plan.physical import Edge, PhysicalGraph, Vertex, lay_out

ACKER = "acker"
"""The name of the acker's vertex."""
ACKS = "$acks"
"""The side output of the first operator of each task that goes to the ackers."""
IDS = (pa.field("$root", pa.int64(), False), pa.field("$id", pa.int64(), False))
"""The columns that records have on their way between tasks: their root, and an id of their own."""


def _root(batch: pa.RecordBatch) -> pa.Array:
    return batch.column(0)


def _subtask(batch: pa.RecordBatch) -> pa.Array:
    return batch.column(1)


_BY_ROOT, _BY_SUBTASK = Partitioner(_root), Partitioner(_subtask)


def with_ackers(graph: PhysicalGraph, ackers: int) -> PhysicalGraph:
    """The graph with a vertex of acker tasks, in the slots that there are.

    Args:
        graph: without ackers, and without aggregation before exchanges, which would merge records of several roots.
        ackers: their number; 0: the graph stays as it is.

    Returns:
        A graph in which each vertex has an edge to the ackers, chosen by the root; and, apart from its edges because
        they go backwards, `returns` from the ackers to each source.
    """
    if not ackers:
        return graph
    sources = [vertex for vertex in graph.vertices if vertex.is_source]
    spec = Ackers(len(sources))
    inputs = tuple(Input(vertex.nodes[0], "custom", tag=ACKS) for vertex in graph.vertices)
    node = Node(spec, inputs, DONE_SCHEMA, dict(spec.side_schemas([])), uid=ACKER)
    slots = tuple(index % graph.slots for index in range(ackers))
    taken = {uid for vertex in graph.vertices for uid in vertex.uids}
    name = next(each for each in (ACKER, *(f"{ACKER}-{n}" for n in range(2, len(taken) + 3))) if each not in taken)
    acker = Vertex(f"v{len(graph.vertices)}", [node], [name], ackers, slots=slots)
    edges = []
    for port, vertex in enumerate(graph.vertices):
        edge = _edge(vertex, acker, vertex.nodes[0], ACKS, port, ACK_SCHEMA, _BY_ROOT)
        vertex.outs.append(edge)
        acker.ins.append(edge)
        edges.append(edge)
    returns = tuple(
        _edge(acker, vertex, node, done_tag(at), at, DONE_SCHEMA, _BY_SUBTASK) for at, vertex in enumerate(sources)
    )
    acker.outs.extend(returns)
    acked = replace(graph, vertices=(*graph.vertices, acker), edges=(*graph.edges, *edges), returns=returns)
    lay_out(acked)
    return acked


def _edge(
    source: Vertex, target: Vertex, producer: Node, tag: str, port: int, schema: pa.Schema, by: Partitioner
) -> Edge:
    return Edge(f"{source.id}->{target.id}", source, target, producer, tag, port, "custom", (), schema, by)


def check_replayable(graph: LogicalGraph) -> None:
    """Reject a pipeline whose sources cannot go back to the oldest record that is not acknowledged.

    Raises:
        PlanError: names the source.
    """
    for node in graph.nodes:
        if node.role == "source" and not cast("Source", node.spec).resettable:
            raise PlanError(
                f"the source {graph.uids[node]!r} cannot be read again from a position, so what is not acknowledged "
                "could not be replayed after a failure: use fault_tolerance='acks:ackers=0', which replays nothing, or "
                "a source that can go back",
                origin=node.origin,
            )


def is_of_acks(edge: Edge) -> bool:
    """Whether an edge leads to the ackers or back, and carries no records of the pipeline."""
    return edge.tag is not None and edge.tag.startswith("$") and edge.schema in (ACK_SCHEMA, DONE_SCHEMA)


def tracked(edge: Edge) -> Edge:
    """The edge with the columns of ids.

    Example:
        >>> [field.name for field in IDS]
        ['$root', '$id']
    """
    schema = pa.schema([*edge.schema, *IDS], metadata=edge.schema.metadata)
    if edge.partitioner is None:
        return replace(edge, schema=schema)
    target, names = edge.partitioner.compiled(edge.schema), edge.schema.names
    return replace(edge, schema=schema, partitioner=Partitioner(lambda batch: target(batch.select(names))))
