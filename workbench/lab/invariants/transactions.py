"""The invariants of a job with transactions, instead of those of checkpoints: T1 to T5.

T1: one write holds the state and the ids of exactly the records that the task has processed since its last write.
T2: with strong productions nothing is sent before the store holds it.
T3: nothing is acknowledged before the store holds its effect.
T4: the write of a task that was replaced fails.
T5: no record id is processed twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workbench.drivers.contract.probes import Point, Probes
from workbench.elements import Element, Records, Watermark, WatermarkStatus
from workbench.operators.contract.base import Counters
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.transactions.store import FencedWriteError, Origin, Row, Store, Write
from workbench.runtime.transactions.tasks import TransactionalOperatorTask, TransactionalSourceTask, TransactionalTask
from workbench.runtime.transactions.transactions import Transactions


class TransactionChecker(Probes):
    """Collects violations of one run, over all its attempts and restarts.

    Attributes:
        violations: one sentence each, beginning with the invariant's number.
        overshoot, totals: as of `Checker`; not observed here.
        master: of the job.
        zombies: how many writes of replaced tasks were tried.
    """

    points = frozenset[Point](("process",))
    overshoot = 0
    totals: Counters | None = None
    master: Master

    def __init__(self) -> None:
        super().__init__()
        self.violations: list[str] = []
        self.zombies = 0
        self._tasks: dict[str, Any] = {}  # those that run, and the last ones of ranges that do not
        self._running: Sequence[Any] = ()
        self._processed: dict[str, int] = {}  # by task: records since its last write
        self._ends: dict[tuple[str, str], int] = {}  # by range and channel: the id behind the last processed one

    def watch(self, master: Master) -> None:
        """A new process runs the job; the memory of an earlier one is gone, and its store with it."""
        self.master = master
        parts: Any = master.services.parts
        assert isinstance(parts, Transactions)
        parts.store = WatchedStore(parts.store, self)
        self._tasks, self._processed = {}, {}

    def obey(self, master: Master) -> None:
        """Use this master from now on."""
        self.master = master

    def attached(self, execution: Execution) -> None:
        for task in execution.tasks:
            former = self._tasks.get(task.name)
            if former is not None and former is not task:
                self._processed[task.name] = 0
                self._try_zombie(former)
        self._running = execution.tasks
        self._tasks |= {task.name: task for task in execution.tasks}

    def _try_zombie(self, task: TransactionalTask) -> None:
        own = task.transaction
        self.zombies += 1
        try:
            own.store.write(Write(own.range, own.token, states={"zombie": b""}))
        except FencedWriteError:
            return
        self.violations.append(f"T4: {own.range} was replaced, and could still write")

    def sent(self, channel: Channel, element: Element) -> None:
        task = self._tasks[channel.source]
        knobs = task.settings.policy.transactions
        if not (knobs.strong or isinstance(task, TransactionalSourceTask)):
            return
        if isinstance(element, Records | Watermark | WatermarkStatus):
            held = task.transaction.store.row(channel.source).productions
            if not any(each.element is element or _same(each.element, element) for each in held):
                self.violations.append(f"T2: {channel.source} sent {type(element).__name__} that is not durable")

    def received(self, channel: Channel, element: Element) -> None:
        """Every probe has this hook."""

    def snapshot_taken(self, taken: object) -> None:
        """Every probe has this hook."""

    def state_read(self, task: str, states: object) -> None:
        """Every probe has this hook."""

    def reached(self, point: Point, owner: str, number: int) -> None:
        if point == "process":
            name, _, uid = owner.partition("/")
            task = self._tasks.get(name)
            if isinstance(task, TransactionalOperatorTask) and uid == task.root.uid:
                self._processed[name] = self._processed.get(name, 0) + number

    def began(self, writes: Iterable[Write]) -> None:
        """The store begins anew."""
        self._ends = {}
        self._processed = {}

    def wrote(self, write: Write, row: Row) -> None:
        """A transaction was written."""
        for channel, first, count in write.taken:
            end = self._ends.get((write.range, channel), 0)
            if first < end:
                self.violations.append(f"T5: {write.range} processed the ids {first} to {end - 1} of {channel} twice")
            self._ends[write.range, channel] = max(end, first + count)
        task = self._tasks.get(write.range)
        if write.facts is None or not isinstance(task, TransactionalOperatorTask):
            return
        processed = self._processed.pop(write.range, 0)
        if processed != task.transaction.records:
            self.violations.append(
                f"T1: {write.range} writes the ids of {task.transaction.records} records, and has processed {processed}"
            )

    def after_step(self, actor: str) -> None:
        """Compare what a task has acknowledged with what it has written."""
        task = self._tasks.get(actor)
        if not isinstance(task, TransactionalOperatorTask):
            return
        for delivery in task.transaction.inbound:
            if delivery.acknowledged > self._ends.get((actor, delivery.key), 0):
                self.violations.append(f"T3: {actor} acknowledged {delivery.key} to {delivery.acknowledged} too early")

    def finished(self) -> None:
        """Everything that was sent is acknowledged."""
        for task in self._running:
            for delivery in task.transaction.outbound:
                if delivery.acknowledged < delivery.next_id:
                    self.violations.append(f"T3: {delivery.key} has ended, and not everything is acknowledged")

    def let_go(self) -> None:
        """Release everything immediately; the checker cannot be used any more."""
        vars(self).clear()


class WatchedStore:
    """A store that reports what is written.

    Args:
        store: the store.
        checker: receives the reports.
    """

    def __init__(self, store: Store, checker: TransactionChecker) -> None:
        self._store = store
        self._checker = checker

    def open(self, rows: str, owner: str, forget: str = "") -> None:
        self._store.open(rows, owner, forget)

    @property
    def origin(self) -> Origin | None:
        return self._store.origin

    def begin(self, writes: Iterable[Write], origin: Origin) -> None:
        found = list(writes)
        self._store.begin(found, origin)
        self._checker.began(found)

    def knows(self, checkpoint_id: int) -> bool:
        return self._store.knows(checkpoint_id)

    def claim(self, range: str) -> int:
        return self._store.claim(range)

    def write(self, write: Write) -> None:
        self._store.write(write)
        self._checker.wrote(write, self._store.row(write.range))

    def row(self, range: str) -> Row:
        return self._store.row(range)

    def taken(self, range: str, channel: str) -> list[tuple[int, int]]:
        return self._store.taken(range, channel)

    def close(self) -> None:
        self._store.close()

    def end(self) -> None:
        self._store.end()


def _same(one: Element, other: Element) -> bool:
    """Whether two control elements, or two batches that were read from a file, are equal."""
    if isinstance(one, Records) and isinstance(other, Records):
        return bool(one.batch.equals(other.batch))
    return not isinstance(one, Records) and one == other
