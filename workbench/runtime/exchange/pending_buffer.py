"""The unfinished buffer of one channel.

The size of a full buffer follows the channel's throughput (Flink: buffer debloating): what arrives within
`buffer_debloat_target`, but never more than the buffer size. So buffers are large where throughput is high, and records
of a channel with little traffic do not wait for a large buffer to fill. A full buffer is sent at once; what arrives
together with its last record leaves in it, up to the buffer size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import LatencyMarker, Records, Watermark
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.in_flight import InFlight, lasting

SMALLEST_BUFFER = 256
"""Records; low throughput makes no buffer smaller than this."""


EVEN = 8
"""Rows of a buffer from which their arrivals count as evenly spread."""

FIRST_BUFFER = 16_384
"""Records; the limit for a buffer until the channel's throughput is known: a sender holds memory for a full buffer of
each channel, and the number of channels is the square of the parallelism."""


class PendingBuffer:
    """The unfinished buffer of one channel, and the elements that must follow its records.

    Attributes:
        rows: records in it; more than `largest` while it holds a backlog.
        size: records in a full buffer, at present.
        largest: records in any buffer, at most.
        since_us: when its first record arrived, 1 at the earliest; 0 while it is empty.
        preaggregated: the last rows are already aggregated.
        target: index of the channel in its output.
        exact: every watermark stays between the rows where it was emitted.
        watermark_us: the last watermark that waits in it and that further rows may precede; NO_TIME: none.
    """

    __slots__ = (
        "_arrived",
        "_behind",
        "_burst",
        "_cuts",
        "_left_at_once",
        "_marked",
        "_measured_us",
        "_shipped",
        "channel",
        "exact",
        "largest",
        "parts",
        "preaggregated",
        "rows",
        "since_us",
        "size",
        "target",
        "watermark_us",
    )

    def __init__(self, channel: Channel, target: int, size: int, largest: int, now_us: int, exact: bool) -> None:
        self._arrived = 0
        self._burst = 0
        self._measured_us = now_us
        self._cuts: deque[int] = deque()  # rows of the channel behind which a buffer ends, in any case
        self.channel = channel
        self.target = target
        self.exact = exact
        self.size = size
        self.largest = largest
        self.parts: deque[Records] = deque()
        self.rows = 0
        self.since_us = 0
        self.preaggregated = False
        self.watermark_us = NO_TIME
        self._shipped = 0
        self._marked = 0  # rows of the channel at the last latency marker
        self._left_at_once = False
        # Each behind so many rows of the channel, with the lag of a marker that happens to be in this buffer.
        self._behind: deque[tuple[int, Watermark | LatencyMarker, int | None]] = deque()

    @property
    def over(self) -> bool:
        """Whether it holds more than fits into one buffer: too many rows, or a cut between them."""
        return self.rows > self.largest or len(self._cuts) > 0

    @property
    def is_full(self) -> bool:
        """Whether it holds a whole buffer or more."""
        return self.rows >= self.size or len(self._cuts) > 0

    def cut(self) -> None:
        """The rows that are added next belong to another buffer, and come behind the watermark that waits."""
        place = self._shipped + self.rows
        if self.rows and (not self._cuts or self._cuts[-1] != place):
            self._cuts.append(place)
        self.watermark_us = NO_TIME

    def turn_to(self, preaggregated: bool) -> None:
        """The rows that are added next are preaggregated, or records: a buffer holds only one kind."""
        if preaggregated is not self.preaggregated:
            self.preaggregated = preaggregated
            self.cut()

    def divides(self, earliest_us: int) -> bool:
        """Whether a watermark waits in it that further rows, none of them before `earliest_us`, must not precede."""
        return self.watermark_us != NO_TIME and (self.exact or earliest_us <= self.watermark_us)

    def send_watermark(self, watermark: Watermark) -> None:
        """Send a watermark behind the rows that are in it; of several behind one buffer's rows the last is sent, and
        the one at the end of the input, unless the buffer is exact."""
        if not self.rows:
            self.channel.push(watermark)
            return
        self.watermark_us = watermark.timestamp_us
        merged = not (self.exact or self.over or watermark.timestamp_us == MAX_TIME)
        if merged and self._behind and type(self._behind[-1][1]) is Watermark:
            self._behind.pop()
        self._behind.append((self._shipped + self.rows, watermark, None))

    def follow(self, marker: LatencyMarker, lag_us: int | None = None) -> None:
        """Send a marker behind the rows that are in it.

        Args:
            marker: what follows.
            lag_us: of a marker that happens to be in this buffer, how late the records that it follows were read.
        """
        self._behind.append((self._shipped + self.rows, marker, lag_us))

    def _push(self, buffer: Records) -> None:
        """Ship a buffer from the front, and the control elements up to its last row and directly after it."""
        self.channel.push(buffer)
        rows = len(buffer)
        self.rows -= rows
        self._shipped += rows
        if not self.rows:
            self.since_us = 0
        while self._cuts and self._cuts[0] <= self._shipped:
            self._cuts.popleft()
        if self._behind:
            self._push_followers()

    def held(self) -> Sequence[InFlight]:
        """What waits in it, as in-flight data of a checkpoint; nothing if that is no rows."""
        if not self.parts:
            return ()
        marks = [
            (max(0, place - self._shipped), element.timestamp_us)
            for place, element, _ in self._behind
            if type(element) is Watermark
        ]
        return (InFlight(self.channel.flow, tuple(self.parts), held=True, marks=lasting(marks)),)

    def _push_followers(self) -> None:
        behind = self._behind
        while behind and behind[0][0] <= self._shipped:
            self.channel.push(behind.popleft()[1])
        if not behind:
            self.watermark_us = NO_TIME

    def pass_on(self, buffer: Records, now_us: int, target_us: int | None) -> None:
        """Ship rows that do not wait; nothing does."""
        rows = buffer.batch.num_rows
        self.preaggregated = False
        self._arrived += rows
        if rows > self._burst:
            self._burst = rows
        self._shipped += rows
        self.channel.push(buffer)
        if target_us is not None and now_us - self._measured_us >= target_us:
            self.size = self.fitting(now_us, target_us)

    def push_buffer(self) -> None:
        """Ship one buffer from the front; a part is cut only if it is larger than a buffer."""
        if len(self.parts) == 1 and self.rows <= self.largest:  # the usual case with a small buffer timeout
            self._push(self.parts.popleft())
            return
        taken: list[Records] = []
        rows, size = 0, self.largest
        while self.parts:
            part = self.parts[0]
            length = len(part)
            if rows and (rows + length > size or (self._cuts and self._shipped + rows >= self._cuts[0])):
                break
            self.parts.popleft()
            if length > size:
                self.parts.appendleft(part.slice(size, length - size))
                part, length = part.slice(0, size), size
            taken.append(part)
            rows += length
        self._push(self._put_together(taken))

    def _put_together(self, taken: list[Records]) -> Records:
        """Merge the first of these parts into one buffer, usually all of them; the others are put back.

        A column of text holds at most two gigabytes, and not all dictionaries can be merged.
        """
        while True:
            try:
                return Records.concat(taken)
            except pa.ArrowInvalid:
                half = len(taken) // 2
                self.parts.extendleft(reversed(taken[half:]))
                del taken[half:]

    def note(self, rows: int, *, rested: bool) -> None:
        """A step has added `rows` records; `rested`: they have arrived one by one since its task rested."""
        self._arrived += rows
        if rows > self._burst and not rested:
            self._burst = rows

    @property
    def rows_ever(self) -> int:
        """Rows that were shipped or are in it."""
        return self._shipped + self.rows

    def tell_of_all(self, now_us: int) -> None:
        """The buffer is shipped now, at the end of its timeout: a marker that happens to be in it stands for all of its
        rows, which became due evenly until now, the first about as long before it was read as those that the marker
        follows. One of them alone would be a sample. Few rows are no even flow: the first waits for the whole timeout.
        """
        if self.rows < EVEN:
            return
        for place, (rows, element, lag_us) in enumerate(self._behind):
            if lag_us is not None and type(element) is LatencyMarker:
                rested_us = now_us - self.since_us + lag_us
                self._behind[place] = rows, replace(element, marked_us=now_us, rested_us=rested_us), None

    def leaves_at_once(self) -> bool:
        """Whether the records that a latency marker follows, which comes now, have left in a buffer that was full."""
        if self.rows or self.rows_ever != self._marked:
            self._marked, self._left_at_once = self.rows_ever, not self.rows
        return self._left_at_once

    def fitting(self, now_us: int, target_us: int) -> int:
        """The size of the next full buffers, from recent throughput: the rate, or what arrived at once."""
        elapsed_us = now_us - self._measured_us
        if elapsed_us >= target_us:
            wanted = max(self._burst, self._arrived * target_us // elapsed_us)
            self._arrived, self._burst, self._measured_us = 0, 0, now_us
            if 2 * wanted < self.size:
                return max(min(SMALLEST_BUFFER, self.largest), wanted)
        if self.rows >= self.size and 2 * (now_us - self.since_us) < target_us:
            return min(self.largest, 2 * self.size)
        return self.size

    def ship(self) -> None:
        """Hand everything to the channel."""
        while self.parts:
            self.push_buffer()
        self._push_followers()
        self.since_us = 0


def first_size(buffer_size: int, debloat_target_us: int | None) -> int:
    """Records in a full buffer before the channel's throughput is known; with high throughput it soon grows."""
    return buffer_size if debloat_target_us is None else min(buffer_size, FIRST_BUFFER)
