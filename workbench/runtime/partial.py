"""The unfinished buffer of one channel.

How many records make a full buffer follows the channel's throughput (Flink: buffer debloating): what comes in
`buffer_debloat_target`, but never more than the buffer size. So buffers are large where much flows, and a channel with
little traffic does not make its records wait for a large buffer to fill.
"""

from __future__ import annotations

from collections import deque

from workbench.elements import LatencyMarker, Records, Watermark
from workbench.runtime.channel import Channel

SMALLEST_BUFFER = 256
"""Records; no buffer is made smaller than this for lack of traffic."""


class Partial:
    """The unfinished buffer of one channel, and what must follow its records.

    Attributes:
        rows: records in it; more than a buffer's while it holds a backlog.
        size: records in a full buffer, at present.
        since_us: when its first record came; 0 while it is empty.
    """

    __slots__ = ("channel", "marker", "parts", "rows", "since_us", "size", "watermark")

    def __init__(self, channel: Channel, size: int) -> None:
        self.channel = channel
        self.size = size
        self.parts: deque[Records] = deque()
        self.rows = 0
        self.since_us = 0
        self.watermark: Watermark | None = None
        self.marker: LatencyMarker | None = None

    def push_buffer(self) -> None:
        """Ship one buffer from the front; parts are cut only where one is larger than a buffer."""
        taken: list[Records] = []
        rows, size = 0, self.size
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
        if not self.rows:
            self.since_us = 0

    def fit(self, now_us: int, target_us: int, largest: int) -> None:
        """Choose the size of a full buffer by the time that these records took to come."""
        elapsed_us = now_us - self.since_us
        wanted = self.rows * target_us // elapsed_us if elapsed_us > 0 else largest
        if wanted >= self.size:
            if self.rows >= self.size:  # it was full in less than the time that it may take
                self.size = min(largest, 2 * self.size)
        elif 2 * wanted < self.size:
            self.size = max(min(SMALLEST_BUFFER, largest), wanted)

    def ship(self) -> None:
        """Hand everything over to the channel."""
        while self.parts:
            self.push_buffer()
        if self.watermark is not None:
            self.channel.push(self.watermark)
            self.watermark = None
        if self.marker is not None:
            self.channel.push(self.marker)
            self.marker = None
        self.since_us = 0
