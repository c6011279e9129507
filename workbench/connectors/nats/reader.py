"""Reads the streams of one subtask, each over a separate connection with bounded retries."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, cast

from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.looks import Looks
from workbench.connectors.contract.retries import Retries
from workbench.connectors.contract.secrets import cause_of, hidden
from workbench.connectors.feeds.link import ANSWER_US, LinkError
from workbench.connectors.feeds.tcp_link import TcpLink
from workbench.connectors.messages.sorting import letters_of, sorted_out
from workbench.connectors.nats.stream_wire import NatsMessage, StreamWire, Wanted
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.operators.contract.positions import Parts, Position
from workbench.operators.snapshots.pieces import value_in
from workbench.redaction import redacted

if TYPE_CHECKING:
    from workbench.connectors.nats.source import NatsSource


@dataclass(slots=True)
class _Split:
    """A stream.

    Attributes:
        stream: its name.
        retries: the retries of its connection.
        position: the sequence number of the last delivered message; None: unknown.
        end: the sequence number of the last message to deliver; None: unbounded or unknown.
        received: the sequence number of the last received message; None: unknown.
        waiting: messages that are received but not delivered.
        pending: the number of messages after the received ones.
        told_us: the time at which the server reported `pending`, in microseconds.
        link, wire: the connection, or None.
        started_us: the time at which the connection was started, in microseconds.
        created: the time at which the stream was created, as the server writes it; empty: unknown.
        is_checked: whether the position is known to be of this stream.
    """

    stream: str
    retries: Retries
    position: int | None = None
    end: int | None = None
    received: int | None = None
    waiting: deque[NatsMessage] = field(default_factory=deque)
    pending: int | None = None
    told_us: int = 0
    link: TcpLink | None = None
    wire: StreamWire | None = None
    started_us: int = 0
    created: str = ""
    is_checked: bool = True

    def close(self) -> None:
        if self.link is not None:
            self.link.close()
        self.link = self.wire = None

    @property
    def is_over(self) -> bool:
        """Whether all messages are delivered."""
        is_read = self.end is not None and self.position is not None and self.position >= self.end
        return is_read and self.is_checked


class NatsReader(SourceReader):
    """A position counts delivered messages: messages that are received but not delivered are received again."""

    shares_event_time = False

    def __init__(self, source: NatsSource) -> None:
        self._source = source
        self._splits: dict[str, _Split] = {}
        self._turns: list[str] = []
        self._looks = Looks()
        self._connections = 0

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._clock = context.clock
        own = self._source.streams[context.subtask :: context.parallelism]
        most, server = self._source.retries, str(self._source.server)
        self._splits = {stream: _Split(stream, Retries(most, server=server)) for stream in own}
        self._turns = list(own)

    def splits(self) -> Sequence[str]:
        return tuple(stream for stream, split in self._splits.items() if not split.is_over)

    @property
    def outage(self) -> Outage | None:
        outages = [split.retries.outage for split in self._splits.values() if split.retries.outage is not None]
        return max(outages, key=lambda outage: outage.attempts, default=None)

    def progress(self) -> Mapping[str, SplitProgress]:
        found = {}
        for stream, split in self._splits.items():
            if split.position is not None:
                lag = None if split.pending is None else split.pending + len(split.waiting)
                found[stream] = SplitProgress(str(split.position), lag, split.told_us)
        return found

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        now_us = self._clock.now_us()
        for stream in self._turns:
            if (split := self._splits[stream]).is_over:
                continue
            if not split.waiting and now_us >= split.retries.retry_us:
                try:
                    self._receive(split, now_us)
                except LinkError as error:
                    self._failed(split, error, now_us)
            if split.waiting:
                self._looks.found()
                self._turns.remove(stream)
                self._turns.append(stream)  # the next turn is another stream's
                return self._deliver(split, max_records)
        if not (left := self.splits()):
            return Exhausted()
        due_us = min(self._splits[stream].retries.retry_us for stream in left)
        return self._looks.next(now_us, due_us)

    def snapshot(self) -> Snapshot:
        return {
            "positions": dict(self._known("position")),
            "ends": dict(self._known("end")),
            "created": {stream: split.created for stream, split in sorted(self._splits.items()) if split.created},
        }

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            for stream, position in value_in(snapshot, "positions", dict[str, int]).items():
                if (split := self._splits.get(stream)) is not None:
                    split.position = split.received = position
                    split.is_checked = False
            for stream, end in value_in(snapshot, "ends", dict[str, int]).items():
                if (split := self._splits.get(stream)) is not None and self._source.bounded:
                    split.end = end

            if "created" in snapshot:
                for stream, created in value_in(snapshot, "created", dict[str, str]).items():
                    if (split := self._splits.get(stream)) is not None:
                        split.created = created

    def close(self) -> None:
        for split in self._splits.values():
            split.close()
            split.waiting.clear()

    def _known(self, name: str) -> Iterator[tuple[str, int]]:
        for stream in sorted(self._splits):
            if (value := getattr(self._splits[stream], name)) is not None:
                yield stream, value

    def _receive(self, split: _Split, now_us: int) -> None:
        """Take received messages, and connect first if necessary."""
        if split.link is None:
            self._connect(split, now_us)
        assert split.link is not None
        assert split.wire is not None
        was_located = split.wire.located is not None
        messages = cast("Sequence[NatsMessage]", split.link.receive())
        split.link.check(now_us)
        located = split.wire.located
        if located is None:
            if now_us > split.started_us + ANSWER_US:
                raise LinkError("it does not answer")
            return
        if not was_located:
            split.retries.succeeded()
            split.pending, split.is_checked = located.pending, True
            split.created = located.created or split.created
            if split.position is None:
                split.position = split.received = located.position
            if self._source.bounded and split.end is None:
                split.end = max(located.last, split.position)
            self._end_of(split)
        if messages or not split.pending:  # it sends each message immediately
            split.told_us = now_us
        if messages:
            split.received, split.pending = messages[-1].sequence, messages[-1].pending
            split.waiting.extend(each for each in messages if split.end is None or each.sequence <= split.end)
            self._end_of(split)

    def _end_of(self, split: _Split) -> None:
        """Other messages of the stream can follow the last one of its subject."""
        assert split.received is not None
        if split.end is not None and (not split.pending or split.received > split.end):
            split.end = split.waiting[-1].sequence if split.waiting else split.position

    def _connect(self, split: _Split, now_us: int) -> None:
        source = self._source
        split.started_us = now_us
        self._connections += 1
        identity = (self._context.run, self._context.uid, split.stream, self._connections, now_us)
        inbox = f"_INBOX.{blake2b(repr(identity).encode(), digest_size=16).hexdigest()}"
        wanted = Wanted(split.stream, source.subject, source.policy, split.created)
        split.wire = wire = StreamWire(source.server.login(), wanted, inbox)
        split.link = TcpLink(source.server.address, lambda: wire)
        split.link.start("" if split.received is None else str(split.received))

    def _deliver(self, split: _Split, count: int) -> Fetched:
        source = self._source
        taken = list(islice(split.waiting, count))
        for _ in taken:
            split.waiting.popleft()
        split.position = taken[-1].sequence

        def place(at: int) -> Position:
            number = taken[at].sequence
            text = f"{split.stream} of {source.server}, message {number}"
            return Position(text, Parts("nats", split.stream, offset=number))

        letters = letters_of([message.value for message in taken], place, source)
        result = sorted_out(len(taken), lambda begin, end: source.decode(taken[begin:end]), letters, source)
        return result.fetched(source, split.stream, place, self._context)

    def _failed(self, split: _Split, error: LinkError, now_us: int) -> None:
        """Wait before the next attempt, or give up."""
        split.close()
        source = self._source
        fact = redacted(hidden(str(error), source.url))
        if error.fatal or split.retries.failed(now_us, fact) is None:
            tries = "" if error.fatal or not source.retries else f" {source.retries + 1} times in a row"
            fix = f"; {error.fix}" if error.fix else ""
            raise SourceError(f"cannot read {split.stream!r} of {source.server}{tries}: {fact}{fix}") from cause_of(
                error, source.url
            )
