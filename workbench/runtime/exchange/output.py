"""The sending end: pending buffers, exchange strategies, and the bounded output pool of a task.

An output keeps one pending buffer for each channel. It ships a buffer when it is full, when the buffer timeout has
passed since its first record, or when a barrier or the end must be sent. Watermarks and latency markers travel inside
the flow: they ship with the pending buffer whose records they follow, so that they do not defeat the buffer timeout.
Further records may join that buffer, ahead of its watermark, as long as none of them is late. So neither late records
nor the content of windows depend on the buffer timeout. On an exact edge none may join it, because an operator behind
it can see which records came before each watermark.

One step may produce more than a buffer: a window that fires emits a row for every key. Rows that exceed the pool stay
in the pending buffer as a *backlog*, uncut, and ship as the receiver makes room; meanwhile the task takes no input. So
in-flight data never exceeds the pool, one buffer for each channel and one step's output (I12).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import CheckpointBarrier, Element, LatencyMarker, Records, Watermark
from workbench.operators.aggregates.local_aggregate import LocalAggregate
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.fills import Fills
from workbench.runtime.exchange.in_flight import InFlight
from workbench.runtime.exchange.marker_route import MarkerRoute
from workbench.runtime.exchange.output_pool import OutputPool
from workbench.runtime.exchange.pending_buffer import PendingBuffer, first_size
from workbench.runtime.exchange.segments import Spreader
from workbench.runtime.exchange.splitters import Splitter
from workbench.state.key_groups import KeyPartitioner

Route = Callable[[Records], None]


class EdgeOutput:
    """One edge's end in one sending subtask.

    Args:
        channels: to the target's subtasks, in their order; for a forward exchange the one counterpart.
        strategy: the kind of exchange.
        splitter: decides where each record goes (hash, shuffle, custom); None where whole batches are passed on.
        columns: those that the receiver reads; None for all.
        now_us: reads the injected clock.
        buffer_size, ship_after_us, debloat_target_us: see `Settings`.
        local: aggregates batches before they are spread by key.
        exact: each watermark stays between the records where it was emitted.

    Attributes:
        arrived_us: arrival time of the records that are sent now, if they arrived before this moment; else 0.
        fills: how its buffers fill.
        markers: where its latency markers go.
        marks: of each channel, 1 where its pending buffer may hold something.
        travelled: rows that were sent, if they may be fewer than the records emitted; else None.
    """

    __slots__ = (
        "_buffer_size",
        "_columns",
        "_next",
        "_now_us",
        "_partitioner",
        "_spreader",
        "arrived_us",
        "channels",
        "debloat_target_us",
        "fills",
        "markers",
        "marks",
        "pending",
        "pool",
        "route",
        "ship_after_us",
        "travelled",
        "watermark_us",
    )

    def __init__(
        self,
        channels: Sequence[Channel],
        strategy: str,
        splitter: Splitter | None,
        columns: Sequence[str] | None,
        now_us: Callable[[], int],
        buffer_size: int,
        ship_after_us: int | None,
        debloat_target_us: int | None = None,
        local: LocalAggregate | None = None,
        exact: bool = False,
    ) -> None:
        self.channels = tuple(channels)
        same = first_size(buffer_size, debloat_target_us), buffer_size, now_us(), exact
        self.pending = tuple(PendingBuffer(channel, target, *same) for target, channel in enumerate(channels))
        self.marks = bytearray(len(self.channels))
        self.markers = MarkerRoute(self.pending)
        self.ship_after_us = ship_after_us
        self.debloat_target_us = debloat_target_us
        self.pool: OutputPool | None = None
        self.arrived_us = 0
        self.fills = Fills()
        self._buffer_size = buffer_size
        self._now_us = now_us
        self._next = 0
        self._spreader: Spreader | None = None
        self._partitioner: KeyPartitioner | None = None
        self._columns = None if columns is None else list(columns)
        self.travelled = None if local is None else 0
        self.watermark_us = NO_TIME
        self.route: Route = self._strategy(strategy, splitter, local)

    @property
    def buffer_size(self) -> int:
        """Records in a full buffer, at most."""
        return self._buffer_size

    @buffer_size.setter
    def buffer_size(self, size: int) -> None:
        if size != self._buffer_size:
            self._seal_all()
            self._buffer_size = size
            for pending in self.pending:
                pending.size, pending.largest = first_size(size, self.debloat_target_us), size

    def close(self) -> None:
        """Break reference cycles; nothing is sent any more, and what was not shipped is lost with its task."""
        self.pool = None
        self._spreader = None
        self.route = _nowhere

    def _strategy(self, strategy: str, splitter: Splitter | None, local: LocalAggregate | None) -> Route:
        if isinstance(splitter, KeyPartitioner):
            self._partitioner = splitter
            route = self._hash(splitter)
            return route if local is None else self._aggregated(local, route)
        if splitter is not None:
            return self._projected(self._cut(splitter))
        if strategy == "broadcast":
            return self._projected(self._broadcast)
        if len(self.pending) > 1:  # rescale differs from rebalance in the channels that there are
            return self._projected(self._rebalance)
        only = self.pending[0]
        return self._projected(lambda records: self._append(only, records))

    def _projected(self, route: Route) -> Route:
        columns = self._columns
        if columns is None:
            return route
        return lambda records: route(Records(records.batch.select(columns), records.timestamps))

    def _broadcast(self, records: Records) -> None:
        for pending in self.pending:
            self._append(pending, records)

    def filled(self) -> Sequence[PendingBuffer]:
        """The pending buffers that hold anything; in a wide exchange most are empty most of the time."""
        marks = self.marks
        at = marks.find(1)
        if at < 0:
            return ()
        found = []
        while at >= 0:
            pending = self.pending[at]
            if pending.rows or pending.since_us:
                found.append(pending)
            else:
                marks[at] = 0
            at = marks.find(1, at + 1)
        return found

    def _rebalance(self, records: Records) -> None:
        # Round robin in runs of at most one buffer: every channel gets the same number of records in the long run.
        count = len(self.pending)
        run = max(1, min(self._buffer_size, -(-len(records) // count)))
        for offset in range(0, len(records), run):
            self._append(self.pending[self._next], records.slice(offset, min(run, len(records) - offset)))
            self._next = (self._next + 1) % count

    def _cut(self, splitter: Splitter) -> Route:
        split = splitter.split

        def cut(records: Records) -> None:
            for pending, part in zip(self.pending, split(records), strict=True):
                if part is not None:
                    self._append(pending, part)

        return cut

    def _hash(self, partitioner: KeyPartitioner) -> Route:
        projected = self._projected(self._cut(partitioner))
        spreader = self._spreader = Spreader.of(partitioner)
        if spreader is None:
            return projected

        def hashed(records: Records) -> None:
            if spreader.take(records):
                if self._passes(records):
                    self._pass_on(spreader, records)
                else:
                    self._spread(spreader, records)
            else:
                self._seal_all()
                projected(records)

        return hashed

    def _aggregated(self, local: LocalAggregate, route: Route) -> Route:
        def aggregated(records: Records) -> None:
            folded = local.fold(records, self.watermark_us)
            if folded is None:
                route(records)
            else:
                self.send_preaggregated(folded)
            assert self.travelled is not None
            self.travelled += len(records if folded is None else folded)

        return aggregated

    def send_preaggregated(self, rows: Records) -> None:
        """Send rows that are already aggregated to the owners of the keys of a hash exchange."""
        partitioner = self._partitioner
        assert partitioner is not None, "only what goes by key is aggregated"
        self._seal_all()
        for pending, part in zip(self.pending, partitioner.of(rows.batch.schema).split(rows), strict=True):
            if part is not None:
                self._append(pending, part, preaggregated=True)

    def _passes(self, records: Records) -> bool:
        """Whether the rows can be sent at once: none may wait, none does, and there is room."""
        if self.ship_after_us != 0 or (1 in self.marks and self.filled()) or self.channels[0].full:
            return False
        rows = records.batch.num_rows
        for pending in self.pending:  # noqa: SIM110  a loop takes half the time of a generator
            if rows >= pending.size:
                return False
        return True

    def _pass_on(self, spreader: Spreader, records: Records) -> None:
        """Send the batch that the spreader holds: as `_spread` would, without the steps of a buffer that waits."""
        parts = spreader.write_at_once(records.batch.num_rows, self.pending[0].size)
        now_us = self._now_us()
        for pending, part in zip(self.pending, parts, strict=True):
            if part is not None:
                pending.pass_on(part, now_us, self.debloat_target_us)

    def _spread(self, spreader: Spreader, records: Records) -> None:
        """Write the batch that the spreader holds into the pending buffers."""
        now = self._now_us()
        count = len(records)
        buffers = self.pending
        waiting = any(pending.watermark_us != NO_TIME for pending in buffers)
        earliest_us = _earliest_us(records) if waiting else MAX_TIME
        for pending in buffers:
            self._make_way(pending, earliest_us, now, preaggregated=False)
        row = 0
        totals = [0] * len(buffers)
        while True:
            for target, pending in enumerate(buffers):
                if spreader.is_full(target):
                    self._seal(pending, target)  # its segment may be used up before its buffer is full
                    spreader.give_room(target, pending.size)
            row, added = spreader.write(row)
            for target, pending in enumerate(buffers):
                if added[target]:
                    totals[target] += added[target]
                    pending.turn_to(False)
                    pending.rows += added[target]
                    self.marks[target] = 1
                    pending.since_us = pending.since_us or self.arrived_us or now or 1
            if row >= count:
                break
            for target, pending in enumerate(buffers):
                if spreader.is_full(target):
                    self._seal(pending, target)
                    if self._has_free():
                        self.fills.full(pending.since_us, now)
                        size = self._fitting(pending, now)
                        pending.push_buffer()
                        pending.size = size
        spreader.release()
        for target, pending in enumerate(buffers):
            pending.note(totals[target], rested=self.arrived_us > 0)
            if pending.is_full:
                self._seal(pending, target)
            if pending.rows:
                self._settle(pending, now)

    def _seal(self, pending: PendingBuffer, target: int) -> None:
        """Make a part of the rows written for a channel."""
        if self._spreader is not None and (part := self._spreader.seal(target)) is not None:
            pending.parts.append(part)

    def _seal_all(self) -> None:
        for target, pending in enumerate(self.pending):
            self._seal(pending, target)

    def _make_way(self, pending: PendingBuffer, earliest_us: int, now_us: int, *, preaggregated: bool) -> None:
        """Ship a watermark that the next rows must not precede, or what cannot be in one buffer with them; without
        room, let them be in a later buffer."""
        other = pending.preaggregated is not preaggregated and pending.rows > 0
        behind = pending.divides(earliest_us)
        if (other or behind) and not pending.over and self._has_free():
            self._ship_and_fit(pending, now_us)
        elif behind:
            self._seal(pending, pending.target)
            pending.cut()

    def _append(self, pending: PendingBuffer, records: Records, *, preaggregated: bool = False) -> None:
        now = self._now_us()
        earliest_us = MAX_TIME if pending.watermark_us == NO_TIME else _earliest_us(records)
        self._make_way(pending, earliest_us, now, preaggregated=preaggregated)
        pending.turn_to(preaggregated)
        pending.parts.append(records)
        pending.note(len(records), rested=self.arrived_us > 0)
        pending.rows += len(records)
        self.marks[pending.target] = 1
        pending.since_us = pending.since_us or self.arrived_us or now or 1
        self._settle(pending, now)

    def _settle(self, pending: PendingBuffer, now_us: int) -> None:
        """Ship what is full, and the rest as well if nothing may wait."""
        full_since_us = pending.since_us if pending.is_full else 0
        if pending.over:
            size = self._fitting(pending, now_us)
            if self._push_while_room(pending):
                pending.size = size
                pending.since_us = (self.arrived_us or now_us or 1) if pending.rows else 0  # the rest has just come
        if self._may_go(pending):
            self._ship_and_fit(pending, now_us)
        if full_since_us and not pending.is_full:
            self.fills.full(full_since_us, now_us)

    def _may_go(self, pending: PendingBuffer) -> bool:
        """Whether the buffer is full or nothing may wait, and the pool has room for it."""
        whole = pending.rows >= pending.size or (self.ship_after_us == 0 and pending.rows > 0)
        return whole and not pending.over and (self.pool is None or not self.pool.overdrawn)

    def _fitting(self, pending: PendingBuffer, now_us: int) -> int:
        if self.debloat_target_us is None:
            return pending.size
        return pending.fitting(now_us, self.debloat_target_us)

    def _ship_and_fit(self, pending: PendingBuffer, now_us: int) -> None:
        size = self._fitting(pending, now_us)
        self._ship(pending)
        pending.size = size

    def _ship(self, pending: PendingBuffer) -> None:
        if self._spreader is not None:
            self._seal(pending, pending.target)
        pending.ship()

    def _has_free(self) -> bool:
        return self.pool is None or self.pool.has_free

    def _push_while_room(self, pending: PendingBuffer) -> bool:
        """Ship full buffers of a backlog while the pool has room; returns whether there was one."""
        pushed = False
        while pending.over and self._has_free():
            pending.push_buffer()
            pushed = True
        return pushed

    def drain(self) -> bool:
        """Ship what has waited for room; returns whether there was anything."""
        drained = False
        for pending in self.filled():
            if pending.is_full:
                drained |= self._push_while_room(pending)
                if self._may_go(pending):
                    self._ship(pending)
                    drained = True
        return drained

    def emit_watermark(self, watermark: Watermark) -> None:
        """Send a watermark to every channel, behind the records that came before it."""
        self.watermark_us = watermark.timestamp_us
        for pending in self.pending:
            pending.send_watermark(watermark)

    def emit_marker(self, marker: LatencyMarker, turn: int, *, behind: bool = False) -> None:
        """Send a latency marker to one channel, chosen by `turn`.

        Args:
            marker: what is sent.
            turn: the number of markers so far.
            behind: whether it follows at once where the records before it have left in a full buffer. Otherwise it
                waits as a record would that comes now.
        """
        pending, shipped, waiting = self.markers.of(marker, turn)
        if shipped is not None:
            pending.channel.push(shipped)
        if (pending.rows or self.ship_after_us) and waiting and not (behind and pending.leaves_at_once()):
            pending.follow(waiting, self.markers.lag_us)
            self.marks[pending.target] = 1
            pending.since_us = pending.since_us or self.arrived_us or self._now_us() or 1
        elif waiting:
            pending.channel.push(waiting)

    def emit_event(self, element: Element) -> None:
        """Ship everything, then send an element that must not wait (a barrier, idleness, the end) to every channel."""
        for pending in self.pending:
            self._ship(pending)
            pending.channel.push(element)

    def flush(self) -> None:
        """Ship every pending buffer, whether there is room or not."""
        for pending in self.pending:
            self._ship(pending)

    def overtake(self, barrier: CheckpointBarrier) -> list[InFlight]:
        """Send a barrier to every channel, ahead of all in-flight records; what has not been shipped stays.

        Returns:
            The overtaken records and watermarks that have not been shipped: they belong to the checkpoint.
        """
        held: list[InFlight] = []
        for target, pending in enumerate(self.pending):
            self._seal(pending, target)
            held += pending.held()
            pending.channel.overtake(pending.channel.ahead(barrier))
        return held

    def send_to(self, target: int, records: Records) -> None:
        """Send records to one subtask of a broadcast."""
        self._append(self.pending[target], records)

    def ship_due(self, now_us: int) -> bool:
        """Ship the pending buffers whose timeout has passed; returns whether there was one."""
        timeout = self.ship_after_us
        if timeout is None:
            return False
        shipped = False
        for pending in self.filled():
            if pending.since_us and now_us - pending.since_us >= timeout and not pending.over:
                if self.markers.lag_us is not None:
                    pending.tell_of_all(now_us)
                if not pending.is_full:
                    self.fills.due_rows += pending.rows
                self._ship_and_fit(pending, now_us)
                shipped = True
        return shipped

    def ship_all(self) -> None:
        """Ship every pending buffer that does not wait for room."""
        for pending in self.pending:
            if not pending.over:
                self._ship(pending)

    def next_due_us(self) -> int | None:
        """When the oldest pending buffer's timeout ends; a buffer that waits for room is woken by its receiver."""
        if self.ship_after_us is None:
            return None
        since = min((part.since_us for part in self.filled() if part.since_us and not part.over), default=0)
        return since + self.ship_after_us if since else None


def _earliest_us(records: Records) -> int:
    """The earliest event time of some rows; NO_TIME where they have none."""
    times = records.timestamps
    return NO_TIME if times is None else int(times.min(initial=MAX_TIME))


def _nowhere(records: Records) -> None:
    """Discards the records that are sent through a closed output."""
