"""Sends rows as messages to a topic and waits for the brokers' acknowledgements."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.plain_types import decoded
from workbench.connectors.epochs.message_id import MessageId
from workbench.connectors.kafka.cluster import KafkaCluster, exceptions, kafka_error, kafka_package
from workbench.connectors.kafka.tail import Tail, headers_of
from workbench.connectors.kafka.transactions import end_transactions, transactional_id
from workbench.connectors.messages.message_format import MessageFormat
from workbench.errors import SinkError

_FLUSH_S = 0.25
_POLL_S = 0.1
_CALL_S = 2.0
_SILENT_S = 2.0
"""The time without acknowledgements after which brokers are asked whether they are alive."""
_PROBE_S = 0.5
WAIT_S = 30.0
"""How long a message may take while the brokers are unreachable."""


@dataclass(frozen=True)
class Topic:
    """The topic of a sink.

    Attributes:
        cluster: its cluster.
        name: the name of the topic.
        format: the format of the values.
        key: the columns of the messages' keys; empty: no keys.
        timestamp: the column of the messages' timestamps; None: the time of sending.
        fences: whether the messages of an epoch are sent in a transaction, and readers see only committed ones.
        recent: see `MessageLog`.
        attempts: attempts while the brokers are unreachable.
    """

    cluster: KafkaCluster
    name: str
    format: MessageFormat
    key: tuple[str, ...]
    timestamp: str | None
    fences: bool = False
    recent: int = 10_000
    attempts: Attempts = field(default_factory=Attempts, compare=False, repr=False)

    @property
    def title(self) -> str:
        """The topic and its cluster, for messages."""
        return f"the topic {self.name!r} of {self.cluster}"

    def of_subtask(self) -> Topic:
        """See `MessageLog.of_subtask`."""
        return replace(self, attempts=Attempts(WAIT_S, str(self.cluster)))

    def ends(self) -> dict[int, int]:
        """See `MessageLog.ends`."""
        return self._tail().ends()

    def messages(self, begin: Mapping[int, int], back: int = 0, *, committed: bool = False) -> set[MessageId]:
        """See `MessageLog.messages`."""
        return self._tail().messages(begin, back, committed=committed)

    def sender(self, writer: str = "", subtask: int = 0) -> Outgoing:
        """Create a producer; a transactional producer fences the previous one and aborts its transaction."""
        return Outgoing(self, transactional_id(writer, subtask) if self.fences else "")

    def end_senders(self, writer: str, count: int) -> None:
        """See `MessageLog.end_senders`."""
        end_transactions(self.cluster, [transactional_id(writer, subtask) for subtask in range(count)], self.attempts)

    def _tail(self) -> Tail:
        return Tail(self.cluster, self.name, self.attempts)

    def keys(self, rows: pa.RecordBatch) -> Sequence[bytes | None]:
        """The key of each row: the text of one column, or a JSON object of several."""
        if not self.key:
            return [None] * rows.num_rows
        texts = [_texts(rows.column(name)) for name in self.key]
        if len(texts) == 1:
            return [None if text is None else text.encode() for text in texts[0]]
        return [json.dumps(dict(zip(self.key, row, strict=True))).encode() for row in zip(*texts, strict=True)]

    def times_ms(self, rows: pa.RecordBatch) -> Sequence[int]:
        """The timestamp of each row; 0: the time of sending."""
        if self.timestamp is None:
            return [0] * rows.num_rows
        column = rows.column(self.timestamp)
        tz = getattr(column.type, "tz", None)
        times = column.cast(pa.timestamp("ms", tz), safe=False).cast(pa.int64()).to_pylist()
        return [time or 0 for time in times]


class Outgoing:
    """Sends rows to a topic and collects the brokers' answers.

    Args:
        topic: the topic.
        transactional_id: the ID of a transactional producer; empty: not transactional.

    Attributes:
        reached: the offset after the last acknowledged message whose offset is known, by partition.
    """

    def __init__(self, topic: Topic, transactional_id: str = "") -> None:
        self._topic = topic
        self._attempts = topic.attempts
        self._failed: Any = None
        self._down = False
        self._unknown: Any = None
        self._acknowledged = 0
        self._silent_s = 0.0
        self.reached: dict[int, int] = {}
        more: dict[str, Any] = {"transactional_id": transactional_id} if transactional_id else {}
        self._producer = topic.cluster.producer(
            self._note,
            enable_idempotence=True,  # retries of the client neither repeat nor reorder
            linger_ms=5,
            partitioner="murmur2_random",
            message_timeout_ms=int(topic.attempts.wait_s * 1_000),
            **more,
        )
        if transactional_id:
            self._try(lambda: self._producer.init_transactions(_CALL_S))

    def send(self, rows: pa.RecordBatch, ids: Sequence[MessageId] | None = None) -> None:
        """See `Sender.send`."""
        topic = self._topic
        values = topic.format.encode(rows)
        keys, times = topic.keys(rows), topic.times_ms(rows)
        for at, value in enumerate(values):
            written: Mapping[str, Any] = {} if ids is None else {"headers": headers_of(ids[at])}
            while True:
                try:
                    self._producer.produce(
                        topic.name, value, key=keys[at], timestamp=times[at], on_delivery=self._answered, **written
                    )
                    break
                except BufferError:  # the client's queue is full
                    self._producer.poll(_POLL_S)
                    self._look(_POLL_S)
                except exceptions() as error:
                    raise self._error(kafka_error(error)) from error
        self._producer.poll(0)
        self._check()

    def flush(self) -> None:
        """Wait until all messages are acknowledged.

        Raises:
            SinkError: as for `send`.
        """
        while self._producer.flush(_FLUSH_S):  # the client gives up a message that takes too long
            self._look(_FLUSH_S)
        self._check()
        self._heard()

    def whole(self, send: Callable[[], None]) -> None:
        """Call `send`, within a transaction if the producer is transactional.

        Raises:
            SinkError: the brokers refuse it, or a newer producer uses the same transactional ID.
        """
        if not self._topic.fences:
            send()
            return
        self._try(self._producer.begin_transaction)
        try:
            send()
            self.flush()
        except BaseException:
            self.close()
            with suppress(exceptions()):  # a killed process cannot do that either: the next run ends it
                self._producer.abort_transaction(_PROBE_S)
            raise
        self._try(lambda: self._producer.commit_transaction(_CALL_S))

    def close(self) -> None:
        """Drop messages that are not acknowledged."""
        self._producer.purge()
        self._producer.flush(0)

    def _answered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed = self._failed or error
        else:
            self._acknowledged += 1
            partition, offset = message.partition(), message.offset()
            if offset is not None:  # None: sent again, and the broker had stored it the first time
                self.reached[partition] = max(self.reached.get(partition, 0), offset + 1)

    def _note(self, error: Any) -> None:
        kinds = kafka_package().KafkaError
        if self._topic.cluster.refuses(error):
            self._failed = self._failed or error
        self._down = self._down or error.code() == kinds._ALL_BROKERS_DOWN
        if error.code() in (kinds._RESOLVE, kinds._SSL):
            self._unknown = error

    def _look(self, waited_s: float) -> None:
        """After a long wait without acknowledgements, ask whether the brokers are alive."""
        self._check()  # do not wait if the login is refused
        acknowledged, self._acknowledged = self._acknowledged, 0
        self._silent_s += waited_s
        if acknowledged:
            self._heard()
        elif self._attempts.is_over:
            raise SinkError(f"the job ends before {self._topic.cluster} has acknowledged its messages")
        elif self._down or self._silent_s >= _SILENT_S:
            try:
                self._producer.list_topics(self._topic.name, timeout=_PROBE_S)
            except exceptions() as error:
                fault = kafka_error(error)
                if not self._topic.cluster.may_return(fault) or not self._again(fault):
                    raise self._error(self._unknown or fault) from error
            else:
                self._heard()

    def _heard(self) -> None:
        """The brokers have answered."""
        self._attempts.succeeded()
        self._down, self._silent_s, self._unknown = False, 0.0, None

    def _again(self, fault: Any) -> bool:
        return self._attempts.again(self._topic.cluster.outage(self._unknown or fault))

    def _check(self) -> None:
        if self._failed is not None:
            raise self._error(self._failed)

    def _try(self, call: Callable[[], object]) -> None:
        while True:
            try:
                call()
            except exceptions() as error:
                fault = kafka_error(error)
                if not fault.retriable() or not self._again(fault):
                    raise self._error(fault) from error
            else:
                self._attempts.succeeded()
                return

    def _error(self, error: Any) -> SinkError:
        kinds = kafka_package().KafkaError
        if error.code() in (kinds._UNKNOWN_TOPIC, kinds.UNKNOWN_TOPIC_OR_PART):
            return SinkError(f"there is no topic {self._topic.name!r} at {self._topic.cluster}: create it first")
        return self._topic.cluster.error(error, f"write to {self._topic.name!r}", SinkError)


def _texts(column: pa.Array) -> list[str | None]:
    kind = decoded(column.type)
    texts: list[str | None] = column.cast(kind).cast(pa.large_string()).to_pylist()
    return texts
