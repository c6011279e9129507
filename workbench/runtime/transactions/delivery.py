"""One channel under transactions: ids for what is sent, held back until it is durable, sent again until it is
acknowledged.

It stands in the sender's pending buffer in place of the channel. Both sides of a channel share it; each attribute has
one writer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from workbench.elements import CheckpointBarrier, Element, EndOfStream, LatencyMarker
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.transactions.store import Production, ends, ids_in

UNNUMBERED = -1
"""In place of an id: barriers, latency markers and the end belong to an attempt, and are not sent again."""


class Delivery:
    """The elements of one channel, from their production to their acknowledgement.

    Args:
        channel: carries them.

    Attributes:
        key: names the channel in the store.
        numbers: for each element that is queued in the channel its id, and `settled` as of when it was sent.
        staged: produced, and not durable yet.
        unacked: sent, and not acknowledged.
        next_id: of the next element.
        acknowledged: everything below is durable at the receiver (written by the receiver).
        awaited: the sender waits for acknowledgements, and is to be woken by them.
        settled: nothing below is sent again (written by the sender).
        past: nothing below comes again: `settled` of the last element that was taken (written by the receiver). An
            earlier copy of an element may still be queued when the sender settles it.
        again: what is not acknowledged is to be sent again, before anything else.
        resent: records and other elements sent again.
    """

    __slots__ = (
        "acknowledged",
        "again",
        "awaited",
        "channel",
        "key",
        "next_id",
        "numbers",
        "past",
        "resent",
        "settled",
        "staged",
        "unacked",
    )

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.key = f"{channel.edge} {channel.source} {channel.target}"
        self.numbers: deque[tuple[int, int]] = deque()
        self.staged: list[tuple[int, Element]] = []
        self.unacked: deque[Production] = deque()
        self.next_id = self.acknowledged = self.settled = self.past = 0
        self.resent = 0
        self.awaited = self.again = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.channel, name)

    # the sender ----------------------------------------------------------------------------------------------------

    def push(self, element: Element) -> None:
        """Stage an element; what has no id goes at once if nothing is staged before it."""
        if type(element) in (CheckpointBarrier, LatencyMarker, EndOfStream):
            if self.staged:
                self.staged.append((UNNUMBERED, element))
            else:
                self._send(UNNUMBERED, element)
            return
        self.staged.append((self.next_id, element))
        self.next_id += ids_in(element)

    def productions(self) -> list[Production]:
        """What is staged and has an id."""
        return [Production(self.key, first, element) for first, element in self.staged if first != UNNUMBERED]

    def send(self) -> None:
        """Send what is staged: it is durable."""
        for first, element in self.staged:
            if first != UNNUMBERED:
                self.unacked.append(Production(self.key, first, element))
            self._send(first, element)
        self.staged.clear()

    def forget(self, below: int) -> None:
        """Productions below this id are acknowledged, and the store no longer holds them."""
        unacked = self.unacked
        while unacked and ends(unacked[0]) <= below:
            unacked.popleft()
        # An element that is acknowledged in part may be sent again as a whole.
        self.settled = max(self.settled, min(below, unacked[0].first) if unacked else below)

    def take_over(self, productions: Iterable[Production], next_id: int) -> None:
        """The sender was replaced: it continues with what the store holds."""
        self.staged.clear()
        self.next_id, self.again = next_id, True
        self.unacked = deque(productions)
        # What was acknowledged to the predecessor since its last write is not known: the receiver says it again.
        self.acknowledged = self.unacked[0].first if self.unacked else next_id

    def rewind(self) -> None:
        """The receiver was replaced: what was queued is gone with it."""
        self.channel.rewind()
        self.numbers.clear()
        self.again = True

    def send_again(self) -> None:
        """Send what is not acknowledged."""
        self.again = False
        for production in self.unacked:
            if ends(production) > self.acknowledged:
                self.resent += ids_in(production.element)
                self._send(production.first, production.element)

    def _send(self, first: int, element: Element) -> None:
        self.numbers.append((first, self.settled))  # before the element, which the receiver may take at once
        self.channel.push(element)

    @property
    def queued_unacked(self) -> int:
        """Records and other elements that were sent and are not acknowledged; for observers."""
        try:
            return sum(ids_in(each.element) for each in tuple(self.unacked) if ends(each) > self.acknowledged)
        except RuntimeError:  # the sender changed it meanwhile
            return 0

    # the receiver --------------------------------------------------------------------------------------------------

    def take(self) -> int:
        """The id of the element that was taken from the channel."""
        first, self.past = self.numbers.popleft()
        return first

    def acknowledge(self, below: int) -> None:
        """Everything below this id is durable."""
        if below > self.acknowledged:
            self.acknowledged = below
            if self.awaited and self.channel.sender.parked:
                self.channel.sender.wake()
