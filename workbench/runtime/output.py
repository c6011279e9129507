"""The sending end: partial buffers, exchange strategies, and the bounded output pool of a task.

An output keeps one partial buffer for each channel and ships it when it is full, when the buffer timeout has passed
since
its first record, or when a barrier or the end must go. Watermarks and latency markers travel inside the flow: they ship
with the partial buffer behind whose records they stand, so that they do not defeat the buffer timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.elements import Element, LatencyMarker, Records, Watermark, WatermarkStatus
from workbench.runtime.channel import Channel
from workbench.state.key_groups import KeyPartitioner

Route = Callable[[Records], None]


class Partial:
    """The unfinished buffer of one channel, and what must follow its records."""

    __slots__ = ("channel", "marker", "parts", "rows", "since_us", "watermark")

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.parts: list[Records] = []
        self.rows = 0
        self.since_us = 0
        self.watermark: Watermark | None = None
        self.marker: LatencyMarker | None = None

    def ship(self) -> None:
        """Hand everything over to the channel."""
        if self.parts:
            self.channel.push(Records.concat(self.parts))
            self.parts = []
            self.rows = 0
        if self.watermark is not None:
            self.channel.push(self.watermark)
            self.watermark = None
        if self.marker is not None:
            self.channel.push(self.marker)
            self.marker = None
        self.since_us = 0

    @property
    def empty(self) -> bool:
        """Nothing waits here."""
        return not self.since_us


class EdgeOutput:
    """One edge's end in one sending subtask.

    Args:
        channels: to the target's subtasks, in their order; for a forward exchange the one counterpart.
        route: the exchange strategy; see the functions below.
        now_us: reads the injected clock.
    """

    __slots__ = ("_next", "_now_us", "buffer_size", "buffer_timeout_us", "channels", "partials", "route")

    def __init__(
        self,
        channels: Sequence[Channel],
        strategy: str,
        partitioner: KeyPartitioner | None,
        now_us: Callable[[], int],
        buffer_size: int,
        buffer_timeout_us: int | None,
    ) -> None:
        self.channels = tuple(channels)
        self.partials = tuple(Partial(channel) for channel in channels)
        self.buffer_size = buffer_size
        self.buffer_timeout_us = buffer_timeout_us
        self._now_us = now_us
        self._next = 0
        self.route: Route = self._strategy(strategy, partitioner)

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
        rows = len(records)
        if partial.rows and (partial.rows + rows > size or partial.watermark is not None):
            partial.ship()
        while rows > size:
            partial.channel.push(records.slice(0, size))
            records = records.slice(size, rows - size)
            rows -= size
        partial.parts.append(records)
        partial.rows += rows
        if partial.rows >= size or self.buffer_timeout_us == 0:
            partial.ship()
        elif not partial.since_us:
            partial.since_us = self._now_us()

    def emit_watermark(self, watermark: Watermark) -> None:
        """Send a watermark to every channel, behind the records that came before it."""
        for partial in self.partials:
            if partial.rows and self.buffer_timeout_us != 0:
                partial.watermark = watermark
            else:
                partial.channel.push(watermark)

    def emit_marker(self, marker: LatencyMarker, turn: int) -> None:
        """Send a latency marker to one channel; `turn` chooses it."""
        partial = self.partials[turn % len(self.partials)]
        if partial.rows and self.buffer_timeout_us != 0:
            partial.marker = marker
        elif self.buffer_timeout_us:
            partial.marker = marker  # it waits as a record would that came now
            partial.since_us = self._now_us()
        else:
            partial.channel.push(marker)

    def emit_event(self, element: Element) -> None:
        """Ship everything, then send an element that must not wait (a barrier, idleness, the end) to every channel."""
        for partial in self.partials:
            partial.ship()
            partial.channel.push(element)

    def emit_status(self, status: WatermarkStatus) -> None:
        """Tell every channel that this output became idle or active."""
        self.emit_event(status)

    def ship_due(self, now_us: int) -> bool:
        """Ship the partial buffers whose timeout has passed; whether there was one."""
        timeout = self.buffer_timeout_us
        if timeout is None:
            return False
        shipped = False
        for partial in self.partials:
            if partial.since_us and now_us - partial.since_us >= timeout:
                partial.ship()
                shipped = True
        return shipped

    def ship_all(self) -> None:
        """Ship every partial buffer."""
        for partial in self.partials:
            partial.ship()

    def next_due_us(self) -> int | None:
        """When the oldest partial buffer's timeout ends."""
        if self.buffer_timeout_us is None:
            return None
        since = [partial.since_us for partial in self.partials if partial.since_us]
        return min(since) + self.buffer_timeout_us if since else None


class OutputPool:
    """The bounded output buffers of one task (F2-3): what lies on the sender's side, and the partial buffers.

    A task takes no further input while its pool is used up. The pool is counted, not allocated: buffers are immutable
    batches that pass to the receiver without a copy.
    """

    __slots__ = ("_outputs", "floating", "total")

    def __init__(self, outputs: Sequence[EdgeOutput], floating: int) -> None:
        self._outputs = tuple(outputs)
        self.floating = floating
        channels = sum(len(output.channels) for output in outputs)
        self.total = 2 * channels + floating if channels else 0

    @property
    def used(self) -> int:
        """Buffers in use: on the sender's side of the channels, plus the partial ones."""
        return sum(
            channel.on_sender_side + (1 if partial.rows else 0)
            for output in self._outputs
            for channel, partial in zip(output.channels, output.partials, strict=True)
        )

    @property
    def has_room(self) -> bool:
        """Whether a step may produce output."""
        for output in self._outputs:
            for channel in output.channels:
                if channel.buffers_sent - channel.buffers_received > channel.credit:
                    return self.used < self.total
        return True
