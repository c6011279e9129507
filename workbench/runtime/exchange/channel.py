"""The FIFO from one sending subtask to one receiving subtask, and how the two sides wake each other.

One thread pushes and one thread polls. Every counter has one owner, and ``deque`` appends and pops are atomic, so there
is no lock on the data path. The queue represents two places at once: the first `credit` buffers have been granted by
the receiver and count as its input pool; those behind them count as the sender's output pool (F2-3, F2-4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from workbench.durations import NO_TIME
from workbench.elements import CheckpointBarrier, Element, Records, Watermark
from workbench.runtime.exchange.buffer_bytes import EVENT_TIME_BITS, FREE, BufferBytes
from workbench.runtime.exchange.in_flight import Flow


class Waker:
    """Lets one side of a channel wake the other side's slot when it sleeps.

    A driver that sleeps replaces `wake`; while the slot is running, `parked` saves the call.
    """

    __slots__ = ("parked", "wake")

    def __init__(self) -> None:
        self.parked = False
        self.wake: Callable[[], None] = lambda: None


class Attention:
    """Tells a receiving task that a barrier has overtaken records on one of its channels; shared by all of them.

    The task checks it even while it takes no records, because there is no room or a channel is blocked.
    """

    __slots__ = ("wanted",)

    def __init__(self) -> None:
        self.wanted = False


_NO_GATE = bytearray(1)
"""The marks of channels that lead to no gate; never read."""
_NO_ATTENTION = Attention()
"""For channels that lead to no gate."""


class Channel:
    """A bounded-by-credit FIFO of elements.

    Args:
        edge: id of the edge that the channel belongs to.
        source, target: names of the two tasks.
        credit: number of buffers that the receiver grants.
        sender, receiver: wakers of the two tasks' slots.
        flow: what the channel carries, in terms that stay valid when the plan changes.
        buffer_bytes: computes the size of a buffer.

    Attributes:
        attention: of the receiving task.
        preaggregates: some buffers may be aggregated before they are sent.
        full: the sending task's channels that had no credit left at their last push.
        watermark_us: the last watermark sent; NO_TIME before the first.
    """

    __slots__ = (
        "__weakref__",
        "_at",
        "_buffer_bytes",
        "_ready",
        "_row_bits",
        "_timed_row_bits",
        "_weights",
        "attention",
        "buffers_received",
        "buffers_sent",
        "bytes_received",
        "bytes_sent",
        "credit",
        "edge",
        "elements",
        "flow",
        "full",
        "preaggregates",
        "receiver",
        "records_received",
        "records_sent",
        "sender",
        "source",
        "target",
        "watermark_us",
    )

    def __init__(
        self,
        edge: str,
        source: str,
        target: str,
        credit: int,
        sender: Waker,
        receiver: Waker,
        flow: Flow | None = None,
        buffer_bytes: BufferBytes = FREE,
    ) -> None:
        self.edge = edge
        self.source = source
        self.target = target
        self.credit = credit
        self.sender = sender
        self.receiver = receiver
        self.flow = flow or Flow(source, None, target, 0, 0, 0, 1)
        self.attention = _NO_ATTENTION
        self._ready, self._at = _NO_GATE, 0
        self.full: set[Channel] = set()
        self.elements: deque[Element] = deque()
        self.watermark_us = NO_TIME
        self.buffers_sent = 0
        self.records_sent = 0
        self.buffers_received = 0
        self.records_received = 0
        self.bytes_sent = 0
        self.bytes_received = 0
        self._buffer_bytes = buffer_bytes
        self.preaggregates = buffer_bytes.preaggregates
        self._row_bits = buffer_bytes.row_bits
        self._timed_row_bits = buffer_bytes.row_bits + EVENT_TIME_BITS
        # Where sizes are measured, the receiver uses the sender's figure; where they are constant, both multiply.
        self._weights: deque[int] | None = None if buffer_bytes.is_flat else deque()

    def lead_to(self, ready: bytearray, at: int, attention: Attention) -> None:
        """Register with a gate as channel `at`; the gate finds non-empty channels in `ready`."""
        self._ready, self._at, self.attention = ready, at, attention
        ready[at] = 1  # the gate checks for itself

    def push(self, element: Element) -> None:
        """Append an element (the sender's side)."""
        if type(element) is Records:
            rows = element.batch.num_rows
            self.buffers_sent += 1
            self.records_sent += rows
            if self.buffers_sent - self.buffers_received >= self.credit:
                self.full.add(self)
            if self._weights is None:
                bits = self._row_bits if element.timestamps is None else self._timed_row_bits
                self.bytes_sent += (rows * bits + 7) >> 3
            else:
                weight = self._buffer_bytes.of(element)
                self._weights.append(weight)
                self.bytes_sent += weight
        elif type(element) is Watermark:
            self.watermark_us = element.timestamp_us
        self.elements.append(element)
        self._ready[self._at] = 1
        if self.receiver.parked:
            self.receiver.wake()

    def poll(self) -> Element | None:
        """Take the oldest element (the receiver's side)."""
        if not self.elements:
            return None
        element = self.elements.popleft()
        if type(element) is Records:
            in_flight = self.buffers_sent - self.buffers_received
            rows = element.batch.num_rows
            self.buffers_received += 1
            self.records_received += rows
            if self._weights is None:
                bits = self._row_bits if element.timestamps is None else self._timed_row_bits
                self.bytes_received += (rows * bits + 7) >> 3
            else:
                self.bytes_received += self._weights.popleft()
            if in_flight >= self.credit and self.sender.parked:  # no other sender can have waited for room
                self.sender.wake()
        return element

    def ahead(self, barrier: CheckpointBarrier) -> CheckpointBarrier:
        """The barrier that overtakes everything sent so far."""
        return replace(barrier, behind=self.buffers_sent, watermark_us=self.watermark_us)

    def overtake(self, barrier: CheckpointBarrier) -> None:
        """Put a barrier ahead of all in-flight records (the sender's side); `behind` of the barrier counts them."""
        self.elements.appendleft(barrier)
        self._ready[self._at] = 1
        self.attention.wanted = True
        if self.receiver.parked:
            self.receiver.wake()

    def rewind(self) -> None:
        """Drop what is queued, because its receiver has failed; neither side may be stepped meanwhile."""
        self.elements.clear()
        if self._weights is not None:
            self._weights.clear()
        self.buffers_received, self.records_received = self.buffers_sent, self.records_sent
        self.bytes_received = self.bytes_sent

    def oldest(self, buffers: int, watermark_us: int) -> tuple[Records | Watermark, ...]:
        """The next `buffers` buffers of records, with the watermarks between them and those up to `watermark_us` behind
        them; all stay in the queue (the receiver's side)."""
        while True:
            try:
                queued = tuple(self.elements)
                break
            except RuntimeError:  # the sender pushed in the meantime, which happens a few times at most
                continue
        found: list[Records | Watermark] = []
        for element in queued:
            if type(element) is Records:
                if not buffers:
                    break
                buffers -= 1
                found.append(element)
            elif type(element) is Watermark and element.timestamp_us <= watermark_us:
                found.append(element)
        return tuple(found)

    @property
    def queued_buffers(self) -> int:
        """Buffers in flight; control elements need no buffer."""
        return max(self.buffers_sent - self.buffers_received, 0)

    @property
    def queued_records(self) -> int:
        """Records in flight."""
        return max(self.records_sent - self.records_received, 0)

    def barriers(self) -> tuple[int, ...]:
        """Ids of the checkpoint barriers that are queued now; for observers, from any thread."""
        return tuple(barrier for barrier, _, _ in self.barriers_ahead())

    def barriers_ahead(self) -> tuple[tuple[int, int, int], ...]:
        """The id of each queued checkpoint barrier, with the records and the buffers in front of it; for observers."""
        try:
            elements = tuple(self.elements)
        except RuntimeError:  # the queue changed while it was copied: skip this observation
            return ()
        found = []
        records = buffers = 0
        for element in elements:
            if type(element) is Records:
                records += element.batch.num_rows
                buffers += 1
            elif type(element) is CheckpointBarrier:
                found.append((element.checkpoint_id, records, buffers))
        return tuple(found)
