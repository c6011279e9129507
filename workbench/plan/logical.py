"""The logical graph: the user's pipeline as data (F1-1).

A node holds a frozen spec (the operation) and its inputs (their nodes and exchanges). Nodes refer to their inputs, so a
stream is just its last node; the graph is collected from the sinks when a job is built, and only then are uids assigned
to nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from workbench.connectors.contract.base import Sink, Source
from workbench.errors import PlanError
from workbench.operators.contract.base import OperatorSpec
from workbench.origin import Origin
from workbench.plan.partitioner import Partitioner
from workbench.plan.watermark_strategy import WatermarkStrategy

ExchangeKind = Literal["forward", "hash", "rebalance", "local rebalance", "shuffle", "broadcast", "custom"]
"""How records are spread over the receiving subtasks (F1-3).

========= ==========================================================================================================
forward   to the subtask with the sender's number; such operators are chained
hash      to the owner of the record's key
rebalance to all subtasks, round robin
local     "local rebalance": round robin to the sender's own share of the subtasks: fewer channels
shuffle   to random subtasks
broadcast to every subtask
custom    to the subtask that a `Partitioner` names
========= ==========================================================================================================
"""

DEFAULT_GROUP = "default"
"""The slot sharing group of operators without one."""


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """One input of a node.

    Attributes:
        node: the origin of the records.
        exchange: how they are spread over subtasks; None leaves the choice to the planner: forward, or if the
            parallelism differs, hash by the keys, or rebalance without keys.
        keys: for a hash exchange.
        tag: of a side output, or None for the main output.
        partitioner: for a custom exchange.
    """

    node: Node
    exchange: ExchangeKind | None = None
    keys: tuple[str, ...] = ()
    tag: str | None = None
    partitioner: Partitioner | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the records on this input."""
        return self.node.schema if self.tag is None else self.node.side_schemas[self.tag]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operator, source or sink of the logical graph.

    Attributes:
        spec: its operation.
        inputs: none for a source.
        schema: of its output; for a sink, of its input.
        side_schemas: by tag.
        watermarks: of a source with event time.
        origin: the user's line.
        uid: given by the user; otherwise derived from the spec's kind when the graph is collected.
        parallelism: given by the user; otherwise the job's.
        slot_sharing_group: given by the user; otherwise that of its inputs, where they share one.
    """

    spec: Source | OperatorSpec | Sink
    inputs: tuple[Input, ...]
    schema: pa.Schema
    side_schemas: dict[str, pa.Schema]
    watermarks: WatermarkStrategy | None = None
    origin: Origin | None = None
    uid: str | None = None
    parallelism: int | None = None
    slot_sharing_group: str | None = None

    @property
    def role(self) -> Literal["source", "operator", "sink"]:
        """Sources have no inputs."""
        if not self.inputs:
            return "source"
        return "sink" if isinstance(self.spec, Sink) else "operator"


@dataclass(frozen=True, slots=True)
class LogicalGraph:
    """All nodes in an order in which inputs come first, with their uids."""

    nodes: tuple[Node, ...]
    uids: dict[Node, str]

    @staticmethod
    def collect(sinks: Sequence[Node]) -> LogicalGraph:
        """The graph that feeds these sinks.

        Raises:
            PlanError: no sink, or two nodes with the same uid.
        """
        if not sinks:
            raise PlanError("the pipeline has no sink: end it with sink_to(wb.TableSink('name'))")
        order: dict[Node, None] = {}
        for sink in sinks:
            _put_behind_its_inputs(sink, order)
        uids: dict[Node, str] = {}
        taken: set[str] = set()
        for node in order:
            if node.uid is not None:
                if node.uid in taken:
                    raise PlanError(f"two operators have the uid {node.uid!r}: give each its own", origin=node.origin)
                taken.add(node.uid)
                uids[node] = node.uid
        for node in order:
            if node.uid is None:
                base = _base_name(node)
                uid, count = base, 1
                while uid in taken:
                    count += 1
                    uid = f"{base}-{count}"
                taken.add(uid)
                uids[node] = uid
        return LogicalGraph(tuple(order), uids)

    @property
    def bounded(self) -> bool:
        """Whether every source comes to an end by itself."""
        return all(getattr(node.spec, "bounded", True) for node in self.nodes if node.role == "source")

    def slot_sharing_groups(self) -> dict[Node, str]:
        """The group of every node: its own, otherwise the one that all its inputs share, otherwise the default."""
        groups: dict[Node, str] = {}
        for node in self.nodes:
            inherited = {groups[item.node] for item in node.inputs}
            groups[node] = node.slot_sharing_group or (inherited.pop() if len(inherited) == 1 else DEFAULT_GROUP)
        return groups

    def used_tags(self, node: Node) -> frozenset[str]:
        """The side outputs of `node` that have a consumer."""
        return frozenset(
            item.tag for other in self.nodes for item in other.inputs if item.node is node and item.tag is not None
        )


def with_nodes_between(sinks: Sequence[Node], between: Callable[[Node, Input], Input]) -> tuple[Node, ...]:
    """The same pipeline, with further nodes between others.

    Args:
        sinks: of the pipeline.
        between: called with each node and each of its inputs, whose own node is made anew already; returns the input
            that the node gets instead.
    """
    made: dict[Node, Node] = {}
    for node in LogicalGraph.collect(sinks).nodes:
        inputs = tuple(between(node, replace(item, node=made[item.node])) for item in node.inputs)
        made[node] = replace(node, inputs=inputs)
    return tuple(made[sink] for sink in sinks)


def _put_behind_its_inputs(node: Node, order: dict[Node, None]) -> None:
    if node not in order:
        for item in node.inputs:
            _put_behind_its_inputs(item.node, order)
        order[node] = None


def _base_name(node: Node) -> str:
    name = getattr(node.spec, "name", None)
    return name if node.role == "sink" and isinstance(name, str) and name else node.spec.kind
