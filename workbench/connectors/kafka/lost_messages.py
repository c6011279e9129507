"""Notices that a partition no longer has the messages that a position stands before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.connectors.kafka.cluster import exceptions, kafka_package
from workbench.connectors.kafka.places import Partition
from workbench.connectors.kafka.topics import Topics
from workbench.errors import SourceError

if TYPE_CHECKING:
    from workbench.connectors.kafka.source import KafkaSource


class LostMessages:
    """Compares positions with what the brokers report.

    Args:
        source: the description of the source.
        topics: asks its brokers.
        positions: the positions of a reader, by partition: an offset, and the number of rows read of its message.
        ends: the offset to read to, by partition, of a bounded source.

    Attributes:
        doubted: partitions of which a broker has reported an end before the position. Tansu does that when it is asked,
            but reports the right one with messages.
    """

    def __init__(
        self,
        source: KafkaSource,
        topics: Topics,
        positions: Mapping[Partition, tuple[int, int]],
        ends: Mapping[Partition, int],
    ) -> None:
        self._cluster = source.cluster
        self._topics = topics
        self._positions = positions
        self._ends = ends if source.bounded else {}
        self.doubted: set[Partition] = set()

    def compare(self, partition: Partition, low: int, high: int) -> None:
        """Compare a restored position with the bounds of its partition.

        Raises:
            SourceError: its messages were removed.
        """
        if self._positions[partition][0] < low:
            raise self._lost(partition, f"its first message is now {low}: the topic's retention is too short")
        if high < self._reach(partition):
            self.doubted.add(partition)

    def look(self, partitions: Sequence[Partition]) -> bool:
        """Compare the positions with the ends that were reported with the last messages.

        Returns:
            Whether a doubted partition turned out to be right.

        Raises:
            SourceError: a partition ends before what was read of it, or before what is to be read.
            KafkaException: the brokers do not answer.
        """
        before = len(self.doubted)
        for partition in partitions:
            if (told := self._topics.known_end(partition)) is None:
                continue
            if told < self._reach(partition):
                _, end = self._topics.bounds(partition)  # a new leader may have reported too low an end for a moment
                if max(told, end) < self._reach(partition):
                    raise self._lost(partition, f"it now ends at {max(told, end)}: the topic was recreated")
            self.doubted.discard(partition)
        return len(self.doubted) < before

    def gone(self, partition: Partition) -> SourceError:
        """The error for a partition that its topic no longer has: topics do not lose partitions."""
        return self._lost(partition, "the partition no longer exists, because the topic was deleted or recreated")

    def error(self, partition: Partition, error: Any) -> Exception:
        """What to raise for a partition that cannot be read.

        Args:
            partition: the partition.
            error: of the client.

        Raises:
            KafkaException: the brokers do not answer.
        """
        kinds = kafka_package().KafkaError
        if error.code() in (kinds._UNKNOWN_PARTITION, kinds._UNKNOWN_TOPIC, kinds.UNKNOWN_TOPIC_OR_PART):
            return self.gone(partition)
        if error.code() in (kinds._AUTO_OFFSET_RESET, kinds.OFFSET_OUT_OF_RANGE):
            low, high = self._topics.bounds(partition)
            reason = "the topic was recreated" if high < self._reach(partition) else "its retention is too short"
            fact = self._cluster.fact(error)
            return self._lost(partition, f"it begins at {low} and ends at {high}: {reason}; {fact}")
        return exceptions()(error)

    def _reach(self, partition: Partition) -> int:
        """An offset that the partition cannot end before, if it is the one that was read."""
        offset, rows = self._positions[partition]
        return max(offset + bool(rows), self._ends.get(partition, 0))

    def _lost(self, partition: Partition, fact: str) -> SourceError:
        offset, end = self._positions[partition][0], self._ends.get(partition)
        span = f"the offset {offset}" if end is None else f"the offsets {offset} to {end}"
        return SourceError(
            f"{partition} of {self._cluster} no longer has {span} ({fact}), so messages are lost; keep messages longer "
            "(retention.ms), or start without the checkpoint, which reads what there is"
        )
