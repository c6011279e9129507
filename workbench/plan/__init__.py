"""From the user's streams to the running job: the logical graph, the physical graph and its drawing layout.

Belongs here: uids, chaining, exchange strategies, parallelism, slots, layout. Does not: anything that runs.
"""

from workbench.plan.logical import Input, LogicalGraph, Node
from workbench.plan.partitioner import Partitioner
from workbench.plan.physical import Edge, PhysicalGraph, Vertex, build_physical_graph
from workbench.plan.watermark_strategy import WatermarkStrategy

__all__ = [
    "Edge",
    "Input",
    "LogicalGraph",
    "Node",
    "Partitioner",
    "PhysicalGraph",
    "Vertex",
    "WatermarkStrategy",
    "build_physical_graph",
]
