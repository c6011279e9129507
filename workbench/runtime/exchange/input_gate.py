"""The receiving end: fair polling of one task's channels, and the minimum watermark over them (F2-6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import CheckpointBarrier, Element
from workbench.runtime.exchange.channel import Attention, Channel


class InputChannel:
    """The receiver's view of a channel.

    Attributes:
        port: the input of the head operator that it feeds.
        watermark_us: last watermark received; NO_TIME before the first, MAX_TIME behind the last record.
        ended_us: once that is MAX_TIME, the one before.
        idle: the channel does not take part in the minimum.
        blocked: the channel is not polled, because its barrier has arrived and others' have not.
        blocked_us: when that began, for observers.
        finished: the channel has ended.
        log: while a checkpoint that has overtaken this channel's records waits for its barrier: the buffers and
            watermarks received since the snapshot.
    """

    __slots__ = ("blocked", "blocked_us", "channel", "ended_us", "finished", "idle", "log", "port", "watermark_us")

    def __init__(self, channel: Channel, port: int) -> None:
        self.channel = channel
        self.port = port
        self.watermark_us = self.ended_us = NO_TIME
        self.idle = False
        self.blocked = False
        self.blocked_us = 0
        self.finished = False
        self.log: list[Element] | None = None


class InputGate:
    """All input channels of one task.

    A wide exchange has hundreds of channels, most of them empty. So each sender marks the channel that it has pushed
    to, and only marked channels are polled; the receiver removes the mark when it finds a channel empty.

    Attributes:
        attention: set when a barrier has overtaken records on one of the channels.
    """

    __slots__ = ("_next", "_ready", "attention", "channels", "open_channels")

    def __init__(self, channels: Sequence[InputChannel]) -> None:
        self.channels = tuple(channels)
        self.open_channels = len(self.channels)
        self._next = 0
        self.attention = Attention()
        self._ready = bytearray(len(self.channels))
        for at, channel in enumerate(self.channels):
            channel.channel.lead_to(self._ready, at, self.attention)

    @property
    def bytes_received(self) -> int:
        """On all channels together."""
        return sum(channel.channel.bytes_received for channel in self.channels)

    def poll(self) -> tuple[InputChannel, Element] | None:
        """The next element of an unblocked channel, round robin; None when there is none."""
        count = len(self.channels)
        index = self._first(self._next, count)
        if index < 0:
            index = self._first(0, self._next)
            if index < 0:
                return None
        channel = self.channels[index]
        element = channel.channel.poll()
        assert element is not None
        self._next = index + 1 if index + 1 < count else 0
        return channel, element

    @property
    def has_more(self) -> bool:
        """Whether an unblocked channel holds an element."""
        return 1 in self._ready and self._first(0, len(self.channels)) >= 0

    def filled(self) -> Iterator[InputChannel]:
        """The unblocked channels that hold an element, in order."""
        index = self._first(0, len(self.channels))
        while index >= 0:
            yield self.channels[index]
            index = self._first(index + 1, len(self.channels))

    def _first(self, start: int, stop: int) -> int:
        """The first of these channels that is not blocked and holds an element; -1: none."""
        ready = self._ready
        index = ready.find(1, start, stop)
        while index >= 0:
            channel = self.channels[index]
            if not channel.channel.elements:
                ready[index] = 0
                if channel.channel.elements:  # pushed in the meantime: its new mark may be gone
                    ready[index] = 1
                    continue
            elif not channel.blocked:
                return index
            index = ready.find(1, index + 1, stop)
        return -1

    def overtaking(self) -> list[tuple[InputChannel, CheckpointBarrier]]:
        """Take the barriers that have overtaken records, even from blocked channels."""
        self.attention.wanted = False  # first, so that a barrier that arrives from now on sets it again
        taken: list[tuple[InputChannel, CheckpointBarrier]] = []
        for channel in self.channels:
            elements = channel.channel.elements
            while elements and type(elements[0]) is CheckpointBarrier and elements[0].behind is not None:
                barrier = channel.channel.poll()
                assert type(barrier) is CheckpointBarrier
                taken.append((channel, barrier))
        return taken

    def finish(self, channel: InputChannel) -> bool:
        """Record the end of a channel; returns whether it was the last open one."""
        channel.finished = True
        channel.blocked = False
        self.open_channels -= 1
        return self.open_channels == 0


class WatermarkValve:
    """Combines the watermarks of several inputs: the minimum over the active ones, never decreasing.

    When every input is idle or has ended, the output is idle too, and its watermark is the largest that any input has
    reached: an idle input holds nothing back. The end of an input is the end of its own time only: it moves nothing
    beyond its last watermark while another input may wake up.

    A wide exchange has a hundred inputs, and each of them delivers every watermark. So the minimum is computed again
    only when the last of the slowest inputs has advanced.
    """

    __slots__ = ("_behind", "_channels", "_lowest_us", "idle", "output_us")

    def __init__(self, channels: Sequence[InputChannel]) -> None:
        self._channels = tuple(channels)
        self.output_us = NO_TIME
        self.idle = False
        self._lowest_us = NO_TIME
        self._behind = 0  # active inputs at the minimum; 0: not known

    @property
    def holder(self) -> InputChannel | None:
        """The first of the slowest active inputs; for observers."""
        speaking = [channel for channel in self._channels if not (channel.finished or channel.idle)]
        return min(speaking, key=lambda channel: channel.watermark_us, default=None)

    def reach(self, channel: InputChannel, watermark_us: int) -> int | None:
        """A watermark has arrived on a channel; returns the new one, or None when the minimum has not grown."""
        before_us = channel.watermark_us
        if watermark_us <= before_us:
            return None
        if watermark_us == MAX_TIME:
            channel.ended_us = before_us
        channel.watermark_us = watermark_us
        if self._behind and not channel.idle:
            if before_us == self._lowest_us:
                self._behind -= 1
            if self._behind:
                return None
        return self.advance()

    def silence(self, channel: InputChannel) -> int | None:
        """An active input has become idle or ended; returns the new watermark, or None when the minimum has not
        grown."""
        if self._behind:
            if channel.watermark_us == self._lowest_us:
                self._behind -= 1
            if self._behind:
                return None
        return self.advance()

    def advance(self) -> int | None:
        """The new watermark when inputs have become idle, become active or ended; None when the minimum has not
        grown."""
        lowest_us, furthest_us, behind = MAX_TIME, NO_TIME, 0
        active = waits = ended = False
        for channel in self._channels:
            if channel.watermark_us == MAX_TIME:
                ended = True
                furthest_us = max(furthest_us, channel.ended_us)
                continue
            furthest_us = max(furthest_us, channel.watermark_us)
            if channel.finished or channel.idle:
                waits |= not channel.finished
                continue
            active = True
            if channel.watermark_us < lowest_us:
                lowest_us, behind = channel.watermark_us, 1
            elif channel.watermark_us == lowest_us:
                behind += 1
        self.idle = waits and not active
        self._lowest_us, self._behind = lowest_us, behind
        candidate_us = lowest_us if active or (ended and not waits) else furthest_us
        if candidate_us <= self.output_us:
            return None
        self.output_us = candidate_us
        return candidate_us
