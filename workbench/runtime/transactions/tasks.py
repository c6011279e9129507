"""Tasks whose input takes effect in transactions.

A step stops before the next phase of a transaction where steps are watched one by one, so that a failure, or a look,
between "durable" and "sent" is possible. Under threads a step does all phases.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.durations import NO_TIME
from workbench.elements import Element, LatencyMarker, Records
from workbench.from_json import Json
from workbench.runtime.barriers.transactions import Transactional
from workbench.runtime.exchange.input_gate import InputChannel
from workbench.runtime.exchange.output_pool import OutputPool
from workbench.runtime.messages.messages import Command, Finish, Trigger
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.read_size import ReadSize
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Outcome, Task
from workbench.runtime.transactions.delivery import UNNUMBERED, Delivery
from workbench.runtime.transactions.record_ids import RecordIds
from workbench.runtime.transactions.staged_sink import StagedSink
from workbench.runtime.transactions.store import Row, Store, ids_in
from workbench.runtime.transactions.transaction import Phase, Transaction


class TransactionalOperatorTask(OperatorTask):
    """A task with inputs (see `OperatorTask` for the other arguments).

    Args:
        store: receives its transactions.
        deliveries: of a channel; the same object for both of its tasks.
    """

    def __init__(self, *, store: Store, deliveries: Any, **rest: Any) -> None:
        super().__init__(**rest)
        self._inbound: dict[InputChannel, Delivery] = {item: deliveries(item.channel) for item in self.gate.channels}
        knobs = _knobs(self)
        outbound = _outbound(self, deliveries)
        self._strong = knobs.strong
        for delivery in outbound:
            delivery.awaited = not knobs.strong
        self._waiting: deque[tuple[InputChannel, int, Element]] = deque()  # taken from a channel, not processed yet
        self.transaction = Transaction(
            self.name,
            store,
            self.links,
            self.outputs,
            tuple(self._inbound.values()),
            outbound,
            dict,
            self.facts,
            self._waits,
            strong=knobs.strong,
        )

    def facts(self) -> Mapping[str, Json]:
        """The event time reached, and the next ids."""
        channels: dict[str, Json] = {
            delivery.key: [item.watermark_us, item.idle] for item, delivery in self._inbound.items()
        }
        return {"channels": channels, "valve": [self.valve.output_us, self.valve.idle], **_common(self)}

    def take_over(self, row: Row, latest: int) -> None:
        """Continue where the last transaction of the range has ended.

        Args:
            row: of the range; the operators have their state from it already.
            latest: the checkpoint from which the sinks were restored; 0: none.
        """
        channels: Any = row.facts.get("channels", {})
        for item, delivery in self._inbound.items():
            item.watermark_us, item.idle = channels.get(delivery.key, (NO_TIME, False))
            for first, count in row.taken.get(delivery.key, ())[-1:]:
                delivery.acknowledged = max(delivery.acknowledged, first + count)
        valve: Any = row.facts.get("valve", (NO_TIME, False))
        self.valve.output_us, self.valve.idle = valve
        self.transaction.ids = RecordIds(self.name, self.transaction.store, row.taken)
        _take_over(self, self.transaction, row, latest)

    def step(self) -> Outcome:
        """Do one piece of work, after what is to be sent again."""
        self.transaction.send_again()
        return super().step()

    def _waits(self) -> Sequence[tuple[str, int, int]]:
        return [(self._inbound[item].key, first, ids_in(each)) for item, first, each in self._waiting if first >= 0]

    def _advance(self, now_us: int) -> Outcome:
        transaction = self.transaction
        if transaction.active_phase:
            return self._go_on()
        if now_us < self._not_before_us:
            return Outcome.WAITING
        blocked = not self.pool.has_room or (self._gates and not self._takes_input)
        if not blocked and transaction.records < _knobs(self).coalesce:
            taken = self._next()
            if taken is not None:
                return self._process(*taken, now_us)
        if transaction.open:
            transaction.end()
            return self._go_on() if self.gathers else Outcome.PROGRESSED
        return Outcome.NO_CREDIT if blocked else Outcome.NO_INPUT

    def _go_on(self) -> Outcome:
        """Do the next phase, or all that can be done where steps are not watched."""
        transaction = self.transaction
        moved = transaction.go_on()
        while moved and self.gathers and transaction.active_phase:
            if not transaction.go_on():
                break
        return Outcome.PROGRESSED if moved else Outcome.WAITING

    def _next(self) -> tuple[InputChannel, int, Element] | None:
        """The next new element; duplicates before it are acknowledged again and dropped."""
        while not self._waiting:
            polled = self.gate.poll()
            if polled is None:
                return None
            channel, element = polled
            delivery = self._inbound[channel]
            first = delivery.take()
            if first == UNNUMBERED:
                return channel, first, element
            count = ids_in(element)
            runs = self.transaction.ids.fresh(delivery.key, first, count)
            if sum(length for _, length in runs) < count:
                self.transaction.again(delivery, first + count if not runs else runs[0][0])
            for begin, length in runs:
                part = element.slice(begin - first, length) if isinstance(element, Records) else element
                self._waiting.append((channel, begin, part))
        return self._waiting.popleft()

    def _process(self, channel: InputChannel, first: int, element: Element, now_us: int) -> Outcome:
        transaction = self.transaction
        if first == UNNUMBERED:
            if type(element) is not LatencyMarker and transaction.open:
                self._waiting.appendleft((channel, first, element))  # it follows what is not durable yet
                transaction.end()
                return Outcome.PROGRESSED
            return self._take(channel, element, now_us)
        delivery = self._inbound[channel]
        if isinstance(element, Records):
            room = _knobs(self).coalesce - transaction.records if self._strong else len(element)
            if len(element) > room:
                self._waiting.appendleft((channel, first + room, element.slice(room, len(element) - room)))
                element = element.slice(0, room)
            transaction.took(delivery.key, first, len(element), len(element))
        else:
            transaction.took(delivery.key, first, 1, 0)
        outcome = self._take(channel, element, now_us)
        if not self._strong:  # so that a repetition produces the same ids, whatever waits behind this element
            transaction.end()
        return outcome

    def _call_timed(self, now_us: int) -> bool:
        if self.transaction.active_phase:
            return False
        called = super()._call_timed(now_us)
        if called:
            self.transaction.touch()
        return called

    def _finish(self) -> None:
        super()._finish()
        self.transaction.complete()

    def _emit_marker(self, marker: LatencyMarker) -> None:
        self._marker_turn += 1
        _send_marker(self, marker)

    @property
    def is_quiet(self) -> bool:
        return not self.transaction.active and not self._waiting and super().is_quiet

    @property
    def has_news(self) -> bool:
        return not self.finished and (_can_go_on(self.transaction) or super().has_news)

    def _has_more(self) -> bool:
        return bool(self._waiting) or super()._has_more()


class TransactionalSourceTask(SourceTask):
    """A task that reads a source: what it has read is durable before it is sent (arguments as for
    `TransactionalOperatorTask`)."""

    def __init__(self, *, store: Store, deliveries: Any, **rest: Any) -> None:
        super().__init__(**rest)
        self.gathers = False
        self._counted = 0  # records read in former transactions
        self._read: ReadSize = _FewRecords(self)
        self.transaction = Transaction(
            self.name,
            store,
            self.links,
            self.outputs,
            (),
            _outbound(self, deliveries),
            self.source_state,
            self.facts,
            tuple,
            strong=True,
        )

    def facts(self) -> Mapping[str, Json]:
        """The event time reached, and the next ids."""
        return {"told": self.event_time.told_us, "idle": self.event_time.idle, **_common(self)}

    def take_over(self, row: Row, latest: int) -> None:
        """Continue where the last transaction of the range has ended."""
        told: Any = row.facts.get("told", NO_TIME)
        self.event_time.told_us, self.event_time.idle = told, bool(row.facts.get("idle", False))
        _take_over(self, self.transaction, row, latest)

    def _advance(self, now_us: int) -> Outcome:
        transaction = self.transaction
        if transaction.active_phase:
            transaction.go_on()
            self._gather()
            return Outcome.PROGRESSED
        outcome = Outcome.WAITING
        if self.root.counters.numRecordsIn - self._counted < _knobs(self).coalesce and not self._barrier_waits:
            outcome = super()._advance(now_us)
            if self.root.counters.numRecordsIn > self._counted:
                transaction.touch()
            if outcome is Outcome.PROGRESSED and self._has_more():
                return outcome
        if transaction.open:
            transaction.records = self.root.counters.numRecordsIn - self._counted
            self._counted = self.root.counters.numRecordsIn
            transaction.end()
            self._gather()
            return Outcome.PROGRESSED
        return outcome

    def _gather(self) -> None:
        """Do the remaining phases where steps are not watched."""
        while self.gathers and self.transaction.active_phase:
            self.transaction.go_on()

    def step(self) -> Outcome:
        """Do one piece of work, after what is to be sent again."""
        self.transaction.send_again()
        return super().step()

    def look_every(self, us: int, from_us: int = 0) -> None:
        super().look_every(us, from_us)
        self.gathers = True

    @property
    def _barrier_waits(self) -> bool:
        return bool(self.mailbox) and type(self.mailbox[0]) is Trigger

    def _holds_back(self, command: Command, now_us: int) -> bool:
        if type(command) in (Trigger, Finish) and self.transaction.active:
            return True
        return super()._holds_back(command, now_us)

    def _call_timed(self, now_us: int) -> bool:
        if self.transaction.active_phase:
            return False
        called = super()._call_timed(now_us)
        if called:
            self.transaction.touch()
        return called

    def _finish(self) -> None:
        super()._finish()
        self.transaction.complete()

    def _emit_marker(self, marker: LatencyMarker) -> None:
        self._marker_turn += 1
        _send_marker(self, marker)

    @property
    def is_quiet(self) -> bool:
        return not self.transaction.active and super().is_quiet

    @property
    def has_news(self) -> bool:
        return not self.finished and (self.transaction.active or super().has_news)

    @property
    def rests_until_us(self) -> int:
        return 0 if self.transaction.active else super().rests_until_us

    def _rest_with_buffers(self, rows: int, now_us: int, timeout_us: int) -> None:
        """Never rests for its buffers: they are sent with each transaction."""
        self._rested_us, self._unread_us = now_us, 0


class _FewRecords(ReadSize):
    """Reads no more than fits into the present transaction."""

    __slots__ = ("_task",)

    def __init__(self, task: TransactionalSourceTask) -> None:
        super().__init__()
        self._task = task

    def at_most(self, buffer_size: int, pool: OutputPool) -> int:
        task = self._task
        left = _knobs(task).coalesce - (task.root.counters.numRecordsIn - task._counted)
        return max(1, min(super().at_most(buffer_size, pool), left))


TransactionalTask = TransactionalOperatorTask | TransactionalSourceTask


def _knobs(task: Task) -> Transactional:
    found = task.settings.policy.transactions
    assert found is not None
    return found


def _outbound(task: Task, deliveries: Any) -> list[Delivery]:
    """Put deliveries between the task's outputs and their channels."""
    found = []
    for output in task.outputs:
        for pending in output.pending:
            delivery: Any = deliveries(pending.channel)
            pending.channel = delivery
            found.append(delivery)
    return found


def _common(task: Any) -> dict[str, Json]:
    links: dict[str, Json] = {link.uid: link.watermark_us for link in task.links}
    ids: dict[str, Json] = {delivery.key: delivery.next_id for delivery in task.transaction.outbound}
    return {"links": links, "ids": ids}


def _take_over(task: Task, transaction: Transaction, row: Row, latest: int) -> None:
    links: Any = row.facts.get("links", {})
    ids: Any = row.facts.get("ids", {})
    for link in task.links:
        link.watermark_us = links.get(link.uid, NO_TIME)
        for output in (*link.edges, *(edge for edges in link.side_edges.values() for edge in edges)):
            output.watermark_us = link.watermark_us
        if isinstance(link.operator, StagedSink):
            link.operator.take_over(row.rows, row.flushed.get(link.uid, {}), latest)
    for delivery in transaction.outbound:
        productions = [each for each in row.productions if each.channel == delivery.key]
        delivery.take_over(productions, ids.get(delivery.key, 0))
    transaction.remember(row.states)


def _send_marker(task: Task, marker: LatencyMarker) -> None:
    for output in task.outputs:
        output.pending[task._marker_turn % len(output.pending)].channel.push(marker)


def _can_go_on(transaction: Transaction) -> bool:
    return transaction.active and (transaction.phase is not Phase.AWAIT or transaction.acknowledged)
