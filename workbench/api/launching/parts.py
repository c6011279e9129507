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
from workbench.runtime.storage import CheckpointStorage
from workbench.runtime.tasks.execution import Parts
from workbench.runtime.transactions.continued import leave
from workbench.runtime.transactions.memory_store import MemoryStore
from workbench.runtime.transactions.sql_store import SqlStore
from workbench.runtime.transactions.transactions import Transactions


def opened_parts(policy: FaultTolerance, background: Background, clock: Clock, run: str) -> Parts | None:
    """The parts for a run with this policy; None: nothing is replaced.

    Args:
        policy: of the run.
        background: does slow writes.
        clock: of the job.
        run: identifies the run.
    """
    if policy.batches is not None:
        return BatchQueue(background, clock.now_us)
    if policy.transactions is None:
        return None
    store = policy.transactions.store
    return (
        Transactions(MemoryStore()) if store is None else Transactions(SqlStore(store), policy.transactions.place, run)
    )


def leave_others(policy: FaultTolerance, storage: CheckpointStorage, *, resumes: bool) -> None:
    """Delete data of another architecture next to the checkpoints that this run does not continue.

    Args:
        policy: of the run.
        storage: of the checkpoints.
        resumes: the run continues where the job ended; False: from a savepoint that the user has named.
    """
    if policy.transactions is None or policy.transactions.store is None or not resumes:
        leave(storage)


def check_transactions(policy: FaultTolerance, logical: LogicalGraph, graph: PhysicalGraph) -> None:
    """Reject pipelines that cannot run with transactions; other policies accept all.

    Raises:
        PlanError: names the operator and the fix.
        SinkError: the database of the store cannot be used.
    """
    knobs = policy.transactions
    if knobs is None:
        return
    if knobs.store is not None:
        SqlStore(knobs.store).check()
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
