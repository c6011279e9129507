"""The open transaction of one task, and what becomes of it: written, acknowledged, sent.

With strong productions the order is: process, write, acknowledge the input, send the productions. With weak ones it is:
process, send, wait until the receivers have acknowledged, write, acknowledge the input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from workbench.from_json import Json
from workbench.operators.contract.base import Snapshot
from workbench.runtime.exchange.chain import Link
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.storage.encoding import encode
from workbench.runtime.transactions.delivery import Delivery
from workbench.runtime.transactions.record_ids import RecordIds
from workbench.runtime.transactions.staged_sink import StagedSink
from workbench.runtime.transactions.store import FencedWriteError, Production, Store, Write, bytes_of


class Phase(Enum):
    """What comes next."""

    PROCESS = "process"
    ACKNOWLEDGE = "acknowledge"
    SEND = "send"
    AWAIT = "await"
    WRITE = "write"


class Transaction:
    """The transactions of one task, one after the other.

    Args:
        range: name of the task.
        store: receives the writes.
        links: its operators, head first.
        outputs: of its chain.
        inbound, outbound: the deliveries of its channels.
        head_state: state of its head in addition to that of the operator; empty: none.
        facts: the event time that it has reached.
        strong: productions are durable before they are sent.

    Attributes:
        store: receives the writes.
        links: its operators, head first.
        phase: of the present transaction.
        token: the task's sequencer.
        ids: of its input.
        records: in the present transaction.
        written: records in all transactions.
        writes, round_trips: writes, and all calls of the store.
        fenced: writes that the store refused.
        written_bytes: of state, productions, rows for sinks and ids in all transactions.
        waits: of those that come: runs of ids that are at hand but not processed.
    """

    def __init__(
        self,
        range: str,
        store: Store,
        links: Sequence[Link],
        outputs: Sequence[EdgeOutput],
        inbound: Sequence[Delivery],
        outbound: Sequence[Delivery],
        head_state: Callable[[], Snapshot],
        facts: Callable[[], Mapping[str, Json]],
        waits: Callable[[], Sequence[tuple[str, int, int]]],
        *,
        strong: bool,
    ) -> None:
        self.range = range
        self.store = store
        self.links = links
        self._outputs = outputs
        self.inbound = tuple(inbound)
        self.outbound = tuple(outbound)
        self._sinks = [link.operator for link in links if isinstance(link.operator, StagedSink)]
        self._head_state, self._facts, self._waits = head_state, facts, waits
        self._strong = strong
        self.phase = Phase.PROCESS
        self.token = 0
        self.ids = RecordIds(range, store, {})
        self.records = self.written = self.writes = self.fenced = self.written_bytes = self._round_trips = 0
        self._touched = False
        self._taken: list[tuple[str, int, int]] = []
        self._again: dict[str, int] = {}
        self._last: dict[str, bytes] = {}

    @property
    def round_trips(self) -> int:
        """How often the store was called."""
        return self._round_trips + self.ids.lookups

    @property
    def taken(self) -> Sequence[tuple[str, int, int]]:
        """The input of the present transaction: key of the channel, first id and number."""
        return self._taken

    @property
    def state_bytes(self) -> int:
        """Bytes of the state that the store holds."""
        return sum(map(len, tuple(self._last.values())))

    @property
    def open(self) -> bool:
        """Whether there is something to write."""
        if self._touched or self._taken or any(sink.fresh for sink in self._sinks):
            return True
        if any(delivery.staged for delivery in self.outbound):
            return True
        return any(1 in output.marks and output.filled() for output in self._outputs)

    @property
    def active_phase(self) -> bool:
        """Whether processing has ended, and other phases follow."""
        return self.phase is not Phase.PROCESS

    @property
    def active(self) -> bool:
        """Whether the next step has something to do for it."""
        return self.phase is not Phase.PROCESS or self.open or any(delivery.again for delivery in self.outbound)

    def send_again(self) -> None:
        """Send again what receivers that were replaced have not acknowledged, or what this task's predecessor sent."""
        for delivery in self.outbound:
            if delivery.again:
                delivery.send_again()

    def took(self, channel: str, first: int, count: int, records: int) -> None:
        """Elements of the input were processed."""
        self._taken.append((channel, first, count))
        self.records += records

    def again(self, delivery: Delivery, below: int) -> None:
        """Acknowledge again elements up to this id, which arrived again after they were processed."""
        if self.open:
            self._again[delivery.key] = max(below, self._again.get(delivery.key, 0))
        else:
            delivery.acknowledge(below)

    def touch(self) -> None:
        """State has changed without input."""
        self._touched = True

    def own(self, token: int) -> None:
        """Write with this sequencer, which was claimed for the task."""
        self.token = token
        self._round_trips += 1
        for sink in self._sinks:
            sink.mark = self._mark

    def remember(self, states: Mapping[str, bytes]) -> None:
        """The store holds this state."""
        self._last = dict(states)

    def first(self, facts: Mapping[str, Json]) -> Write:
        """The first write of the range: the state as it is."""
        return Write(self.range, self.token, self._states(), facts)

    def write_again(self) -> None:
        """Write the processed elements, regardless of the range's current owner.

        Raises:
            FencedWriteError: another task does.
        """
        self._send_to_store(Write(self.range, self.token, states=self._states(), taken=self._taken))

    def end(self) -> None:
        """Nothing more is processed for now: begin with the first phase behind processing."""
        for output in self._outputs:
            output.flush()
        if self._strong:
            self._write()
        else:
            self.phase = Phase.SEND

    def go_on(self) -> bool:
        """Do the next phase; returns whether it could be done."""
        phase = self.phase
        if phase is Phase.ACKNOWLEDGE:
            self._acknowledge()
            self.phase = Phase.SEND if self._strong else Phase.PROCESS
        elif phase is Phase.SEND:
            for delivery in self.outbound:
                delivery.send()
            self.phase = Phase.PROCESS if self._strong else Phase.AWAIT
        elif phase is Phase.AWAIT:
            if not self.acknowledged:
                return False
            self.phase = Phase.WRITE
        elif phase is Phase.WRITE:
            self._write()
        return True

    @property
    def acknowledged(self) -> bool:
        """Whether everything that was sent is acknowledged."""
        return all(delivery.acknowledged >= delivery.next_id for delivery in self.outbound)

    def complete(self) -> None:
        """Do all phases without waiting for others: the job has ended, and only the end of the input follows."""
        for output in self._outputs:
            output.flush()
        self._write()
        self._acknowledge()
        for delivery in self.outbound:
            delivery.send()
        self.phase = Phase.PROCESS

    def _write(self) -> None:
        acknowledged = {each.key: each.acknowledged for each in self.outbound if each.acknowledged > each.settled}
        productions: list[Production] = []
        if self._strong:
            productions = [each for delivery in self.outbound for each in delivery.productions()]
        rows = [row for sink in self._sinks for row in sink.fresh]
        write = Write(
            self.range,
            self.token,
            states=self._states(),
            facts=self._facts(),
            taken=self._taken,
            past={each.key: each.past for each in self.inbound if each.past},
            productions=productions,
            acknowledged=acknowledged,
            rows=rows,
            written={sink.uid: sink.written for sink in self._sinks if sink.written},
        )
        self._send_to_store(write)
        self.writes += 1
        self.written += self.records
        self.written_bytes += bytes_of(write)
        for sink in self._sinks:
            sink.fresh.clear()
        for delivery in self.outbound:
            if delivery.key in acknowledged:
                delivery.forget(acknowledged[delivery.key])
        self.ids.durable(self._waits())
        self.phase = Phase.ACKNOWLEDGE

    def _acknowledge(self) -> None:
        below, self._again = self._again, {}
        for channel, first, count in self._taken:
            below[channel] = max(below.get(channel, 0), first + count)
        for delivery in self.inbound:
            if delivery.key in below:
                delivery.acknowledge(below[delivery.key])
        self._taken = []
        self._touched = False
        self.records = 0

    def _states(self) -> dict[str, bytes]:
        """The encoded state of those operators whose state has changed."""
        changed = {}
        head = self.links[0].uid
        for link in self.links:
            if isinstance(link.operator, StagedSink) or link.writes:
                continue
            state = link.operator.snapshot(self.writes)
            if link.uid == head:
                state = {**state, **self._head_state()}
            content = encode({link.uid: state}).join() if state else b""
            if self._last.get(link.uid, b"") != content:
                self._last[link.uid] = changed[link.uid] = content
        return changed

    def _mark(self, uid: str, checkpoint_id: int, number: int) -> None:
        self._send_to_store(Write(self.range, self.token, flushed=[(uid, checkpoint_id, number)]))

    def _send_to_store(self, write: Write) -> None:
        self._round_trips += 1
        try:
            self.store.write(write)
        except FencedWriteError:
            self.fenced += 1
            raise
