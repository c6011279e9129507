"""The sending end: partial buffers, exchange strategies, and the bounded output pool of a task.

An output keeps one partial buffer for each channel and ships it when it is full, when the buffer timeout has passed
since its first record, or when a barrier or the end must go. Watermarks and latency markers travel inside the flow:
they ship with the partial buffer behind whose records they stand, so that they do not defeat the buffer timeout.

One step may produce more than a buffer: a window that fires gives a row for every key. What the pool has no room for
stays in the partial buffer as a *backlog*, uncut, and ships as the receiver makes room; meanwhile the task takes
nothing in. So what is in flight never exceeds the pool and one step's output (I12).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from workbench.elements import Element, LatencyMarker, Records, Watermark
from workbench.runtime.channel import Channel
from workbench.state.key_groups import KeyPartitioner

Route = Callable[[Records], None]


class Partial:
    """The unfinished buffer of one channel, and what must follow its records.

    Attributes:
        rows: records in it; more than a buffer's while it holds a backlog.
        since_us: when its first record came; 0 while it is empty.
    """

    __slots__ = ("channel", "marker", "parts", "rows", "since_us", "watermark")

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.parts: deque[Records] = deque()
        self.rows = 0
        self.since_us = 0
        self.watermark: Watermark | None = None
        self.marker: LatencyMarker | None = None

    def push_buffer(self, size: int) -> None:
        """Ship one buffer of at most `size` records from the front; parts are cut only where one is larger."""
        taken: list[Records] = []
        rows = 0
        while self.parts:
            part = self.parts[0]
            length = len(part)
            if rows and rows + length > size:
                break
            self.parts.popleft()
            if length > size:
                self.parts.appendleft(part.slice(size, length - size))
                part, length = part.slice(0, size), size
            taken.append(part)
            rows += length
        self.channel.push(Records.concat(taken))
        self.rows -= rows

    def ship(self, size: int) -> None:
        """Hand everything over to the channel."""
        while self.parts:
            self.push_buffer(size)
        if self.watermark is not None:
            self.channel.push(self.watermark)
            self.watermark = None
        if self.marker is not None:
            self.channel.push(self.marker)
            self.marker = None
        self.since_us = 0


class EdgeOutput:
    """One edge's end in one sending subtask.

    Args:
        channels: to the target's subtasks, in their order; for a forward exchange the one counterpart.
        strategy: of the exchange; `partitioner` goes with ``hash``.
        columns: those that the receiver reads; None for all.
        now_us: reads the injected clock.
    """

    __slots__ = ("_next", "_now_us", "buffer_size", "buffer_timeout_us", "channels", "partials", "pool", "route")

    def __init__(
        self,
        channels: Sequence[Channel],
        strategy: str,
        partitioner: KeyPartitioner | None,
        columns: Sequence[str] | None,
        now_us: Callable[[], int],
        buffer_size: int,
        buffer_timeout_us: int | None,
    ) -> None:
        self.channels = tuple(channels)
        self.partials = tuple(Partial(channel) for channel in channels)
        self.buffer_size = buffer_size
        self.buffer_timeout_us = buffer_timeout_us
        self.pool: OutputPool | None = None
        self._now_us = now_us
        self._next = 0
        self.route: Route = self._strategy(strategy, partitioner)
        if columns is not None:
            self.route = _projected(list(columns), self.route)

    def _strategy(self, strategy: str, partitioner: KeyPartitioner | None) -> Route:
        if strategy == "hash":
            assert partitioner is not None
            split = partitioner.split

            def hashed(records: Records) -> None:
                for partial, part in zip(self.partials, split(records), strict=True):
                    if part is not None:
                        self._append(partial, part)

            return hashed
        if strategy == "broadcast":

            def broadcast(records: Records) -> None:
                for partial in self.partials:
                    self._append(partial, records)

            return broadcast
        if strategy == "rebalance" and len(self.partials) > 1:
            return self._rebalance
        only = self.partials[0]
        return lambda records: self._append(only, records)

    def _rebalance(self, records: Records) -> None:
        # Round robin in runs of at most one buffer: every channel gets the same number of records in the long run.
        count = len(self.partials)
        run = max(1, min(self.buffer_size, -(-len(records) // count)))
        for offset in range(0, len(records), run):
            self._append(self.partials[self._next], records.slice(offset, min(run, len(records) - offset)))
            self._next = (self._next + 1) % count

    def _append(self, partial: Partial, records: Records) -> None:
        size = self.buffer_size
        if partial.watermark is not None and partial.rows <= size and self._has_free():
            partial.ship(size)  # without room the watermark waits behind these records too, which is safe
        partial.parts.append(records)
        partial.rows += len(records)
        if partial.rows > size:
            self._push_while_room(partial)
        if partial.rows == size or (self.buffer_timeout_us == 0 and partial.rows < size):
            partial.ship(size)
        elif not partial.since_us:
            partial.since_us = self._now_us()

    def _has_free(self) -> bool:
        return self.pool is None or self.pool.has_free

    def _push_while_room(self, partial: Partial) -> bool:
        """Ship full buffers of a backlog as long as the pool has room; whether there was one."""
        pushed = False
        while partial.rows > self.buffer_size and self._has_free():
            partial.push_buffer(self.buffer_size)
            pushed = True
        return pushed

    def drain(self) -> bool:
        """Ship what has waited for room; whether there was something."""
        drained = False
        for partial in self.partials:
            if partial.rows > self.buffer_size:
                drained |= self._push_while_room(partial)
                if self.buffer_timeout_us == 0 and partial.rows <= self.buffer_size:
                    partial.ship(self.buffer_size)
        return drained

    @property
    def backlogged(self) -> bool:
        """Whether something waits for room."""
        return any(partial.rows > self.buffer_size for partial in self.partials)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Send a watermark to every channel, behind the records that came before it."""
        for partial in self.partials:
            if partial.rows:
                partial.watermark = watermark
            else:
                partial.channel.push(watermark)

    def emit_marker(self, marker: LatencyMarker, turn: int) -> None:
        """Send a latency marker to one channel; `turn` chooses it."""
        partial = self.partials[turn % len(self.partials)]
        if partial.rows or self.buffer_timeout_us:
            partial.marker = marker  # it waits as a record would that came now
            partial.since_us = partial.since_us or self._now_us()
        else:
            partial.channel.push(marker)

    def emit_event(self, element: Element) -> None:
        """Ship everything, then send an element that must not wait (a barrier, idleness, the end) to every channel."""
        for partial in self.partials:
            partial.ship(self.buffer_size)
            partial.channel.push(element)

    def ship_due(self, now_us: int) -> bool:
        """Ship the partial buffers whose timeout has passed; whether there was one."""
        timeout = self.buffer_timeout_us
        if timeout is None:
            return False
        shipped = False
        for partial in self.partials:
            if partial.since_us and now_us - partial.since_us >= timeout and partial.rows <= self.buffer_size:
                partial.ship(self.buffer_size)
                shipped = True
        return shipped

    def ship_all(self) -> None:
        """Ship every partial buffer that is not waiting for room."""
        for partial in self.partials:
            if partial.rows <= self.buffer_size:
                partial.ship(self.buffer_size)

    def next_due_us(self) -> int | None:
        """When the oldest partial buffer's timeout ends; one that waits for room is woken by its receiver."""
        if self.buffer_timeout_us is None:
            return None
        size = self.buffer_size
        since = [partial.since_us for partial in self.partials if partial.since_us and partial.rows <= size]
        return min(since) + self.buffer_timeout_us if since else None


def _projected(columns: list[str], route: Route) -> Route:
    def project(records: Records) -> None:
        route(Records(records.batch.select(columns), records.timestamps))

    return project


class OutputPool:
    """The bounded output buffers of one task (F2-3): what lies on the sender's side, and the partial buffers.

    A task takes no further input while its pool is used up or a backlog waits. The pool is counted, not allocated:
    buffers are immutable batches that pass to the receiver without a copy.
    """

    __slots__ = ("_outputs", "floating", "total")

    def __init__(self, outputs: Sequence[EdgeOutput], floating: int) -> None:
        self._outputs = tuple(outputs)
        self.floating = floating
        channels = sum(len(output.channels) for output in outputs)
        self.total = 2 * channels + floating if channels else 0
        for output in outputs:
            output.pool = self

    @property
    def used(self) -> int:
        """Buffers in use: on the sender's side of the channels, plus the partial ones."""
        return sum(
            channel.on_sender_side + (1 if partial.rows else 0)
            for output in self._outputs
            for channel, partial in zip(output.channels, output.partials, strict=True)
        )

    @property
    def has_free(self) -> bool:
        """Whether one more buffer may be shipped."""
        for output in self._outputs:
            for channel in output.channels:
                if channel.buffers_sent - channel.buffers_received >= channel.credit:
                    return self.used < self.total
        return True

    @property
    def backlogged(self) -> bool:
        """Whether some output waits for room."""
        return any(output.backlogged for output in self._outputs)

    @property
    def has_room(self) -> bool:
        """Whether a step may produce output."""
        return self.has_free and not self.backlogged
