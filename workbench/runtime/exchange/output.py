"""The sending end: partial buffers, exchange strategies, and the bounded output pool of a task.

An output keeps one partial buffer for each channel and ships it when it is full, when the buffer timeout has passed
since its first record, or when a barrier or the end must go. Watermarks and latency markers travel inside the flow:
they ship with the partial buffer behind whose records they stand, so that they do not defeat the buffer timeout.

One step may produce more than a buffer: a window that fires gives a row for every key. What the pool has no room for
stays in the partial buffer as a *backlog*, uncut, and ships as the receiver makes room; meanwhile the task takes
nothing in. So what is in flight never exceeds the pool, one buffer for each channel and one step's output (I12).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from workbench.durations import NO_TIME
from workbench.elements import CheckpointBarrier, Element, LatencyMarker, Records, Watermark
from workbench.operators.aggregates.local_aggregate import LocalAggregate
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.output_pool import OutputPool
from workbench.runtime.exchange.partial import Partial, first_size
from workbench.runtime.exchange.segments import Spreader
from workbench.runtime.exchange.splitters import Splitter
from workbench.state.key_groups import KeyPartitioner

Route = Callable[[Records], None]


class EdgeOutput:
    """One edge's end in one sending subtask.

    Args:
        channels: to the target's subtasks, in their order; for a forward exchange the one counterpart.
        strategy: the kind of exchange.
        splitter: says where each record goes (hash, shuffle, custom); None where whole batches go on.
        columns: those that the receiver reads; None for all.
        now_us: reads the injected clock.
        buffer_size, ship_after_us, debloat_target_us: see `Settings`.
        local: aggregates batches before they are spread by key.

    Attributes:
        arrived_us: since when the records that are sent now have been there, if that was before this moment; else 0.
        travelled: rows that were sent, if that may be fewer than the records that were emitted; else None.
    """

    __slots__ = (
        "_buffer_size",
        "_columns",
        "_filled",
        "_next",
        "_now_us",
        "_partitioner",
        "_spreader",
        "arrived_us",
        "channels",
        "debloat_target_us",
        "partials",
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
    ) -> None:
        self.channels = tuple(channels)
        size, now = first_size(buffer_size, debloat_target_us), now_us()
        self.partials = tuple(Partial(channel, target, size, now) for target, channel in enumerate(channels))
        self._filled = bytearray(len(self.channels))  # 1: something may be in that partial buffer
        self.ship_after_us = ship_after_us
        self.debloat_target_us = debloat_target_us
        self.pool: OutputPool | None = None
        self.arrived_us = 0
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
            for partial in self.partials:
                partial.size = first_size(size, self.debloat_target_us)

    def close(self) -> None:
        """Untie what refers to itself; nothing is sent any more, and what was not shipped is lost with its task."""
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
        if len(self.partials) > 1:  # rescale differs from rebalance in the channels that there are
            return self._projected(self._rebalance)
        only = self.partials[0]
        return self._projected(lambda records: self._append(only, records))

    def _projected(self, route: Route) -> Route:
        columns = self._columns
        if columns is None:
            return route
        return lambda records: route(Records(records.batch.select(columns), records.timestamps))

    def _broadcast(self, records: Records) -> None:
        for partial in self.partials:
            self._append(partial, records)

    def filled(self) -> Sequence[Partial]:
        """The partial buffers in which anything waits; of a wide exchange most are empty most of the time."""
        marks = self._filled
        at = marks.find(1)
        if at < 0:
            return ()
        found = []
        while at >= 0:
            partial = self.partials[at]
            if partial.rows or partial.since_us:
                found.append(partial)
            else:
                marks[at] = 0
            at = marks.find(1, at + 1)
        return found

    def _rebalance(self, records: Records) -> None:
        # Round robin in runs of at most one buffer: every channel gets the same number of records in the long run.
        count = len(self.partials)
        run = max(1, min(self._buffer_size, -(-len(records) // count)))
        for offset in range(0, len(records), run):
            self._append(self.partials[self._next], records.slice(offset, min(run, len(records) - offset)))
            self._next = (self._next + 1) % count

    def _cut(self, splitter: Splitter) -> Route:
        split = splitter.split

        def cut(records: Records) -> None:
            for partial, part in zip(self.partials, split(records), strict=True):
                if part is not None:
                    self._append(partial, part)

        return cut

    def _hash(self, partitioner: KeyPartitioner) -> Route:
        projected = self._projected(self._cut(partitioner))
        spreader = self._spreader = Spreader.of(partitioner)
        if spreader is None:
            return projected

        def hashed(records: Records) -> None:
            if spreader.take(records):
                self._spread(spreader, len(records))
            else:
                self._seal_all()
                projected(records)

        return hashed

    def _aggregated(self, local: LocalAggregate, route: Route) -> Route:
        def aggregated(records: Records) -> None:
            partials = local.fold(records, self.watermark_us)
            if partials is None:
                route(records)
            else:
                self.send_partials(partials)
            assert self.travelled is not None
            self.travelled += len(records if partials is None else partials)

        return aggregated

    def send_partials(self, partials: Records) -> None:
        """Send what is aggregated already to the owners of the keys of a hash exchange."""
        partitioner = self._partitioner
        assert partitioner is not None, "only what goes by key is aggregated"
        self._seal_all()
        for partial, part in zip(self.partials, partitioner.of(partials.batch.schema).split(partials), strict=True):
            if part is not None:
                self._append(partial, part, partials=True)

    def _spread(self, spreader: Spreader, count: int) -> None:
        """Write a batch that the spreader has taken into the partial buffers."""
        now = self._now_us()
        partials = self.partials
        for partial in partials:
            self._make_way(partial, now, partials=False)
        row = 0
        totals = [0] * len(partials)
        while True:
            for target, partial in enumerate(partials):
                if spreader.is_full(target):
                    self._seal(partial, target)  # its segment may be used up before its buffer is full
                    spreader.give_room(target, partial.size)
            row, added = spreader.write(row)
            for target, partial in enumerate(partials):
                if added[target]:
                    totals[target] += added[target]
                    partial.turn_to(False)
                    partial.rows += added[target]
                    self._filled[target] = 1
                    partial.since_us = partial.since_us or self.arrived_us or now
            if row >= count:
                break
            for target, partial in enumerate(partials):
                if spreader.is_full(target):
                    self._seal(partial, target)
                    if self._has_free():
                        size = self._fitting(partial, now)
                        partial.push_buffer()
                        partial.size = size
        spreader.release()
        for target, partial in enumerate(partials):
            partial.note(totals[target])
            if partial.over or partial.rows == partial.size:
                self._seal(partial, target)
            if partial.rows:
                self._settle(partial, now)

    def _seal(self, partial: Partial, target: int) -> None:
        """Make a part of what was written for a channel."""
        if self._spreader is not None and (part := self._spreader.seal(target)) is not None:
            partial.parts.append(part)

    def _seal_all(self) -> None:
        for target, partial in enumerate(self.partials):
            self._seal(partial, target)

    def _make_way(self, partial: Partial, now_us: int, *, partials: bool) -> None:
        """Ship what must not wait behind the next rows, or cannot be in one buffer with them."""
        other = partial.partials is not partials and partial.rows > 0
        if (other or partial.watermark is not None) and not partial.over and self._has_free():
            self._ship_and_fit(partial, now_us)
        # Without room a watermark waits behind the next rows too, which is safe.

    def _append(self, partial: Partial, records: Records, *, partials: bool = False) -> None:
        now = self._now_us()
        self._make_way(partial, now, partials=partials)
        partial.turn_to(partials)
        partial.parts.append(records)
        partial.note(len(records))
        partial.rows += len(records)
        self._filled[partial.target] = 1
        partial.since_us = partial.since_us or self.arrived_us or now
        self._settle(partial, now)

    def _settle(self, partial: Partial, now_us: int) -> None:
        """Ship what is full, and the rest as well if nothing shall wait."""
        if partial.over:
            if self.debloat_target_us is not None:
                partial.size = min(self._buffer_size, max(2 * partial.size, partial.rows))
            self._push_while_room(partial)
        if self._may_go(partial):
            self._ship_and_fit(partial, now_us)

    def _may_go(self, partial: Partial) -> bool:
        """Whether it is full, or nothing shall wait; and its buffer is one of the pool's."""
        whole = partial.rows == partial.size or (self.ship_after_us == 0 and partial.rows > 0)
        return whole and not partial.over and (self.pool is None or not self.pool.overdrawn)

    def _fitting(self, partial: Partial, now_us: int) -> int:
        if self.debloat_target_us is None:
            return partial.size
        return partial.fitting(now_us, self.debloat_target_us, self._buffer_size)

    def _ship_and_fit(self, partial: Partial, now_us: int) -> None:
        size = self._fitting(partial, now_us)
        self._ship(partial)
        partial.size = size

    def _ship(self, partial: Partial) -> None:
        if self._spreader is not None:
            self._seal(partial, partial.target)
        partial.ship()

    def _has_free(self) -> bool:
        return self.pool is None or self.pool.has_free

    def _push_while_room(self, partial: Partial) -> bool:
        """Ship full buffers of a backlog as long as the pool has room; whether there was one."""
        pushed = False
        while partial.over and self._has_free():
            partial.push_buffer()
            pushed = True
        return pushed

    def drain(self) -> bool:
        """Ship what has waited for room; whether there was something."""
        drained = False
        for partial in self.filled():
            if partial.is_full:
                drained |= self._push_while_room(partial)
                if self._may_go(partial):
                    self._ship(partial)
                    drained = True
        return drained

    def emit_watermark(self, watermark: Watermark) -> None:
        """Send a watermark to every channel, behind the records that came before it."""
        self.watermark_us = watermark.timestamp_us
        for partial in self.partials:
            if partial.rows:
                partial.watermark = watermark
            else:
                partial.channel.push(watermark)

    def emit_marker(self, marker: LatencyMarker, turn: int) -> None:
        """Send a latency marker to one channel; `turn` chooses it."""
        partial = self.partials[turn % len(self.partials)]
        if partial.rows or self.ship_after_us:
            partial.marker = marker  # it waits as a record would that came now
            self._filled[partial.target] = 1
            partial.since_us = partial.since_us or self._now_us()
        else:
            partial.channel.push(marker)

    def emit_event(self, element: Element) -> None:
        """Ship everything, then send an element that must not wait (a barrier, idleness, the end) to every channel."""
        for partial in self.partials:
            self._ship(partial)
            partial.channel.push(element)

    def overtake(self, barrier: CheckpointBarrier) -> list[tuple[Channel, tuple[Records, ...]]]:
        """Send a barrier before everything that is in flight to every channel; what has not been shipped stays.

        Returns:
            What that is, by channel: it belongs to the checkpoint.
        """
        held: list[tuple[Channel, tuple[Records, ...]]] = []
        for target, partial in enumerate(self.partials):
            self._seal(partial, target)
            channel = partial.channel
            if partial.parts:
                held.append((channel, tuple(partial.parts)))
            channel.overtake(replace(barrier, behind=channel.buffers_sent))
        return held

    def send_to(self, target: int, records: Records) -> None:
        """Send records to one subtask of a broadcast."""
        self._append(self.partials[target], records)

    def ship_due(self, now_us: int) -> bool:
        """Ship the partial buffers whose timeout has passed; whether there was one."""
        timeout = self.ship_after_us
        if timeout is None:
            return False
        shipped = False
        for partial in self.filled():
            if partial.since_us and now_us - partial.since_us >= timeout and not partial.over:
                self._ship_and_fit(partial, now_us)
                shipped = True
        return shipped

    def ship_all(self) -> None:
        """Ship every partial buffer that is not waiting for room."""
        for partial in self.partials:
            if not partial.over:
                self._ship(partial)

    def next_due_us(self) -> int | None:
        """When the oldest partial buffer's timeout ends; one that waits for room is woken by its receiver."""
        if self.ship_after_us is None:
            return None
        since = min((part.since_us for part in self.filled() if part.since_us and not part.over), default=0)
        return since + self.ship_after_us if since else None


def _nowhere(records: Records) -> None:
    """What a closed output does with records."""
