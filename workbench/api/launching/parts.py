"""What the architecture of fault tolerance of a run replaces in its tasks, and the pipelines that it cannot run."""

from __future__ import annotations

from typing import cast

from workbench.clock import Clock
from workbench.connectors.contract.base import Sink, Source
from workbench.errors import PlanError
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.batches.queue import BatchQueue
from workbench.runtime.checkpoints.background import Background
from workbench.runtime.tasks.execution import Parts
from workbench.runtime.transactions.memory_store import MemoryStore
from workbench.runtime.transactions.transactions import Transactions


def opened_parts(policy: FaultTolerance, background: Background, clock: Clock) -> Parts | None:
    """The parts for a run with this policy; None: nothing is replaced."""
    if policy.batches is not None:
        return BatchQueue(background, clock.now_us)
    return None if policy.transactions is None else Transactions(MemoryStore())


def check_transactions(policy: FaultTolerance, logical: LogicalGraph, graph: PhysicalGraph) -> None:
    """Reject pipelines that cannot run with transactions; other policies accept all.

    Raises:
        PlanError: names the operator and the fix.
    """
    knobs = policy.transactions
    if knobs is None:
        return
    for node in logical.nodes:
        uid = logical.uids[node]
        if node.role == "source" and not cast("Source", node.spec).resettable:
            raise PlanError(
                f"the source {uid!r} cannot take part in transactions, because it cannot be read again from a "
                "position: read from a source that can, or choose fault_tolerance='at-most-once'"
            )
        if node.role == "sink" and (found := cast("Sink", node.spec).guarantee) != "exactly-once":
            raise PlanError(
                f"the sink {uid!r} cannot take part in transactions, because it writes {found} whatever a job does: "
                "write to a TableSink, ParquetSink, FileSink or SqlSink, or choose fault_tolerance='changelog'"
            )
        if node.watermarks is not None and node.watermarks.align is not None:
            raise PlanError(
                f"the source {uid!r} has aligned watermarks, and with transactions each source restarts alone: leave "
                "out align, or choose fault_tolerance='snapshots'"
            )
    for vertex in graph.vertices:
        senders = sum(len(edge.pairs) for edge in vertex.ins) // vertex.parallelism
        if not knobs.strong and senders > 1:
            raise PlanError(
                f"the operator {vertex.name!r} has {senders} senders in each subtask, and with strong=false a "
                "repetition must find its input in the same order: choose strong=true, or parallelism=1 without unions "
                "and joins"
            )
