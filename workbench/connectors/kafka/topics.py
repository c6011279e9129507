"""The topics of a source: their partitions, and where to start and stop in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.connectors.kafka.cluster import ANSWER_S, place_of
from workbench.connectors.kafka.places import Partition
from workbench.errors import SourceError

if TYPE_CHECKING:
    from workbench.connectors.kafka.source import KafkaSource


class Topics:
    """Asks the brokers.

    Args:
        source: the description of the source.
        consumer: the client's consumer.
    """

    def __init__(self, source: KafkaSource, consumer: Any) -> None:
        self._source = source
        self._consumer = consumer

    def partitions(self, subtask: int, parallelism: int) -> list[Partition]:
        """The partitions of a subtask.

        Raises:
            SourceError: a topic does not exist.
            KafkaException: the brokers do not answer.
        """
        cluster = self._source.cluster
        found = [
            Partition(topic, number)
            for topic in self._source.topics
            for number in cluster.partitions(self._consumer, topic, SourceError)
        ]
        return [each for each in found if each.belongs_to(subtask, parallelism)]

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """The offset of the first message, and the one after the last.

        Raises:
            KafkaException: the brokers do not answer.
        """
        low, high = self._consumer.get_watermark_offsets(place_of(partition), timeout=ANSWER_S)
        return low, high

    def known_end(self, partition: Partition) -> int | None:
        """The offset after the last message, as last reported by the brokers, or None."""
        known = self._consumer.get_watermark_offsets(place_of(partition), cached=True)
        return None if known is None or known[1] < 0 else known[1]

    def first(self, partition: Partition, low: int, high: int) -> int:
        """The first offset to read without a checkpoint.

        Args:
            partition: the partition.
            low: its first offset.
            high: the offset after its last.

        Raises:
            KafkaException: the brokers do not answer.
        """
        beginning = self._source.beginning
        if beginning.offsets is not None:
            return max(beginning.offsets.get(partition, low), low)
        if beginning.since_ms is not None:
            found = self._consumer.offsets_for_times([place_of(partition, beginning.since_ms)], timeout=ANSWER_S)
            offset: int = found[0].offset
            return offset if offset >= 0 else high  # no message is that late
        return low if beginning.named == "earliest" else high
