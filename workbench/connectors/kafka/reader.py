"""Reads the partitions of one subtask: with one consumer for all, and delivered partition by partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.retries import Outage, Retries
from workbench.connectors.kafka.cluster import ANSWER_S, exceptions, kafka_error, kafka_package
from workbench.connectors.kafka.places import Partition
from workbench.connectors.messages.sorting import REFUSED, Sorted, letter, sorted_out
from workbench.durations import MAX_TIME
from workbench.elements import Records, event_times
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.functions.dead_letters import as_records
from workbench.operators.snapshots.pieces import value_in

if TYPE_CHECKING:
    from workbench.connectors.kafka.source import KafkaSource

_REST_US_MIN, _REST_US_MAX = 1_000, 16_000
_FETCHED_MAX = 2_000
"""Messages that are taken from the client at once. They are decoded while the processor's cache holds them:
of 50,000, each takes half as long again."""
_PROBE_S = 0.5
_MESSAGES_MAX = 64 << 20


@dataclass(slots=True)
class _Fetch:
    """Messages of one partition that are not delivered yet.

    Attributes:
        messages: of the client, in the order of their offsets.
        after: the position when all are delivered.
    """

    messages: list[Any]
    after: int


class KafkaReader(SourceReader):
    """A position counts what was delivered: the next offset, and, where messages hold several rows, how many rows of
    that message were delivered. Messages that were fetched and not delivered are fetched again after a failure.
    """

    shares_event_time = False

    def __init__(self, source: KafkaSource) -> None:
        self._source = source
        self._cluster = source.cluster
        self._consumer: Any = None
        self._positions: dict[Partition, tuple[int, int]] = {}
        self._ends: dict[Partition, int] = {}
        self._fetched: dict[Partition, _Fetch] = {}
        self._highs: dict[Partition, int] = {}  # the ends that the brokers last told
        self._own: list[Partition] = []
        self._located = False
        self._late_ones_are_new = False
        self._down: Any = None
        self._retries = Retries(source.retries)
        self._rest_us = _REST_US_MIN
        self._discover_us = MAX_TIME
        self._splits: tuple[str, ...] | None = None

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._clock = context.clock
        self._consumer = self._cluster.consumer(self._note, group_id=self._source.group or "workbench")

    def splits(self) -> Sequence[str]:
        if self._splits is None:
            self._splits = tuple(str(partition) for partition in self._own if self._is_open(partition))
        return self._splits

    @property
    def outage(self) -> Outage | None:
        return self._retries.outage

    def progress(self) -> Mapping[str, SplitProgress]:
        found = {}
        for partition in self._own:  # of which another thread asks, so the client is not called
            position = self._positions[partition][0]
            end = self._ends.get(partition, self._highs.get(partition))
            found[str(partition)] = SplitProgress(str(position), None if end is None else max(end - position, 0))
        return found

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        now_us = self._clock.now_us()
        if now_us < self._retries.retry_us:
            return WaitUntil(self._retries.retry_us)
        try:
            if not self._located:
                self._locate()
                return WaitUntil(now_us + 1)  # its splits are known before their first messages arrive
            if not self.splits():
                if self._source.bounded or self._source.discover_us is None:
                    return Exhausted()
                if now_us < self._discover_us:
                    return WaitUntil(self._discover_us)
            if now_us >= self._discover_us:
                self._discover(now_us)
            if not self._fetched:
                self._fetch(max_records)
        except exceptions() as error:
            return self._failed(kafka_error(error), now_us)
        while self._fetched:
            partition = next(iter(self._fetched))
            if (delivered := self._deliver(partition, max_records)) is not None:
                self._rest_us = _REST_US_MIN
                return delivered
        if not self.splits() and self._source.bounded:
            return Exhausted()
        rest_us = self._rest_us
        self._rest_us = min(2 * rest_us, _REST_US_MAX)
        return WaitUntil(now_us + rest_us)

    def snapshot(self) -> Snapshot:
        self._commit_for_display()
        return {
            "positions": {str(partition): list(at) for partition, at in sorted(self._positions.items())},
            "ends": {str(partition): end for partition, end in sorted(self._ends.items())},
            "located": self._located,
        }

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        taken = [snapshot for snapshot in snapshots if "positions" in snapshot]
        subtask, parallelism = self._context.subtask, self._context.parallelism
        for snapshot in taken:
            for name, at in value_in(snapshot, "positions", dict[str, tuple[int, int]]).items():
                if (partition := Partition.named(name)).belongs_to(subtask, parallelism):
                    self._positions[partition] = at
            for name, end in value_in(snapshot, "ends", dict[str, int]).items():
                if (partition := Partition.named(name)).belongs_to(subtask, parallelism):
                    self._ends[partition] = end
        self._late_ones_are_new = bool(taken) and all(value_in(snapshot, "located", bool) for snapshot in taken)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._fetched = {}

    def _is_open(self, partition: Partition) -> bool:
        return not self._source.bounded or self._positions[partition][0] < self._ends[partition]

    def _note(self, error: Any) -> None:
        """Called by the client, within its calls, with errors of connections."""
        kinds = kafka_package().KafkaError
        if error.code() in (kinds._ALL_BROKERS_DOWN, kinds._AUTHENTICATION) or error.fatal():
            self._down = error

    def _locate(self) -> None:
        """Determine the partitions, their ends and where to begin, at the first call that the brokers answer."""
        found = self._found_partitions()
        for partition in list(self._positions):
            if partition not in found:  # it was deleted, or the source reads other topics now
                del self._positions[partition]
                self._ends.pop(partition, None)
        for partition in found:
            self._begin(partition, is_new=self._late_ones_are_new)
        self._own = found
        self._splits = None
        self._consumer.assign([self._place(partition) for partition in found if self._is_open(partition)])
        self._located = True
        self._retries.succeeded()
        if self._source.discover_us is not None and not self._source.bounded:
            self._discover_us = self._clock.now_us() + self._source.discover_us

    def _found_partitions(self) -> list[Partition]:
        """This subtask's partitions."""
        kinds = kafka_package().KafkaError
        found = []
        for topic in self._source.topics:
            told = self._consumer.list_topics(topic, timeout=ANSWER_S).topics[topic]
            if told.error is not None:
                if told.error.code() == kinds.UNKNOWN_TOPIC_OR_PART:
                    raise SourceError(
                        f"there is no topic {topic!r} at {self._cluster}: check its name, or create it first"
                    )
                raise exceptions()(told.error)
            found += [Partition(topic, number) for number in sorted(told.partitions)]
        context = self._context
        return [each for each in found if each.belongs_to(context.subtask, context.parallelism)]

    def _begin(self, partition: Partition, *, is_new: bool) -> None:
        """Determine where to read a partition, and where to end."""
        place = kafka_package().TopicPartition(partition.topic, partition.number)
        low, high = self._consumer.get_watermark_offsets(place, timeout=ANSWER_S)
        restored = self._positions.get(partition)
        if restored is not None and restored[0] < low:
            raise self._expired(partition, restored[0], f"its first message is now {low}")
        if restored is None:
            self._positions[partition] = (low if is_new else self._first(partition, low, high), 0)
        if self._source.bounded:
            self._ends.setdefault(partition, high)

    def _first(self, partition: Partition, low: int, high: int) -> int:
        """The offset to begin with, without a checkpoint."""
        beginning = self._source.beginning
        if beginning.offsets is not None:
            return max(beginning.offsets.get(partition, low), low)
        if beginning.since_ms is not None:
            wanted = kafka_package().TopicPartition(partition.topic, partition.number, beginning.since_ms)
            offset: int = self._consumer.offsets_for_times([wanted], timeout=ANSWER_S)[0].offset
            return offset if offset >= 0 else high  # none is as late
        return low if beginning.named == "earliest" else high

    def _discover(self, now_us: int) -> None:
        assert self._source.discover_us is not None
        self._discover_us = now_us + self._source.discover_us
        new = [partition for partition in self._found_partitions() if partition not in self._positions]
        for partition in new:
            self._begin(partition, is_new=True)
        if new:
            self._own = sorted([*self._own, *new])
            self._splits = None
            self._consumer.incremental_assign([self._place(partition) for partition in new])

    def _fetch(self, max_records: int) -> None:
        wanted = min(max_records * max(len(self._own), 1), _FETCHED_MAX)
        messages: list[Any] = self._consumer.consume(wanted, 0)
        if not messages:
            self._probe()
            return
        self._retries.succeeded()
        self._down = None
        kind = type(messages[0])
        if any(map(kind.error, messages)):
            messages = self._without_errors(messages)
        for partition, run in self._runs(messages):
            self._add(partition, run, run[-1].offset() + 1)
            place = kafka_package().TopicPartition(partition.topic, partition.number)
            if (known := self._consumer.get_watermark_offsets(place, cached=True)) is not None:
                self._highs[partition] = known[1]

    def _runs(self, messages: list[Any]) -> Iterator[tuple[Partition, list[Any]]]:
        """The messages of each partition; the client delivers runs of them."""
        if not messages:
            return
        kind = type(messages[0])
        numbers = np.fromiter(map(kind.partition, messages), np.int64, len(messages))
        if len(self._source.topics) > 1:
            index = {topic: at for at, topic in enumerate(self._source.topics)}
            numbers += np.fromiter((index[topic] << 32 for topic in map(kind.topic, messages)), np.int64, len(messages))
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(messages)]
        for begin, end in pairwise(bounds):
            first = messages[begin]
            yield Partition(first.topic(), first.partition()), messages[begin:end]

    def _add(self, partition: Partition, run: list[Any], after: int) -> None:
        """Keep messages to be delivered, up to the end of a bounded partition."""
        if not self._is_open(partition):
            return
        if (end := self._ends.get(partition)) is not None and after >= end:
            run = [message for message in run if message.offset() < end]
            after = end
            self._consumer.pause([kafka_package().TopicPartition(partition.topic, partition.number)])
        known = self._fetched.get(partition)
        if known is None:
            self._fetched[partition] = _Fetch(run, after)
        else:
            known.messages += run
            known.after = max(after, known.after)

    def _without_errors(self, messages: list[Any]) -> list[Any]:
        kinds = kafka_package().KafkaError
        good = []
        for message in messages:
            if (error := message.error()) is None:
                good.append(message)
                continue
            partition = Partition(message.topic() or "", message.partition() or 0)
            if error.code() == kinds._PARTITION_EOF:
                end = self._ends.get(partition)
                if end is not None and message.offset() >= end:  # what follows the last message is a marker
                    for run_of, run in self._runs(good):
                        self._add(run_of, run, run[-1].offset() + 1)
                    good = []
                    self._add(partition, [], message.offset())
            elif error.code() in (kinds._AUTO_OFFSET_RESET, kinds.OFFSET_OUT_OF_RANGE):
                raise self._expired(partition, self._positions[partition][0], self._cluster.fact(error))
            else:
                raise exceptions()(error)
        return good

    def _probe(self) -> None:
        """Where the client has lost all brokers, ask whether one is back."""
        if self._down is None:
            return
        if self._down.fatal() or not self._cluster.may_return(self._down):
            raise exceptions()(self._down)
        self._consumer.list_topics(self._source.topics[0], timeout=_PROBE_S)
        self._down = None
        self._retries.succeeded()

    def _deliver(self, partition: Partition, count: int) -> Fetched | None:
        """Records of a partition, whose turn then is over; None: what was fetched has none."""
        fetch = self._fetched.pop(partition)
        if not fetch.messages:
            self._move(partition, fetch.after, 0)
            return None
        taken = 1 if self._source.rows.format.several else _within_bytes(fetch.messages, count)
        messages, rest = fetch.messages[:taken], fetch.messages[taken:]
        after = rest[0].offset() if rest else fetch.after
        where = f"{partition.topic} of {self._cluster}, partition {partition.number}, offset"
        result = self._sorted(messages, where)
        batch, row = result.batch, 0
        if self._source.rows.format.several:
            offset = messages[0].offset()
            at, skip = self._positions[partition]
            skip = skip if offset == at else 0
            batch = batch.slice(skip, count)
            row = skip + batch.num_rows if skip + batch.num_rows < result.batch.num_rows else 0
            if row:
                after, rest = offset, fetch.messages
        if rest:
            self._fetched[partition] = _Fetch(rest, fetch.after)  # behind the others
        self._move(partition, after, row)
        if not batch.num_rows and not result.letters:
            return None
        column = self._source.event_time
        times = None if column is None else event_times(batch.column(column), column)
        letters = result.letters
        dead = as_records(letters, self._context, with_times=column is not None) if letters else None
        kept = result.kept

        def place(row: int) -> str:
            index = row if kept is None else kept[row]
            return f"{where} {messages[min(index, len(messages) - 1)].offset()}"

        return Fetched(Records(batch, times), str(partition), dead, where=place)

    def _sorted(self, messages: list[Any], where: str) -> Sorted:
        source, rows = self._source, self._source.rows
        values: list[bytes] = list(map(type(messages[0]).value, messages))
        if None in values:
            values = [b"{}" if value is None and source.format == "json" else value or b"" for value in values]
        lenient = source.on_error == "dead_letter"
        if rows.format.several:
            try:
                batch = rows.decode(messages, values)
                if source.event_time is not None:
                    event_times(batch.column(source.event_time), source.event_time)
            except REFUSED as error:
                dead = letter(values[0], f"{where} {messages[0].offset()}", error, lenient=lenient)
                return Sorted(pa.RecordBatch.from_pylist([], schema=source.schema), [], [dead])
            return Sorted(batch, [0] * batch.num_rows, ())
        return sorted_out(
            values,
            lambda begin, end: rows.decode(messages[begin:end], values[begin:end]),
            lambda at: f"{where} {messages[at].offset()}",
            source.schema,
            source.event_time,
            lenient=lenient,
        )

    def _move(self, partition: Partition, offset: int, row: int) -> None:
        self._positions[partition] = (offset, row)
        if self._source.bounded and not self._is_open(partition):
            self._splits = None

    def _place(self, partition: Partition) -> Any:
        return kafka_package().TopicPartition(partition.topic, partition.number, self._positions[partition][0])

    def _commit_for_display(self) -> None:
        if self._source.group is None or not self._located or self._consumer is None or self._down is not None:
            return
        if places := [self._place(partition) for partition in self._own]:
            self._consumer.commit(offsets=places, asynchronous=True)

    def _expired(self, partition: Partition, offset: int, fact: str) -> SourceError:
        return SourceError(
            f"{partition} of {self._cluster} no longer has the offset {offset} ({fact}): messages are lost, because the"
            " topic keeps them for a shorter time, or it was created anew; keep them longer (retention.ms), or start"
            " afresh"
        )

    def _failed(self, error: Any, now_us: int) -> WaitUntil:
        """Wait before the next attempt, or give up."""
        cluster = self._cluster
        retry_us = self._retries.failed(now_us, cluster.fact(error)) if cluster.may_return(error) else None
        if retry_us is None:
            cause = self._down if self._down is not None and not cluster.may_return(self._down) else error
            raise cluster.error(cause, f"read {', '.join(self._source.topics)}", SourceError)
        return WaitUntil(retry_us)


def _within_bytes(messages: Sequence[Any], count: int) -> int:
    """How many messages to decode at once: at most `count`, and not more bytes than a column of text can hold."""
    taken = min(count, len(messages))
    if taken * len(messages[0]) < _MESSAGES_MAX:  # the client fetches at most as much, unless messages differ greatly
        return taken
    size = 0
    for at in range(taken):
        size += len(messages[at])
        if size > _MESSAGES_MAX:
            return max(at, 1)
    return taken
