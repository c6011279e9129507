"""The client protocol of NATS: bytes in, messages and bytes out.

Source: the NATS documentation, client protocol, with headers (ADR-4).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.connectors.feeds.link import LinkError
from workbench.connectors.nats.server import Login
from workbench.from_json import made, parsed

_LINE_MAX = 1 << 20
_PAYLOAD_MAX = 1 << 26
"""The largest maximum message size that a server supports."""
_REFUSALS = ("authorization", "authentication", "permissions", "user authentication", "maximum payload")


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message from the server.

    Attributes:
        subscription: the number of its subscription.
        subject, reply: its subject, and the subject for an answer or an empty text.
        status: the status of a message without a value, such as ``404``; 0 if it has a value.
        value: its content, or the text of its status.
    """

    subscription: int
    subject: str
    reply: str
    status: int
    value: bytes


@dataclass(frozen=True, slots=True)
class _Info:
    """The introduction of a server."""

    max_payload: int = 1 << 20
    tls_required: bool = False
    tls_available: bool = False


class NatsProtocol:
    """One connection.

    Args:
        login: the client's login.

    Attributes:
        greeted: whether the server has introduced itself.
        wants_tls: whether the connection must be encrypted before anything else is sent.
        max_payload: the maximum size of a message, in bytes.

    Example:
        >>> protocol = NatsProtocol(Login())
        >>> protocol.take(b'INFO {"max_payload": 1024}\\r\\nMSG a 1 5\\r\\nhello\\r\\nMSG a 1')
        [Delivered(subscription=1, subject='a', reply='', status=0, value=b'hello')]
        >>> protocol.to_send().startswith(b'CONNECT {"verbose": false')
        True
    """

    def __init__(self, login: Login) -> None:
        self._login = login
        self._rest = b""
        self._outgoing = b""
        self.greeted = False
        self.wants_tls = False
        self.max_payload = 1 << 20

    def subscribe(self, subject: str, number: int) -> None:
        """Subscribe to a subject."""
        self._outgoing += f"SUB {subject} {number}\r\n".encode()

    def ping(self) -> None:
        """Ask the server for a sign of life."""
        self._outgoing += b"PING\r\n"

    def publish(self, subject: str, value: bytes, reply: str = "", headers: Mapping[str, str] | None = None) -> None:
        """Send a message, or a request whose answer goes to `reply`."""
        lines = b""
        if headers:
            lines = "".join(
                ["NATS/1.0\r\n", *(f"{name}: {text}\r\n" for name, text in headers.items()), "\r\n"]
            ).encode()
        sizes = f"{len(lines)} {len(lines) + len(value)}" if lines else f"{len(value)}"
        words = [f"{'H' if lines else ''}PUB {subject}", *([reply] if reply else []), sizes]
        self._outgoing += " ".join(words).encode() + b"\r\n" + lines + value + b"\r\n"

    def to_send(self) -> bytes:
        """The bytes to send now."""
        if self.wants_tls or not self.greeted:
            return b""
        data, self._outgoing = self._outgoing, b""
        return data

    def take(self, data: bytes) -> list[Delivered]:
        """Add received bytes and return the messages that are now complete.

        Raises:
            LinkError: the server refuses, or does not speak this protocol.
        """
        data = self._rest + data
        found: list[Delivered] = []
        at = 0
        try:
            while (end := data.find(b"\r\n", at)) >= 0:
                verb, _, rest = data[at:end].partition(b" ")
                after = end + 2
                if verb in (b"MSG", b"HMSG"):
                    message, after = self._message(verb, rest, data, after)
                    if message is None:
                        break
                    found.append(message)
                else:
                    self._control(verb.upper(), rest)
                at = after
        except (ValueError, UnicodeDecodeError) as error:
            raise LinkError(f"it does not speak the protocol of NATS: {error}", fatal=True) from error
        self._rest = data[at:]
        if end < 0 and len(self._rest) > _LINE_MAX:
            raise LinkError("it does not speak the protocol of NATS", fatal=True)
        return found

    def _message(self, verb: bytes, rest: bytes, data: bytes, begin: int) -> tuple[Delivered | None, int]:
        """The message whose content begins at this index, and the index of the next line; None if it is incomplete."""
        words = rest.decode().split()
        sizes = [int(word) for word in words[-2 if verb == b"HMSG" else -1 :]]
        head, size = (sizes[0] if verb == b"HMSG" else 0), sizes[-1]
        places = words[: -len(sizes)]
        if not 2 <= len(places) <= 3 or not 0 <= head <= size <= _PAYLOAD_MAX:
            raise ValueError(f"{verb.decode()} {rest[:80]!r}")
        if len(data) < begin + size + 2:
            return None, begin
        status, text = _status(data[begin : begin + head]) if head else (0, b"")
        value = text if status else data[begin + head : begin + size]
        reply = places[2] if len(places) == 3 else ""
        return Delivered(int(places[1]), places[0], reply, status, value), begin + size + 2

    def _control(self, verb: bytes, rest: bytes) -> None:
        if verb == b"PING":
            self._outgoing += b"PONG\r\n"
        elif verb == b"INFO":
            self._greet(made(_Info, parsed(rest), "INFO", ignore_unknown=True))
        elif verb == b"-ERR":
            said = rest.decode("utf-8", "replace").strip(" '")
            raise LinkError(f"it says: {said}", fatal=said.lower().startswith(_REFUSALS))
        elif verb not in (b"PONG", b"+OK"):
            raise ValueError(repr(verb[:20]))

    def _greet(self, info: _Info) -> None:
        self.max_payload = info.max_payload
        if self.greeted:
            return  # it announces other servers of its cluster
        self.greeted = True
        if self._login.tls and not (info.tls_required or info.tls_available):
            raise LinkError("it has no TLS: write nats:// instead of tls://", fatal=True)
        if info.tls_required and not self._login.tls:
            raise LinkError("it requires TLS: write tls:// instead of nats://", fatal=True)
        self.wants_tls = self._login.tls
        options: dict[str, object] = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True}
        options |= {"lang": "python", "version": "1", "protocol": 1, "name": "streaming-workbench"}
        options |= _given({"user": self._login.user, "pass": self._login.password, "auth_token": self._login.token})
        self._outgoing = f"CONNECT {json.dumps(options)}\r\n".encode() + self._outgoing


def _given(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value}


def _status(head: bytes) -> tuple[int, bytes]:
    """The status in the first line of headers and its text; 0 without a status."""
    first = head.partition(b"\r\n")[0]
    words: Sequence[bytes] = first.split(maxsplit=2)
    if not words or words[0] != b"NATS/1.0":
        raise ValueError(f"headers begin with {first[:20]!r}")
    return (int(words[1]), words[2] if len(words) > 2 else b"") if len(words) > 1 else (0, b"")
