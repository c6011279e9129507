"""The ends of partitions, as the brokers last reported them."""

from __future__ import annotations

from workbench.connectors.kafka.contacts import contacts
from workbench.connectors.kafka.places import Partition


class KnownEnds:
    """By partition, the offset after the last message, and when its broker was last heard of.

    Example:
        >>> ends = KnownEnds()
        >>> ends.report(Partition("orders", 0), 7, 1_000)
        >>> ends.of(Partition("orders", 0)), ends.of(Partition("orders", 1))
        ((7, 1000), None)
    """

    def __init__(self) -> None:
        self._ends: dict[Partition, tuple[int, int]] = {}
        self._heard: dict[Partition, int] = {}

    def of(self, partition: Partition) -> tuple[int, int] | None:
        """The end, and the time of which it is; None: it is not known."""
        return self._ends.get(partition)

    def report(self, partition: Partition, end: int, now_us: int, *, cached: bool = False) -> None:
        """A broker has reported an end now, or the client knows it from its last answer."""
        self._ends[partition] = end, self._heard.get(partition, now_us) if cached else now_us

    def hear(self, statistics: str, now_us: int) -> None:
        """The client tells which brokers it has heard of; it also knows ends of brokers that are away."""
        self._heard |= contacts(statistics, now_us)  # others are as old as they were
        for partition, told_us in self._heard.items():
            if (known := self._ends.get(partition)) is not None:
                self._ends[partition] = known[0], min(known[1], told_us)

    def heard_us(self, now_us: int) -> int:
        """When any broker was last heard of; now if the client has not told of any."""
        return max(self._heard.values(), default=now_us)
