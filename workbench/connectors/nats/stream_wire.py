"""Reads a JetStream stream over one connection, from a sequence number on, with an ephemeral consumer.

Source: the NATS documentation, JetStream wire API reference; ADR-15 for the subjects of acknowledgements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.connectors.feeds.link import FeedMessage, LinkError
from workbench.connectors.nats.protocol import Delivered, NatsProtocol
from workbench.connectors.nats.server import Login
from workbench.from_json import made, parsed

_INFO, _CREATED, _NEXT, _KEPT = 1, 2, 3, 4
"""The subscriptions: answers to both requests, messages, and answers about messages that did not arrive."""
_AT_ONCE = 1_000
_EXPIRES_NS = 30_000_000_000
_FORGOTTEN_NS = 300_000_000_000
_BYTES_MIN = 1 << 24
_STREAM_NOT_FOUND = 10_059
_BUSY = 503


@dataclass(frozen=True, slots=True)
class NatsMessage(FeedMessage):
    """A message of a stream; its position is its sequence number.

    Attributes:
        sequence: its sequence number, from 1.
        subject: its subject.
        stored_ns: the time at which the stream stored it, in nanoseconds since 1970.
        pending: the number of messages after it.
    """

    sequence: int = 0
    subject: str = ""
    stored_ns: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The part of a stream to read.

    Attributes:
        stream: its name.
        subject: the subject of the messages, possibly with wildcards; empty: all.
        start: the delivery policy of JetStream with its parameter, if there is no position.
        created: the time at which the stream of the position was created, as the server wrote it; empty: unknown.
    """

    stream: str
    subject: str
    start: Mapping[str, object]
    created: str = ""


@dataclass(frozen=True, slots=True)
class Located:
    """Where reading starts.

    Attributes:
        position: the sequence number before the first message to read.
        last: the sequence number of the stream's last message.
        pending: the number of messages after the position.
        created: the time at which the stream was created, as the server writes it; empty: it is not told.
    """

    position: int
    last: int
    pending: int
    created: str = ""


@dataclass(frozen=True, slots=True)
class _Failure:
    code: int = 0
    err_code: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class _State:
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class _Config:
    max_msgs_per_subject: int = -1


@dataclass(frozen=True, slots=True)
class _StreamInfo:
    state: _State
    created: str = ""
    config: _Config = _Config()


@dataclass(frozen=True, slots=True)
class _At:
    stream_seq: int


@dataclass(frozen=True, slots=True)
class _ConsumerInfo:
    name: str
    delivered: _At
    num_pending: int = 0


class StreamWire:
    """See `Wire`; the position of a connection is a sequence number.

    Args:
        login: the client's login.
        wanted: the part to read.
        inbox: a unique subject for answers.

    Attributes:
        located: where reading starts, once the server has reported it.
    """

    def __init__(self, login: Login, wanted: Wanted, inbox: str) -> None:
        self._protocol = NatsProtocol(login)
        self._wanted = wanted
        self._inbox = inbox
        self._position = ""
        self._last = 0
        self._created_at = ""
        self._consumer = ""
        self._due = 0
        self._count = 0
        self._received: int | None = None
        self._gap: int | None = None  # the message before those that did not arrive
        self._held: list[NatsMessage] = []  # those after it
        self.located: Located | None = None

    @property
    def is_ready(self) -> bool:
        """See `Wire`."""
        return self.located is not None

    @property
    def wants_tls(self) -> bool:
        """See `Wire`."""
        return self._protocol.wants_tls

    @wants_tls.setter
    def wants_tls(self, wants: bool) -> None:
        self._protocol.wants_tls = wants

    def opened(self, position: str) -> None:
        self._position = position
        for number in (_INFO, _CREATED, _NEXT, _KEPT):
            self._protocol.subscribe(f"{self._inbox}.{number}", number)
        self._request(f"STREAM.INFO.{self._wanted.stream}", None, _INFO)

    def ping(self) -> bool:
        self._protocol.ping()
        return True

    def to_send(self) -> bytes:
        return self._protocol.to_send()

    def take(self, data: bytes) -> Sequence[FeedMessage]:
        found: list[NatsMessage] = []
        for message in self._protocol.take(data):
            if message.subscription == _NEXT:
                if (taken := self._next(message)) is not None:
                    found += self._without_gap(taken)
            elif message.subscription == _KEPT:
                found += self._after_gap(self._answer(message, _StreamInfo))
            elif message.subscription == _INFO:
                self._begin(self._answer(message, _StreamInfo))
            elif message.subscription == _CREATED:
                self._created(self._answer(message, _ConsumerInfo))
        return found

    def _request(self, what: str, body: Mapping[str, object] | None, answer: int) -> None:
        value = b"" if body is None else json.dumps(body).encode()
        self._protocol.publish(f"$JS.API.{what}", value, f"{self._inbox}.{answer}")

    def _answer(self, message: Delivered, kind: type[Any]) -> Any:
        """Read the answer to a request.

        Raises:
            LinkError: the server refuses it.
        """
        if message.status == _BUSY:
            raise LinkError("it has no JetStream now: start it with --jetstream")
        try:
            told = made(dict[str, Any], parsed(message.value), "the answer")
            if "error" not in told:
                return made(kind, told, "the answer", ignore_unknown=True)
            failure = made(_Failure, told["error"], "the error", ignore_unknown=True)
        except ValueError as error:
            raise LinkError(f"its answer cannot be read: {error}", fatal=True) from error
        if failure.err_code == _STREAM_NOT_FOUND:
            fact = f"there is no stream {self._wanted.stream!r}: check its name, or create it first"
            raise LinkError(fact, fatal=True)
        raise LinkError(f"it says: {failure.description}", fatal=failure.code != _BUSY)

    def _begin(self, info: _StreamInfo) -> None:
        """Create the consumer."""
        start = self._wanted.start
        self._last, self._created_at = info.state.last_seq, info.created
        if self._position:
            position = int(self._position)
            self._check_kept(position, info)
            start = {"deliver_policy": "by_start_sequence", "opt_start_seq": position + 1}
        config: dict[str, object] = {"ack_policy": "none", "replay_policy": "instant", "max_deliver": 1, **start}
        config |= {"inactive_threshold": _FORGOTTEN_NS, "mem_storage": True, "num_replicas": 1}
        if self._wanted.subject:
            config["filter_subject"] = self._wanted.subject
        body = {"stream_name": self._wanted.stream, "config": config}
        self._request(f"CONSUMER.CREATE.{self._wanted.stream}", body, _CREATED)

    def _check_kept(self, position: int, info: _StreamInfo) -> None:
        """Raise an error if messages after the position were removed, or the position is of another stream."""
        state, created = info.state, self._wanted.created
        if created and info.created and created != info.created:
            fact = f"it was created at {info.created}, and the one that was read at {created}"
        elif state.last_seq < position:
            fact = f"it ends at {state.last_seq}, because it was recreated or restored from an older copy"
        elif state.first_seq > position + 1:
            fact = f"it begins at {state.first_seq}, because its limits removed older messages"
        else:
            return
        raise LinkError(
            f"the stream {self._wanted.stream!r} no longer has the message {position + 1}: {fact}, so messages are "
            "lost; keep messages longer, or start without the checkpoint",
            fatal=True,
        )

    def _without_gap(self, message: NatsMessage) -> Sequence[NatsMessage]:
        """Hold messages back until the server has told whether those before them were deleted or, unread, removed."""
        before, self._received = self._received, message.sequence
        if self._wanted.subject:
            return (message,)  # those of other subjects are between
        if self._gap is None and before is not None and message.sequence > before + 1:
            self._gap = before
            self._request(f"STREAM.INFO.{self._wanted.stream}", None, _KEPT)
        if self._gap is None:
            return (message,)
        self._held.append(message)
        return ()

    def _after_gap(self, info: _StreamInfo) -> Sequence[NatsMessage]:
        assert self._gap is not None
        if info.config.max_msgs_per_subject <= 0:  # otherwise newer messages replace those of their subject
            self._check_kept(self._gap, info)
        held, self._held, self._gap = self._held, [], None
        return held

    def _created(self, info: _ConsumerInfo) -> None:
        self._consumer = info.name
        position = int(self._position) if self._position else info.delivered.stream_seq
        if self._position:
            self._received = position
        self.located = Located(position, self._last, info.num_pending, self._created_at)
        self._pull()

    def _pull(self) -> None:
        """Ask for the next messages."""
        self._due = _AT_ONCE
        size = max(_BYTES_MIN, self._protocol.max_payload + (1 << 16))
        body = {"batch": _AT_ONCE, "expires": _EXPIRES_NS, "max_bytes": size}
        self._request(f"CONSUMER.MSG.NEXT.{self._wanted.stream}.{self._consumer}", body, _NEXT)

    def _next(self, message: Delivered) -> NatsMessage | None:
        if message.status:
            self._told(message)
            return None
        sequence, count, stored_ns, pending = _acknowledged(message.reply)
        self._count += 1
        if count != self._count:
            raise LinkError(f"it has skipped {count - self._count} messages")
        self._due -= 1
        if not self._due:
            self._pull()
        return NatsMessage(message.value, str(sequence), sequence, message.subject, stored_ns, pending)

    def _told(self, message: Delivered) -> None:
        text = message.value.decode("utf-8", "replace")
        over = message.status in (404, 408) or "maxbytes" in text.lower().replace(" ", "")
        if not over:  # it has dropped the consumer, or shuts down
            raise LinkError(f"it says: {message.status} {text}")
        self._pull()


def _acknowledged(subject: str) -> tuple[int, int, int, int]:
    """Parse the subject of an acknowledgement: the sequence numbers of the message in the stream and for the consumer,
    its storage time, and the number of messages after it.

    Raises:
        LinkError: it is not such a subject.

    Example:
        >>> _acknowledged("$JS.ACK.orders.c1.1.70.7.1700000000000000000.3")
        (70, 7, 1700000000000000000, 3)
    """
    parts = subject.split(".")
    begin = 5 if len(parts) == 9 else 7  # with a domain and an account
    try:
        if parts[:2] != ["$JS", "ACK"] or len(parts) < begin + 4:
            raise ValueError
        sequence, count, stored_ns, pending = map(int, parts[begin : begin + 4])
    except ValueError:
        raise LinkError(f"a message has no position, but {subject[:80]!r}", fatal=True) from None
    return sequence, count, stored_ns, pending
