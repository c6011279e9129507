"""Sends requests to JetStream and waits for the answers, over one connection with bounded retries."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from workbench.clock import rest
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.secrets import cause_of, hidden
from workbench.connectors.feeds.link import FeedMessage, LinkError
from workbench.connectors.feeds.tcp_link import TcpLink
from workbench.connectors.nats.protocol import Delivered, NatsProtocol
from workbench.connectors.nats.server import Login, NatsServer
from workbench.errors import SinkError
from workbench.from_json import made, parsed
from workbench.redaction import redacted

_ANSWERS = 1
_TURN_S = 0.002
_ANSWER_S = 5.0
"""The maximum silence of the server while answers are pending."""
_BUSY = 503
_NOWHERE = "it has no JetStream now, or no stream that takes the subject"
_CREATE = "check the subject, or create the stream first"
_START = "start the server, or check host and port"
_LATER = (500, _BUSY)


@dataclass(frozen=True, slots=True)
class Request:
    """A request to JetStream.

    Attributes:
        subject, value, headers: the parts of its message.
    """

    subject: str
    value: bytes = b""
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that reports an error.

    Attributes:
        code, err_code: the HTTP status, and JetStream's own code.
        description: JetStream's description.
    """

    code: int = 0
    err_code: int = 0
    description: str = ""


class AnswerWire:
    """See `Wire`: receives the answers to numbered requests.

    Args:
        login: the client's login.
    """

    def __init__(self, login: Login) -> None:
        self.protocol = NatsProtocol(login)
        self._inbox = f"_INBOX.{secrets.token_hex(16)}"
        self.protocol.subscribe(f"{self._inbox}.*", _ANSWERS)

    @property
    def is_ready(self) -> bool:
        """See `Wire`."""
        return self.protocol.greeted

    @property
    def wants_tls(self) -> bool:
        """See `Wire`."""
        return self.protocol.wants_tls

    @wants_tls.setter
    def wants_tls(self, wants: bool) -> None:
        self.protocol.wants_tls = wants

    def opened(self, position: str) -> None:
        """Send nothing beyond the waiting bytes."""

    def ask(self, number: int, request: Request) -> None:
        """Send a request."""
        self.protocol.publish(request.subject, request.value, f"{self._inbox}.{number}", request.headers)

    def ping(self) -> bool:
        self.protocol.ping()
        return True

    def to_send(self) -> bytes:
        return self.protocol.to_send()

    def take(self, data: bytes) -> Sequence[FeedMessage]:
        return cast("Sequence[FeedMessage]", self.protocol.take(data))


class Requests:
    """Sends requests and collects their answers.

    Args:
        server: the server of the stream.
        purpose: their purpose, for errors: ``write to the stream 'ORDERS'``.
        attempts: the attempts while the server is unreachable.
    """

    def __init__(self, server: NatsServer, purpose: str, attempts: Attempts) -> None:
        self._server = server
        self._purpose = purpose
        self._attempts = attempts
        self._link: TcpLink | None = None
        self._wire: AnswerWire | None = None

    def answers(self, requests: Sequence[Request]) -> list[dict[str, Any] | Failure]:
        """The answer to each request. After a lost connection, requests without an answer are sent again.

        Raises:
            SinkError: the server refuses the connection, or is unreachable for too long.
        """
        found: list[dict[str, Any] | Failure | None] = [None] * len(requests)
        while True:
            before = found.count(None)
            try:
                self._ask(requests, found)
                self._attempts.succeeded()
                return [answer for answer in found if answer is not None]
            except LinkError as error:
                self.close()
                if found.count(None) < before:
                    self._attempts.succeeded()
                fact = redacted(hidden(str(error), self._server.url))
                if error.fatal or not self._attempts.again(fact):
                    fix = error.fix or ("" if error.fatal else _CREATE if _NOWHERE in fact else _START)
                    raise SinkError(
                        f"cannot {self._purpose} of {self._server}: {fact}{fix and f'; {fix}'}"
                    ) from cause_of(error, self._server.url)

    def close(self) -> None:
        """Close the connection."""
        if self._link is not None:
            self._link.close()
            self._link = self._wire = None

    def _ask(self, requests: Sequence[Request], found: list[dict[str, Any] | Failure | None]) -> None:
        link, wire = self._connected()
        due = {at for at, answer in enumerate(found) if answer is None}
        for at in sorted(due):
            wire.ask(at, requests[at])
        silent_s = 0.0
        while due:
            if self._attempts.is_over:
                raise LinkError("the job ends before it answers", fatal=True)
            messages = cast("Sequence[Delivered]", link.receive())
            for message in messages:
                at = int(message.subject.rpartition(".")[2])
                if at in due:
                    found[at] = _answer(message)
                    due.discard(at)
            if not messages:
                rest(_TURN_S)
                silent_s += _TURN_S
                if silent_s > _ANSWER_S:
                    raise LinkError("it does not answer")
            else:
                silent_s = 0.0

    def _connected(self) -> tuple[TcpLink, AnswerWire]:
        if self._link is None or self._wire is None:
            wire = self._wire = AnswerWire(self._server.login())
            self._link = TcpLink(self._server.address, lambda: wire)
            self._link.start("")
        return self._link, self._wire


def _answer(message: Delivered) -> dict[str, Any] | Failure:
    """Read an answer of JetStream.

    Raises:
        LinkError: JetStream is not available.
    """
    if message.status == _BUSY:
        raise LinkError(_NOWHERE)
    try:
        told = made(dict[str, Any], parsed(message.value), "the answer")
        if "error" not in told:
            return told
        failure = made(Failure, told["error"], "the error", ignore_unknown=True)
    except ValueError as error:
        raise LinkError(f"its answer cannot be read: {error}", fatal=True) from error
    if failure.code in _LATER and "limit" not in failure.description and "exceeded" not in failure.description:
        raise LinkError(f"it says: {failure.description}")
    return failure


def body_of(values: Mapping[str, object]) -> bytes:
    """The body of a request."""
    return json.dumps(values).encode()
