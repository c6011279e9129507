"""The transactions of one job: the store, the deliveries between its tasks, and the making of tasks that use them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from weakref import WeakSet

from workbench.operators.contract.base import Operator, Snapshot
from workbench.plan.physical import PhysicalGraph, Vertex
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.storage import CheckpointStorage, Manifest
from workbench.runtime.storage.encoding import decode
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Task
from workbench.runtime.transactions.continued import plan_of, rows_of
from workbench.runtime.transactions.delivery import Delivery
from workbench.runtime.transactions.staged_sink import StagedSink
from workbench.runtime.transactions.store import Origin, Row, Store, Write
from workbench.runtime.transactions.tasks import TransactionalOperatorTask, TransactionalSourceTask, TransactionalTask
from workbench.runtime.transactions.transaction import Transaction

_ENDS = ("final", "savepoint")
"""Kinds of checkpoints after which nothing was written, or from which users continue elsewhere."""


@dataclass(slots=True)
class Totals:
    """What the tasks of a job have counted together, failed ones included.

    Attributes:
        records: written in transactions.
        writes, round_trips: of the store: transactions, and all calls.
        duplicates: elements that arrived again and were dropped.
        false_positives: new elements for which the store was read in vain.
        resent: elements that were sent again.
        fenced: writes of replaced tasks that the store refused.
        written_bytes: by all transactions.
    """

    records: int = 0
    writes: int = 0
    round_trips: int = 0
    duplicates: int = 0
    false_positives: int = 0
    resent: int = 0
    fenced: int = 0
    written_bytes: int = 0

    def add(self, task: TransactionalTask) -> None:
        """Add what a task has counted."""
        transaction = task.transaction
        self.records += transaction.written
        self.writes += transaction.writes
        self.round_trips += transaction.round_trips
        self.duplicates += transaction.ids.duplicates
        self.false_positives += transaction.ids.false_positives
        self.fenced += transaction.fenced
        self.written_bytes += transaction.written_bytes


@dataclass(frozen=True, slots=True)
class Claim:
    """A range that a task owns now: its sequencer, and its row as of then."""

    token: int
    row: Row


class Transactions:
    """What the attempts of a job share under transactions (see `Parts` for what the deployment calls).

    Args:
        store: of the job.
        place: the URL of the store without secrets; empty: it does not outlive the process.
        run: identifies this run of the job.

    Attributes:
        store: of the job.
        deliveries: by the key of their channel.
        graph: the plan whose ranges the store holds; None: none, or those of an earlier process.
    """

    def __init__(self, store: Store, place: str = "", run: str = "") -> None:
        self.store = store
        self.deliveries: dict[str, Delivery] = {}
        self.graph: PhysicalGraph | None = None
        self._place, self._run = place, run
        self._opened = False
        self._past = Totals()
        self._ended: WeakSet[Transaction] = WeakSet()

    def delivery(self, channel: Channel) -> Delivery:
        """The delivery of a channel, the same for its sender and its receiver."""
        made = Delivery(channel)
        found = self.deliveries.get(made.key)
        if found is None or found.channel is not channel:
            self._past.resent += 0 if found is None else found.resent
            found = self.deliveries[made.key] = made
        return found

    def sink(self, uid: str, operator: Operator) -> Operator:
        """A sink whose rows wait in the store."""
        return StagedSink(uid, operator)

    def operator_task(self, **rest: Any) -> OperatorTask:
        """A task with inputs."""
        return TransactionalOperatorTask(store=self.store, deliveries=self.delivery, **rest)

    def source_task(self, **rest: Any) -> SourceTask:
        """A task that reads a source."""
        return TransactionalSourceTask(store=self.store, deliveries=self.delivery, **rest)

    # the life of ranges ----------------------------------------------------------------------------------------------

    def open(self, storage: CheckpointStorage) -> None:
        """Own the rows that continue the checkpoints of this storage; the first call counts."""
        if not self._opened:
            rows, forget = rows_of(storage, self._place, self._run) if self._place else ("", "")
            self.store.open(rows, self._run, forget)
            self._opened = True

    def holds(self, graph: PhysicalGraph, manifest: Manifest | None) -> bool:
        """Whether the store holds the ranges of this plan.

        Those of an earlier process count if the checkpoint from which this one resumes is theirs: it was taken while
        they were written, or they began from it.

        Args:
            graph: the plan.
            manifest: of that checkpoint; None: there is none.
        """
        if self.graph is not None:
            return self.graph is graph
        origin = self.store.origin
        if origin is None or origin.plan != plan_of(graph):
            return False
        if manifest is None:
            return origin.checkpoint_id == 0
        if manifest.kind in _ENDS:
            return False
        return origin.checkpoint_id == manifest.checkpoint_id or self.store.knows(manifest.checkpoint_id)

    def end(self) -> None:
        """The job has ended: a later run begins from its checkpoints."""
        if self._opened:
            self.store.end()

    def begin(self, execution: Execution, graph: PhysicalGraph, checkpoint_id: int) -> None:
        """Write the state of all tasks for the first time: nothing has been stepped yet.

        Args:
            execution: the tasks.
            graph: their plan.
            checkpoint_id: the checkpoint that their state is from; 0: none.
        """
        writes: list[Write] = []
        for task in execution.tasks:
            assert isinstance(task, TransactionalTask)
            task.transaction.own(self.store.claim(task.name))
            writes.append(task.transaction.first(task.facts()))
        self.store.begin(writes, Origin(plan_of(graph), checkpoint_id))
        self.graph = graph

    def claim(self, ranges: Collection[str]) -> dict[str, Claim]:
        """Own these ranges, and read their rows."""
        return {name: Claim(self.store.claim(name), self.store.row(name)) for name in ranges}

    def take_over(self, tasks: Collection[Task], claims: Mapping[str, Claim], latest: int) -> None:
        """These tasks replace others, or those of an earlier attempt; none is stepped yet.

        Args:
            tasks: with the state of their operators already restored.
            claims: of their ranges.
            latest: the checkpoint that the sinks were restored from; 0: none.
        """
        for task in tasks:
            assert isinstance(task, TransactionalTask)
            claim = claims[task.name]
            task.transaction.own(claim.token)
            task.take_over(claim.row, latest)

    def reconnect(self, replaced: Collection[str]) -> None:
        """Let senders send again what receivers that were replaced have not acknowledged."""
        for delivery in self.deliveries.values():
            if delivery.channel.target in replaced:
                delivery.rewind()

    def note_ended(self, tasks: Collection[Task]) -> None:
        """Keep the counts of tasks that have ended."""
        for task in tasks:
            if isinstance(task, TransactionalTask):
                self._past.add(task)
                self._ended.add(task.transaction)

    def note_refused(self, writes: int) -> None:
        """Replaced tasks have woken up, and this many of their writes were refused."""
        self._past.fenced += writes

    def counts(self, execution: Execution | None) -> dict[str, int]:
        """What all tasks have counted, see `Totals`."""
        return asdict(self.totals(() if execution is None else execution.tasks))

    def totals(self, tasks: Collection[Task]) -> Totals:
        """The counts of ended tasks and of these."""
        found = replace(self._past)
        for task in tasks:
            if not isinstance(task, TransactionalTask):
                continue
            if task.transaction not in self._ended:
                found.add(task)
        found.resent += sum(delivery.resent for delivery in tuple(self.deliveries.values()))
        return found


def states_of(row: Row, range: str) -> dict[str, list[Snapshot]]:
    """The state of each operator of a range, as `Operator.restore` takes it."""
    found: dict[str, list[Snapshot]] = {}
    for uid, content in row.states.items():
        if content:
            found |= {uid: [snapshot] for uid, snapshot in decode(content, range).items()}
    return found


def sinks_of(vertex: Vertex) -> list[str]:
    """The uids of the sinks in a vertex."""
    return [uid for node, uid in zip(vertex.nodes, vertex.uids, strict=True) if node.role == "sink"]
