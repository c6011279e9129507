"""The identity of messages of an exactly-once sink, and which of them a topic already has.

Each message carries its writer, run, epoch, subtask and number in a header. After a failure the end of the topic is
read, from where the checkpoint says on, and what is there is not sent again. Source: the idempotent writers of Pravega
and FASTER: a writer resumes after the last event of its own that the log has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from workbench.connectors.kafka.cluster import ANSWER_S, KafkaCluster, exceptions, kafka_error, kafka_package
from workbench.errors import SinkError

HEADER = "workbench"
_CONSUMED = 10_000
_TURN_S = 0.5


@dataclass(frozen=True, slots=True)
class MessageId:
    """Identifies a message.

    Attributes:
        writer: the job and its sink.
        run: of the job that took the rows.
        epoch: the checkpoint that commits them.
        subtask: that took them.
        number: of the message within them, from 0.

    Example:
        >>> one = MessageId("delays/sink", "run 1", 7, 0, 3)
        >>> MessageId.read(one.headers()) == one
        True
    """

    writer: str
    run: str
    epoch: int
    subtask: int
    number: int

    def headers(self) -> list[tuple[str, bytes]]:
        """As the headers of a message."""
        return [(HEADER, f"{self.epoch} {self.subtask} {self.number} {quote(self.run)} {self.writer}".encode())]

    @classmethod
    def read(cls, headers: Any) -> MessageId | None:
        """The identity in the headers of a message; None: it has none."""
        for name, value in headers or ():
            if name == HEADER and isinstance(value, bytes):
                parts = value.decode("utf-8", "replace").split(" ", 4)
                if len(parts) == 5 and all(part.isdecimal() for part in parts[:3]):
                    return cls(parts[4], unquote(parts[3]), *map(int, parts[:3]))
        return None


class Tail:
    """Reads the end of a topic.

    Args:
        cluster: of the topic.
        topic: its name.
        committed: do not see messages of transactions that are not committed.
        wait_s: how long to wait for messages.
    """

    def __init__(self, cluster: KafkaCluster, topic: str, *, committed: bool, wait_s: float) -> None:
        self._cluster = cluster
        self._topic = topic
        self._isolation = "read_committed" if committed else "read_uncommitted"
        self._wait_s = wait_s

    def ends(self) -> dict[int, int]:
        """By partition: where its end is, or somewhat before.

        Raises:
            SinkError: the brokers do not answer, or there is no such topic.
        """
        return {number: high for number, (_, high) in self._told(self._bounds).items()}

    def messages(self, begin: Mapping[int, int], back: int = 0) -> set[MessageId]:
        """The identities of the messages from some offsets to the end.

        Args:
            begin: by partition; those that are not named are read from their beginning.
            back: instead, for all partitions, so many messages before their ends; 0: from `begin`.

        Raises:
            SinkError: as for `ends`.
        """
        return set(self._told(lambda consumer: list(self._read(consumer, begin, back))))

    def _told(self, call: Callable[[Any], Any]) -> Any:
        consumer = self._cluster.consumer(
            lambda error: None, group_id="workbench", isolation_level=self._isolation, fetch_wait_max_ms=10
        )
        try:
            return call(consumer)
        except exceptions() as error:
            raise self._cluster.error(kafka_error(error), f"read the end of {self._topic!r}", SinkError) from error
        finally:
            consumer.close()

    def _bounds(self, consumer: Any) -> dict[int, tuple[int, int]]:
        told = consumer.list_topics(self._topic, timeout=ANSWER_S).topics[self._topic]
        if told.error is not None:
            raise SinkError(f"there is no topic {self._topic!r} at {self._cluster}: check its name, or create it first")
        place = kafka_package().TopicPartition
        return {
            number: consumer.get_watermark_offsets(place(self._topic, number), timeout=ANSWER_S)
            for number in told.partitions
        }

    def _read(self, consumer: Any, begin: Mapping[int, int], back: int) -> Iterator[MessageId]:
        place, kinds = kafka_package().TopicPartition, kafka_package().KafkaError
        bounds = self._bounds(consumer)
        left = {}
        for number, (low, high) in bounds.items():
            left[number] = max(low, high - back if back else begin.get(number, low))
        consumer.assign([place(self._topic, number, offset) for number, offset in left.items()])
        silent_s = 0.0
        while left:
            messages = consumer.consume(1, _TURN_S)  # which returns as soon as there is one
            messages += consumer.consume(_CONSUMED, 0)
            silent_s = 0.0 if messages else silent_s + _TURN_S
            if silent_s > self._wait_s:
                raise SinkError(
                    f"the end of {self._topic!r} at {self._cluster} was not reached within {self._wait_s:g} s: is a "
                    "transaction of another producer open?"
                )
            for message in messages:
                error = message.error()
                if error is None:
                    if (found := MessageId.read(message.headers())) is not None:
                        yield found
                elif error.code() != kinds._PARTITION_EOF:
                    raise exceptions()(error)
                elif message.offset() >= bounds[message.partition()][1]:
                    left.pop(message.partition(), None)
