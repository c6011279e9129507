"""Finds where watermarks must stay exactly between the records where they arose.

Several watermarks may be merged into the last one, as long as they make no record late that follows: windows and joins
cannot see the difference. A process function can: its timers fire between two records. So what is upstream of such an
operator keeps each watermark in its place.
"""

from __future__ import annotations

from workbench.operators.contract.base import SeesWatermarks
from workbench.operators.event_time.timestamps import AssignTimestamps
from workbench.plan.logical import LogicalGraph, Node


def exact_emitters(graph: LogicalGraph) -> frozenset[Node]:
    """The nodes behind which each watermark must stay in its place."""
    exact: set[Node] = set()
    for node in reversed(graph.nodes):
        if takes_exact(node, exact):
            exact.update(item.node for item in node.inputs)
    return frozenset(exact)


def takes_exact(node: Node, exact: set[Node] | frozenset[Node]) -> bool:
    """Whether watermarks must arrive at a node in their places; `exact`: the emitters known so far, downstream."""
    spec = node.spec
    if isinstance(spec, SeesWatermarks) and spec.sees_watermarks():
        return True
    return node in exact and not isinstance(spec, AssignTimestamps)  # which replaces the watermarks of its input


def may_idle(graph: LogicalGraph) -> bool:
    """Whether an input may be declared idle, so that others do not wait for it."""
    return any(
        (node.watermarks is not None and node.watermarks.idle_after_us is not None)
        or (isinstance(node.spec, AssignTimestamps) and node.spec.idle_after_us is not None)
        for node in graph.nodes
    )
