"""Publishes rows as messages of a JetStream stream, and finds them again after a failure."""

from __future__ import annotations

import secrets
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.plain_types import decoded
from workbench.connectors.epochs.message_id import MessageId
from workbench.connectors.messages.message_format import MessageFormat
from workbench.connectors.nats.publisher import Failure, Request, Requests, body_of
from workbench.connectors.nats.server import NatsServer
from workbench.errors import SinkError
from workbench.from_json import made

_API = "$JS.API.STREAM"
_ID, _STREAM = "Nats-Msg-Id", "Nats-Expected-Stream"
_AT_ONCE = 500
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class _State:
    first_seq: int
    last_seq: int


@dataclass(frozen=True)
class Stream:
    """The stream of a sink; see `MessageLog`. It has one partition, 0, whose offsets are sequence numbers.

    Attributes:
        server: its server.
        name: its name.
        subject: the subject of the messages, or its prefix.
        format: the format of the values.
        key: columns whose texts are appended to the subject.
        attempts: the attempts of requests while the server is unreachable.
        recent: see `MessageLog`.
    """

    server: NatsServer
    name: str
    subject: str
    format: MessageFormat
    key: tuple[str, ...]
    attempts: Attempts = field(default_factory=Attempts, compare=False, repr=False)
    recent: int = 1_000

    fences = False

    @property
    def title(self) -> str:
        """The stream and its server, for messages."""
        return f"the stream {self.name!r} of {self.server}"

    def of_subtask(self) -> Stream:
        """See `MessageLog.of_subtask`."""
        return replace(self, attempts=Attempts(server=str(self.server)))

    def subjects(self, rows: pa.RecordBatch) -> Sequence[str]:
        """The subject of each row."""
        texts = [_texts(rows.column(name)) for name in self.key]
        return (
            [".".join([self.subject, *row]) for row in zip(*texts, strict=True)]
            if texts
            else [self.subject] * len(rows)
        )

    def ends(self) -> dict[int, int]:
        """See `MessageLog.ends`."""
        requests = Requests(self.server, f"read the stream {self.name!r}", self.attempts)
        try:
            return {0: self._state(requests).last_seq + 1}
        finally:
            requests.close()

    def messages(self, begin: Mapping[int, int], back: int = 0, *, committed: bool = False) -> set[MessageId]:
        """See `MessageLog.messages`."""
        requests = Requests(self.server, f"read the stream {self.name!r}", self.attempts)
        try:
            state = self._state(requests)
            first = state.last_seq + 1 - back if back else begin.get(0, state.first_seq)
            numbers = range(max(first, state.first_seq, 1), state.last_seq + 1)
            return {
                found
                for at in range(0, len(numbers), _AT_ONCE)
                for found in self._ids(requests, numbers[at : at + _AT_ONCE])
            }
        finally:
            requests.close()

    def sender(self, writer: str = "", subtask: int = 0) -> Outgoing:
        """A connection."""
        return Outgoing(self)

    def end_senders(self, writer: str, count: int) -> None:
        """Senders leave no transactions."""

    def error(self, failure: Failure) -> SinkError:
        """The error for the user."""
        return SinkError(f"cannot write to the stream {self.name!r} of {self.server}: {failure.description}")

    def _state(self, requests: Requests) -> _State:
        (answer,) = requests.answers([Request(f"{_API}.INFO.{self.name}")])
        if isinstance(answer, Failure):
            if answer.code == _NOT_FOUND:
                raise SinkError(
                    f"there is no stream {self.name!r} at {self.server}: check its name, or create it first"
                )
            raise self.error(answer)
        return made(_State, answer.get("state"), "the state of the stream", ignore_unknown=True)

    def _ids(self, requests: Requests, numbers: Sequence[int]) -> Iterable[MessageId]:
        asked = [Request(f"{_API}.MSG.GET.{self.name}", body_of({"seq": number})) for number in numbers]
        for answer in requests.answers(asked):
            if isinstance(answer, Failure):
                if answer.code == _NOT_FOUND:
                    continue  # it was removed
                raise self.error(answer)
            if (found := _identity(answer.get("message"))) is not None:
                yield found


class Outgoing:
    """See `Sender`: publishes rows. A message that is sent again after a lost connection has the same ID, so the stream
    drops it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._requests = Requests(stream.server, f"write to the stream {stream.name!r}", stream.attempts)
        self._waiting: list[Request] = []
        self._numbers = count()
        self._own = secrets.token_hex(8)
        self.reached: dict[int, int] = {}

    def send(self, rows: pa.RecordBatch, ids: Sequence[MessageId] | None = None) -> None:
        stream = self._stream
        for at, (subject, value) in enumerate(zip(stream.subjects(rows), stream.format.encode(rows), strict=True)):
            own = f"{self._own} {next(self._numbers)}" if ids is None else quote(ids[at].text(), safe=" /")
            self._waiting.append(Request(subject, value, {_ID: own, _STREAM: stream.name}))
            if len(self._waiting) >= _AT_ONCE:
                self.flush()
        if ids is None:
            self.flush()

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        for answer in self._requests.answers(waiting):
            if isinstance(answer, Failure):
                raise self._stream.error(answer)
            sequence = answer.get("seq")
            if isinstance(sequence, int):
                self.reached[0] = max(self.reached.get(0, 0), sequence + 1)

    def whole(self, send: Callable[[], None]) -> None:
        send()

    def close(self) -> None:
        self._waiting = []
        self._requests.close()


def _identity(message: Any) -> MessageId | None:
    """The identity in a stored message, or None."""
    if not isinstance(message, dict) or not isinstance(headers := message.get("hdrs", ""), str):
        return None
    try:
        lines = b64decode(headers).decode("utf-8", "replace").split("\r\n")
    except Base64Error:
        return None
    for line in lines:
        name, _, text = line.partition(":")
        if name == _ID:
            return MessageId.read(unquote(text.strip()))
    return None


def _texts(column: pa.Array) -> list[str]:
    """The texts of a column as parts of a subject, which cannot contain dots, spaces or wildcards."""
    texts = column.cast(decoded(column.type)).cast(pa.large_string()).to_pylist()
    return [quote(text, safe="").replace(".", "%2E") if text else "-" for text in texts]
