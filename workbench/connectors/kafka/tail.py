"""Finds the messages of an exactly-once sink that a topic already has; each has its identity in a header."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.epochs.message_id import MessageId
from workbench.connectors.kafka.cluster import ANSWER_S, KafkaCluster, exceptions, kafka_error, kafka_package
from workbench.connectors.kafka.transactions import transactional_id
from workbench.errors import SinkError

HEADER = "workbench"
_CONSUMED = 10_000
_TURN_S = 0.5


def headers_of(identity: MessageId) -> list[tuple[str, bytes]]:
    """The headers of a message.

    Example:
        >>> headers_of(MessageId("delays/sink", "r", 7, 0, 3))
        [('workbench', b'7 0 3 r delays/sink')]
    """
    return [(HEADER, identity.text().encode())]


def identity_in(headers: Any) -> MessageId | None:
    """The identity in the headers of a message, or None."""
    for name, value in headers or ():
        if name == HEADER and isinstance(value, bytes):
            return MessageId.read(value.decode("utf-8", "replace"))
    return None


class Tail:
    """Reads the end of a topic.

    Args:
        cluster: its cluster.
        topic: its name.
        attempts: attempts while the brokers are unreachable; their `wait_s` is also how long to wait for messages.
    """

    def __init__(self, cluster: KafkaCluster, topic: str, attempts: Attempts) -> None:
        self._cluster = cluster
        self._topic = topic
        self._attempts = attempts

    def ends(self) -> dict[int, int]:
        """The end of each partition, or an offset shortly before it.

        Raises:
            SinkError: the brokers do not answer, or the topic does not exist.
        """
        return {number: high for number, (_, high) in self._told(self._bounds).items()}

    def messages(self, begin: Mapping[int, int], back: int = 0, *, committed: bool) -> set[MessageId]:
        """The identities of the messages from some offsets to the end.

        Args:
            begin: the first offset of each partition; other partitions are read from the beginning.
            back: the number of messages before the end of each partition to start at; 0: start at `begin`.
            committed: see `MessageLog.messages`.

        Raises:
            SinkError: as for `ends`, or a transaction stays open; its sender is named.
        """
        bounds = self._told(self._bounds)  # the last stable offset is less while a transaction is open
        begins = {
            number: max(low, high - back if back else begin.get(number, low)) for number, (low, high) in bounds.items()
        }
        ends = {number: high for number, (_, high) in bounds.items()}
        return set(self._told(lambda consumer: list(self._read(consumer, begins, ends)), committed=committed))

    def _told(self, call: Callable[[Any], Any], *, committed: bool = False) -> Any:
        """The result of a call with a consumer; it is made again while the brokers are unreachable."""
        isolation = "read_committed" if committed else "read_uncommitted"
        noted: list[Any] = []
        consumer = self._cluster.consumer(
            noted.append, group_id="workbench", isolation_level=isolation, fetch_wait_max_ms=10
        )
        try:
            while True:
                try:
                    found = call(consumer)
                except exceptions() as error:
                    consumer.consume(1, 0)  # the client calls `noted.append` within it
                    fault = self._cluster.cause(kafka_error(error), noted)
                    if not self._cluster.may_return(fault) or not self._attempts.again(self._cluster.outage(fault)):
                        raise self._cluster.error(fault, f"read the end of {self._topic!r}", SinkError) from error
                    noted.clear()
                else:
                    self._attempts.succeeded()
                    return found
        finally:
            consumer.close()

    def _bounds(self, consumer: Any) -> dict[int, tuple[int, int]]:
        place = kafka_package().TopicPartition
        return {
            number: consumer.get_watermark_offsets(place(self._topic, number), timeout=ANSWER_S)
            for number in self._cluster.partitions(consumer, self._topic, SinkError)
        }

    def _read(self, consumer: Any, begins: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[MessageId]:
        place, kinds = kafka_package().TopicPartition, kafka_package().KafkaError
        left = dict(begins)
        consumer.assign([place(self._topic, number, offset) for number, offset in left.items()])
        silent_s = 0.0
        while left:
            messages = consumer.consume(1, _TURN_S)  # returns as soon as one is available
            messages += consumer.consume(_CONSUMED, 0)
            if messages:
                self._attempts.succeeded()
                silent_s = 0.0
            else:
                consumer.list_topics(self._topic, timeout=ANSWER_S)  # raises an error if no broker answers
                silent_s += _TURN_S
            if silent_s > self._attempts.wait_s:
                raise self._not_reached(left)
            for message in messages:
                error = message.error()
                if error is None:
                    left[message.partition()] = message.offset() + 1
                    if (found := identity_in(message.headers())) is not None:
                        yield found
                elif error.code() != kinds._PARTITION_EOF:
                    raise exceptions()(error)
                elif message.offset() >= ends[message.partition()]:
                    left.pop(message.partition(), None)
                else:
                    left[message.partition()] = message.offset()

    def _not_reached(self, left: Mapping[int, int]) -> SinkError:
        """Name the transaction whose first message readers of committed messages wait at."""
        number, offset = next(iter(left.items()))
        found = self._told(lambda consumer: self._first(consumer, number, offset))
        sender = "a transaction of another program"
        if found is not None and (identity := identity_in(found.headers())) is not None:
            names = {transactional_id(identity.writer, subtask): None for subtask in (identity.subtask, 0)}
            sender = f"the transaction {' or '.join(map(repr, names))}"
        where = f"from offset {offset if found is None else found.offset()} of partition {number} on"
        wait_s = self._attempts.wait_s
        return SinkError(
            f"the end of {self._topic!r} at {self._cluster} was not reached within {wait_s:g} s: {sender} is "
            f"open {where}; end its producer, or wait until the brokers abort it (transaction.timeout.ms)"
        )

    def _first(self, consumer: Any, number: int, offset: int) -> Any:
        """The first message from an offset on, whether it is committed or not; None: none arrives."""
        consumer.assign([kafka_package().TopicPartition(self._topic, number, offset)])
        found = consumer.consume(1, ANSWER_S)
        return found[0] if found and found[0].error() is None else None
