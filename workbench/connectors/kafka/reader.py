"""Reads the partitions of one subtask with one consumer, and delivers them partition by partition."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.collector import collector_at_rest
from workbench.connectors.contract.looks import Looks
from workbench.connectors.contract.retries import Retries
from workbench.connectors.kafka.cluster import exceptions, kafka_error, kafka_package, place_of
from workbench.connectors.kafka.contacts import INTERVAL_MS
from workbench.connectors.kafka.delivery import Delivery
from workbench.connectors.kafka.known_ends import KnownEnds
from workbench.connectors.kafka.lost_messages import LostMessages
from workbench.connectors.kafka.places import Partition
from workbench.connectors.kafka.run import Run, runs_of
from workbench.connectors.kafka.topic_ids import TopicIds
from workbench.connectors.kafka.topics import Topics
from workbench.durations import MAX_TIME
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.operators.snapshots.pieces import value_in

if TYPE_CHECKING:
    from workbench.connectors.kafka.source import KafkaSource

_FETCHED_MAX = 2_000
"""The number of messages to take from the client in one call. They are decoded while they are in the processor's cache:
with 50,000, each one takes half as long again."""
_PROBE_S = 0.5
_SILENT_US = 5_000_000
"""Brokers answer a fetch within half a second, also if there are no messages."""
_LOOK_US = 1_000_000
"""How often to check the ends of partitions without new messages."""


class KafkaReader(SourceReader):
    """A position is the next offset and, if messages hold several rows, the number of delivered rows of that message.
    Messages that are fetched but not delivered are fetched again after a failure.
    """

    shares_event_time = False

    def __init__(self, source: KafkaSource) -> None:
        self._source = source
        self._cluster = source.cluster
        self._consumer: Any = None
        self._positions: dict[Partition, tuple[int, int]] = {}
        self._ends: dict[Partition, int] = {}
        self._fetched: dict[Partition, tuple[Run, int]] = {}  # with the position after they are delivered
        self._known = KnownEnds()
        self._own: list[Partition] = []
        self._ids = TopicIds(source.cluster, source.topics)
        self._located = self._late_ones_are_new = False
        self._down: Any = None
        self._unknown: Any = None
        self._retries = Retries(source.retries, server=str(source.cluster))
        self._looks, self._discover_us = Looks(), MAX_TIME
        self._looked_us = self._probed_us = 0
        self._splits: tuple[str, ...] | None = None

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._clock = context.clock
        self._consumer = self._cluster.consumer(
            self._note,
            group_id=self._source.group or "workbench",
            statistics_interval_ms=INTERVAL_MS,
            stats_cb=lambda text: self._known.hear(text, self._clock.now_us()),
        )
        self._topics = Topics(self._source, self._consumer)
        self._lost = LostMessages(self._source, self._topics, self._positions, self._ends)
        self._delivery = Delivery(self._source, context)

    def splits(self) -> Sequence[str]:
        if self._splits is None:
            self._splits = tuple(str(partition) for partition in self._own if self._is_open(partition))
        return self._splits

    @property
    def outage(self) -> Outage | None:
        return self._retries.outage

    def progress(self) -> Mapping[str, SplitProgress]:
        found = {}
        for partition in self._own:  # another thread asks for it, so the client is not called
            position = self._positions[partition][0]
            end, told_us = self._ends.get(partition), None  # which does not move
            if end is None and (known := self._known.of(partition)) is not None:
                end, told_us = known
            lag = None if end is None else max(end - position, 0)
            found[str(partition)] = SplitProgress(str(position), lag, told_us)
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
            self._ids.look(now_us)
            if not self._fetched:
                self._fetch(max_records, now_us)
        except exceptions() as error:
            return self._failed(kafka_error(error), now_us)
        while self._fetched:
            partition = next(iter(self._fetched))
            if (delivered := self._deliver(partition, max_records)) is not None:
                self._looks.found()
                return delivered
        if not self.splits() and self._source.bounded:
            return Exhausted()
        return self._looks.next(now_us)

    def snapshot(self) -> Snapshot:
        self._commit_for_display()
        return {
            "positions": {str(partition): list(at) for partition, at in sorted(self._positions.items())},
            "ends": {str(partition): end for partition, end in sorted(self._ends.items())},
            "topics": dict(sorted(self._ids.known.items())),
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
            self._ids.restore(snapshot)
        self._late_ones_are_new = bool(taken) and all(value_in(snapshot, "located", bool) for snapshot in taken)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._ids.close()
        self._fetched = {}

    def _is_open(self, partition: Partition) -> bool:
        is_over = self._source.bounded and self._positions[partition][0] >= self._ends[partition]
        return not is_over or partition in self._lost.doubted

    def _note(self, error: Any) -> None:
        """Called by the client, within its calls, with connection errors."""
        kinds = kafka_package().KafkaError
        if self._cluster.refuses(error):
            self._down = error
        elif error.code() == kinds._ALL_BROKERS_DOWN:
            self._down = self._down or error
        elif error.code() in (kinds._RESOLVE, kinds._SSL):
            self._unknown = error

    def _locate(self) -> None:
        """Determine the partitions, their ends and where to start, when the brokers answer for the first time."""
        found = self._found_partitions()
        self._ids.locate(self._clock.now_us())
        for partition in list(self._positions):
            if partition not in found:
                if partition.topic in self._source.topics:
                    raise self._lost.gone(partition)
                del self._positions[partition]
                self._ends.pop(partition, None)
        for partition in found:
            self._begin(partition, is_new=self._late_ones_are_new)
        self._own, self._splits = found, None
        self._consumer.assign([self._place(partition) for partition in found if self._is_open(partition)])
        self._located = True
        self._retries.succeeded()
        if self._source.discover_us is not None and not self._source.bounded:
            self._discover_us = self._clock.now_us() + self._source.discover_us

    def _found_partitions(self) -> list[Partition]:
        return self._topics.partitions(self._context.subtask, self._context.parallelism)

    def _begin(self, partition: Partition, *, is_new: bool) -> None:
        """Determine where to start and stop reading a partition."""
        low, high = self._topics.bounds(partition)
        self._known.report(partition, high, self._clock.now_us())
        if partition in self._positions:
            self._lost.compare(partition, low, high)
        else:
            self._positions[partition] = (low if is_new else self._topics.first(partition, low, high), 0)
        if self._source.bounded:
            self._ends.setdefault(partition, high)

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

    def _fetch(self, max_records: int, now_us: int) -> None:
        wanted = min(max_records * max(len(self._own), 1), _FETCHED_MAX)
        with collector_at_rest():  # releases the client's objects, one per message
            found = self._take(wanted)
        if not found:
            self._probe(now_us)
        if now_us >= self._looked_us + _LOOK_US or self._lost.doubted:
            self._looked_us = now_us
            self._look(self._own, now_us)
            if self._lost.look(self._own):
                self._splits = None

    def _look(self, partitions: Sequence[Partition], now_us: int) -> None:
        """Keep the ends of partitions from the last answers of connected brokers."""
        for partition in partitions:
            if (end := self._topics.known_end(partition)) is not None:
                self._known.report(partition, end, now_us, cached=True)

    def _take(self, count: int) -> bool:
        """Take messages from the client, if it has any."""
        messages: list[Any] = self._consumer.consume(count, 0)
        if not messages:
            return False
        self._retries.succeeded()
        self._down = None
        if any(map(type(messages[0]).error, messages)):
            messages = self._without_errors(messages)
        self._add(messages)
        return True

    def _add(self, messages: list[Any]) -> None:
        """Keep messages to be delivered."""
        source = self._source
        tombstone = b"{}" if source.format == "json" else b""
        for run in runs_of(messages, source.topics, source.rows.metadata.values(), tombstone):
            self._keep(run, run.offsets[-1] + 1)
            self._look([run.partition], self._clock.now_us())

    def _keep(self, run: Run, after: int) -> None:
        """Keep messages to be delivered, up to the end of a bounded partition.

        Args:
            run: the messages.
            after: the position after they are delivered.
        """
        partition = run.partition
        if not self._is_open(partition):
            return
        if (end := self._ends.get(partition)) is not None and after >= end:
            run = run.part(0, bisect_left(run.offsets, end))
            after = end
            self._consumer.pause([place_of(partition)])
        if (known := self._fetched.get(partition)) is not None:
            run, after = known[0].followed_by(run), max(after, known[1])
        self._fetched[partition] = run, after

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
                if end is not None and message.offset() >= end:  # only a marker follows the last message
                    self._add(good)
                    good = []
                    self._keep(Run(partition, (), ()), message.offset())
            else:
                raise self._lost.error(partition, error)
        return good

    def _probe(self, now_us: int) -> None:
        """Ask whether a broker answers, if the client has lost all of them, or has heard of none for a while."""
        is_silent = now_us > max(self._known.heard_us(now_us), self._probed_us) + _SILENT_US
        if self._down is None and not is_silent:
            return
        if self._down is not None and (self._down.fatal() or not self._cluster.may_return(self._down)):
            raise exceptions()(self._down)
        self._consumer.list_topics(self._source.topics[0], timeout=_PROBE_S)
        self._down, self._probed_us = None, now_us
        self._retries.succeeded()

    def _deliver(self, partition: Partition, count: int) -> Fetched | None:
        """Deliver records of a partition and end its turn; None if the fetched messages have no records."""
        run, after = self._fetched.pop(partition)
        if not len(run):
            self._move(partition, after, 0)
            return None
        if self._source.rows.format.several:
            return self._deliver_rows(run, after, count)
        taken = run.fitting(count)
        self._keep_rest(run.part(taken, len(run)), after)
        return self._delivery.records(run.part(0, taken))

    def _deliver_rows(self, run: Run, after: int, count: int) -> Fetched | None:
        """Deliver rows of the first message, which holds several."""
        partition, offset = run.partition, run.offsets[0]
        at, done = self._positions[partition]
        fetched, delivered = self._delivery.part(run.part(0, 1), done if offset == at else 0, count)
        if delivered is None:
            self._keep_rest(run.part(1, len(run)), after)
        else:
            self._fetched[partition] = run, after  # after the others
            self._move(partition, offset, delivered)
        return fetched

    def _keep_rest(self, rest: Run, after: int) -> None:
        """Keep messages whose predecessors are delivered; the other partitions are next."""
        if len(rest):
            self._fetched[rest.partition] = rest, after
        self._move(rest.partition, rest.offsets[0] if len(rest) else after, 0)

    def _move(self, partition: Partition, offset: int, row: int) -> None:
        self._positions[partition] = (offset, row)
        if self._source.bounded and not self._is_open(partition):
            self._splits = None

    def _place(self, partition: Partition) -> Any:
        return place_of(partition, self._positions[partition][0])

    def _commit_for_display(self) -> None:
        if self._source.group is None or not self._located or self._consumer is None or self._down is not None:
            return
        if places := [self._place(partition) for partition in self._own]:
            self._consumer.commit(offsets=places, asynchronous=True)

    def _failed(self, error: Any, now_us: int) -> WaitUntil:
        """Wait before the next attempt, or give up."""
        cluster = self._cluster
        if not self._located:
            self._consumer.consume(1, 0)  # this subtask has no partition, but polling calls `_note`
        if self._down is not None and not cluster.may_return(self._down):
            error = self._down  # the client keeps retrying, and reports only that a call takes too long
        if self._unknown is not None and cluster.may_return(error):
            error, self._unknown = self._unknown, None  # the other one says only that no broker answers
        retry_us = self._retries.failed(now_us, cluster.outage(error)) if cluster.may_return(error) else None
        if retry_us is None:
            raise cluster.error(error, f"read {', '.join(self._source.topics)}", SourceError)
        return WaitUntil(retry_us)
