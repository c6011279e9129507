"""The bounded output pool of a task: how many buffers it may have on the way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.runtime.exchange.channel import Channel
    from workbench.runtime.exchange.output import EdgeOutput


class OutputPool:
    """The bounded output buffers of one task (F2-3): what lies on the sender's side, and the pending buffers.

    A task takes no further input while its pool is used up or a backlog waits. The pool is counted, not allocated:
    buffers are immutable batches that pass to the receiver without a copy.
    """

    __slots__ = ("_full", "_outputs", "floating", "total")

    def __init__(self, outputs: Sequence[EdgeOutput], floating: int) -> None:
        self._outputs = tuple(outputs)
        self.floating = floating
        channels = sum(len(output.channels) for output in outputs)
        self.total = 2 * channels + floating if channels else 0
        self._full: set[Channel] = set()
        for output in outputs:
            output.pool = self
            for channel in output.channels:
                channel.full = self._full

    def close(self) -> None:
        """Forget the channels: each of them knows this pool's full ones, itself among them."""
        self._full.clear()

    @property
    def used(self) -> int:
        """Buffers in use: on the sender's side of the channels, plus the pending ones."""
        used = 0
        for output in self._outputs:
            for pending in output.pending:
                channel = pending.channel
                beyond = channel.buffers_sent - channel.buffers_received - channel.credit
                if beyond > 0:
                    used += beyond
                if pending.rows:
                    used += 1
        return used

    @property
    def free(self) -> int:
        """How many more buffers may be shipped; without bound where there is nothing to send them to."""
        return max(0, self.total - self.used) if self.total else sys.maxsize

    @property
    def has_free(self) -> bool:
        """Whether one more buffer may be shipped."""
        full = self._full
        while full:  # a channel that was not full when it was pushed to last is not full now
            channel = next(iter(full))
            if channel.buffers_sent - channel.buffers_received >= channel.credit:
                return self.used < self.total
            full.discard(channel)
        return True

    @property
    def overdrawn(self) -> bool:
        """Whether more buffers are in use than there are: one step produced more than there was room for."""
        return not self.has_free and self.used > self.total

    @property
    def backlogged(self) -> bool:
        """Whether some output waits for room."""
        return any(pending.over for output in self._outputs for pending in output.filled())

    @property
    def waits_for_room(self) -> bool:
        """Whether some output would ship a full buffer if it might."""
        return any(pending.is_full for output in self._outputs for pending in output.filled())

    @property
    def has_room(self) -> bool:
        """Whether a step may produce output."""
        return self.has_free and not self.backlogged
