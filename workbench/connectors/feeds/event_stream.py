"""Server-sent events over HTTP, with the package ``h11``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.connectors.feeds.link import FeedMessage, LinkError
from workbench.connectors.files.record_limit import record_bytes
from workbench.packages import needed

_NAME_MAX = len(b"data: ") + 1
_RETRIED_STATUS = (408, 425, 429, 500, 502, 503, 504)


class EventParser:
    """The events of a stream of bytes, as the HTML standard defines them.

    Example:
        >>> parser = EventParser()
        >>> parser.take(b'id: 7\\ndata: {"a":\\ndata: 1}\\n\\ndata: x')
        [FeedMessage(value=b'{"a":\\n1}', position='7')]
    """

    def __init__(self, last_id: str = "") -> None:
        self._rest = bytearray()
        self._data = bytearray()  # of the event so far, each line with its end
        self._id = last_id

    def take(self, data: bytes) -> list[FeedMessage]:
        """Add received bytes and return the events that are now complete; one that is larger than a record may be is
        cut behind that, so that it is not taken for one."""
        most = record_bytes() + _NAME_MAX
        first, *lines = data.split(b"\n")
        if len(self._rest) <= most:
            self._rest += first
        if lines:
            lines, self._rest = [bytes(self._rest), *lines[:-1]], bytearray(lines[-1])
        found = []
        for ended in lines:
            line = ended.removesuffix(b"\r")
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if not line:
                if self._data:
                    found.append(FeedMessage(bytes(self._data[:-1]), self._id))
                    self._data = bytearray()
            elif name == b"data" and len(self._data) < most:
                self._data += value + b"\n"
            elif name == b"id" and b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        return found


class EventWire:
    """A request for an event stream, and its response.

    Args:
        host: the host of the request.
        target: its path and query.
        headers: additional headers of the request.

    Attributes:
        is_ready: whether the response has begun.
    """

    wants_tls = False

    def __init__(self, host: str, target: str, headers: Mapping[str, str]) -> None:
        self._h11 = needed("h11", "reading server-sent events")
        self._connection: Any = self._h11.Connection(our_role=self._h11.CLIENT)
        self._host, self._target, self._headers = host, target, headers
        self._parser = EventParser()
        self._outgoing = b""
        self.is_ready = False

    def opened(self, position: str) -> None:
        self._parser = EventParser(position)
        headers = [("Host", self._host), ("Accept", "text/event-stream"), ("Cache-Control", "no-cache")]
        headers += [("User-Agent", "streaming-workbench"), *self._headers.items()]
        if position:
            headers.append(("Last-Event-ID", position))
        request = self._h11.Request(method="GET", target=self._target, headers=headers)
        self._outgoing = self._connection.send(request) + self._connection.send(self._h11.EndOfMessage())

    def to_send(self) -> bytes:
        data, self._outgoing = self._outgoing, b""
        return data

    def ping(self) -> bool:
        return False  # a server may send comments, but cannot be asked

    def take(self, data: bytes) -> Sequence[FeedMessage]:
        found: list[FeedMessage] = []
        h11 = self._h11
        try:
            self._connection.receive_data(data)
            while True:
                event = self._connection.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return found
                if isinstance(event, h11.Response):
                    self._check(event)
                elif isinstance(event, h11.Data):
                    found += self._parser.take(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                    if found:
                        return found
                    raise LinkError("the server has ended the stream")
        except h11.RemoteProtocolError as error:
            raise LinkError(f"its answer is not HTTP: {error}") from error

    def _check(self, response: Any) -> None:
        status = response.status_code
        if status != 200:
            reason = bytes(response.reason).decode("latin-1")
            hint = "; use the address to which it moved" if 300 <= status < 400 else ""
            raise LinkError(f"it answers {status} {reason}{hint}", fatal=status not in _RETRIED_STATUS)
        kind = next((value for name, value in response.headers if name == b"content-type"), b"")
        if not kind.startswith(b"text/event-stream"):
            raise LinkError(f"it answers with {kind.decode('latin-1')!r}, not with text/event-stream", fatal=True)
        self.is_ready = True
