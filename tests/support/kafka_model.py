"""What Apache Kafka promises about transactions, in memory, behind the calls of confluent-kafka that the sink makes.

Tansu gives readers the messages of aborted transactions, and lets transactions stay open for ever; Kafka does not:

- readers of committed messages see nothing from the first message of an open transaction on (the last stable offset),
  and nothing of aborted ones;
- a new producer of a transactional ID has a greater epoch; it aborts what the former one left open, whose later calls
  are refused;
- a transaction that is open for longer than its timeout is aborted, and its producer is refused as well.

Sources: KIP-98, KIP-447, the documentation of ``isolation.level`` and ``transaction.timeout.ms``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition


class Died(BaseException):
    """The process was killed in this step."""


@dataclass(slots=True)
class Entry:
    """A message, or the marker that ends a transaction; `state` is that of its transaction."""

    value: bytes | None
    headers: Any
    transaction: Transaction


@dataclass(slots=True, eq=False)
class Transaction:
    """A transaction; `begins` holds the offset of its first message by partition."""

    began_s: float
    state: str = "open"
    begins: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Identity:
    """A transactional ID."""

    epoch: int = 0
    transaction: Transaction | None = None


class Kafka:
    """A cluster with one topic.

    Attributes:
        now_s: the time; waiting for messages advances it.
        steps: the number of calls until now.
        dies_at: the number of the call before which the process is killed.
    """

    def __init__(self, partitions: int, timeout_s: float = 60.0) -> None:
        self.log: list[list[Entry]] = [[] for _ in range(partitions)]
        self.ids: dict[str, Identity] = {}
        self.now_s = 0.0
        self.steps = 0
        self.dies_at: int | None = None
        self._timeout_s = timeout_s

    def step(self) -> None:
        """A call arrives."""
        self.steps += 1
        if self.steps == self.dies_at:
            self.dies_at = None
            raise Died
        self.expire()

    def expire(self) -> None:
        """Abort transactions that are open for too long."""
        for identity in self.ids.values():
            if identity.transaction is not None and self.now_s > identity.transaction.began_s + self._timeout_s:
                self.end(identity, "aborted")
                identity.epoch += 1

    def end(self, identity: Identity, state: str) -> None:
        """Write the markers of a transaction."""
        transaction, identity.transaction = identity.transaction, None
        assert transaction is not None
        transaction.state = state
        for partition in transaction.begins:
            self.log[partition].append(Entry(None, None, transaction))

    def end_of(self, partition: int, *, committed: bool) -> int:
        """The high watermark, or the last stable offset."""
        opened = [
            identity.transaction.begins[partition]
            for identity in self.ids.values()
            if identity.transaction is not None and partition in identity.transaction.begins
        ]
        return min([len(self.log[partition]), *(opened if committed else ())])

    def visible(self) -> list[bytes]:
        """What readers of committed messages see."""
        return [
            entry.value
            for partition, entries in enumerate(self.log)
            for entry in entries[: self.end_of(partition, committed=True)]
            if entry.value is not None and entry.transaction.state == "committed"
        ]

    def producer(self, cluster: Any, on_error: Any, **options: Any) -> Producer:
        """In place of ``KafkaCluster.producer``."""
        return Producer(self, options["transactional_id"])

    def consumer(self, cluster: Any, on_error: Any, **options: Any) -> Consumer:
        """In place of ``KafkaCluster.consumer``."""
        return Consumer(self, options["isolation_level"] == "read_committed")


class Producer:
    """A transactional producer of the client; its messages arrive when it is flushed."""

    def __init__(self, kafka: Kafka, name: str) -> None:
        self._kafka, self._name = kafka, name
        self._epoch = 0
        self._queue: list[tuple[bytes, Any, Callable[[Any, Any], None]]] = []
        self._is_dead = False

    def init_transactions(self, timeout: float) -> None:
        self._step()
        identity = self._kafka.ids.setdefault(self._name, Identity())
        if identity.transaction is not None:
            self._kafka.end(identity, "aborted")
        identity.epoch += 1
        self._epoch = identity.epoch

    def begin_transaction(self) -> None:
        """Nothing is sent until the first message."""

    def produce(self, topic: str, value: bytes, *, on_delivery: Any, headers: Any, **rest: Any) -> None:
        self._queue.append((value, headers, on_delivery))

    def poll(self, timeout: float) -> int:
        return 0

    def flush(self, timeout: float) -> int:
        while self._queue:
            try:
                identity = self._identity()
            except KafkaException as fenced:
                for _, _, answered in self._queue:
                    answered(fenced.args[0], None)
                self._queue.clear()
                break
            if identity.transaction is None:
                identity.transaction = Transaction(self._kafka.now_s)
            value, headers, answered = self._queue.pop(0)
            partition = sum(map(len, self._kafka.log)) % len(self._kafka.log)
            entries = self._kafka.log[partition]
            identity.transaction.begins.setdefault(partition, len(entries))
            entries.append(Entry(value, headers, identity.transaction))
            place = (partition, len(entries) - 1)
            answered(None, SimpleNamespace(partition=lambda place=place: place[0], offset=lambda place=place: place[1]))
        return 0

    def commit_transaction(self, timeout: float) -> None:
        self.flush(timeout)
        identity = self._identity()
        if identity.transaction is not None:
            self._kafka.end(identity, "committed")

    def abort_transaction(self, timeout: float) -> None:
        identity = self._identity()
        if identity.transaction is not None:
            self._kafka.end(identity, "aborted")

    def purge(self) -> None:
        self._queue.clear()

    def _step(self) -> None:
        """A call arrives, unless the process is dead: then nothing more of it does."""
        if self._is_dead:
            raise Died
        try:
            self._kafka.step()
        except Died:
            self._is_dead = True
            raise

    def _identity(self) -> Identity:
        """A call of this producer arrives.

        Raises:
            KafkaException: it is fenced.
        """
        self._step()
        identity = self._kafka.ids[self._name]
        if identity.epoch != self._epoch:
            raise KafkaException(KafkaError(KafkaError._FENCED, "a newer producer has this ID", fatal=True))
        return identity


class Consumer:
    """A consumer of the client."""

    def __init__(self, kafka: Kafka, committed: bool) -> None:
        self._kafka, self._committed = kafka, committed
        self._at: dict[int, int] = {}
        self._ended: dict[int, int] = {}

    def list_topics(self, topic: str, timeout: float) -> Any:
        self._kafka.step()
        known = SimpleNamespace(error=None, partitions=dict.fromkeys(range(len(self._kafka.log))))
        return SimpleNamespace(topics={topic: known})

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        self._kafka.step()
        return 0, self._kafka.end_of(place.partition, committed=self._committed)

    def assign(self, places: Sequence[TopicPartition]) -> None:
        self._at = {place.partition: place.offset for place in places}

    def consume(self, count: int, timeout: float) -> list[Any]:
        self._kafka.step()
        found: list[Any] = []
        for partition in self._at:
            end = self._kafka.end_of(partition, committed=self._committed)
            while self._at[partition] < end and len(found) < count:
                entry = self._kafka.log[partition][self._at[partition]]
                hidden = self._committed and entry.transaction.state != "committed"
                if entry.value is not None and not hidden:
                    found.append(_message(partition, self._at[partition], entry.headers))
                self._at[partition] += 1
            if self._at[partition] >= end and self._ended.get(partition) != end and len(found) < count:
                self._ended[partition] = end
                found.append(_message(partition, self._at[partition], None, KafkaError(KafkaError._PARTITION_EOF)))
        if not found:
            self._kafka.now_s += timeout
        return found

    def close(self) -> None:
        """Nothing is kept."""


def _message(partition: int, offset: int, headers: Any, error: Any = None) -> Any:
    calls: Mapping[str, Any] = {"partition": partition, "offset": offset, "headers": headers, "error": error}
    return SimpleNamespace(**{name: lambda value=value: value for name, value in calls.items()})
