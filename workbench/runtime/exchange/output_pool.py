"""The bounded output pool of a task: how many buffers it may have in flight."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.runtime.exchange.channel import Channel
    from workbench.runtime.exchange.output import EdgeOutput


class OutputPool:
    """The bounded output buffers of one task (F2-3): buffers on the sender's side, and pending ones.

    A task takes no input while its pool is used up or a backlog waits. The pool is counted, not allocated:
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
        """Release the channels, each of which refers to this pool's set of full ones and so to itself."""
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
        """How many more buffers may be shipped; unlimited where there is no channel."""
        return max(0, self.total - self.used) if self.total else sys.maxsize

    @property
    def has_free(self) -> bool:
        """Whether one more buffer may be shipped."""
        full = self._full
        while full:  # a channel that had credit at its last push has credit now
            channel = next(iter(full))
            if channel.buffers_sent - channel.buffers_received >= channel.credit:
                return self.used < self.total
            full.discard(channel)
        return True

    @property
    def overdrawn(self) -> bool:
        """Whether more buffers are in use than the pool has: one step produced more than there was room for."""
        return not self.has_free and self.used > self.total

    @property
    def backlogged(self) -> bool:
        """Whether any output waits for room."""
        for output in self._outputs:
            if 1 in output.marks:
                for pending in output.filled():
                    if pending.over:
                        return True
        return False

    @property
    def waits_for_room(self) -> bool:
        """Whether any output has a full buffer that waits for room."""
        for output in self._outputs:
            if 1 in output.marks:
                for pending in output.filled():
                    if pending.is_full:
                        return True
        return False

    @property
    def has_room(self) -> bool:
        """Whether a step may produce output."""
        if self._full and not self.has_free:
            return False
        for output in self._outputs:
            if 1 in output.marks:
                return not self.backlogged
        return True
