"""WebSocket messages, with the package ``websockets``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.connectors.feeds.link import FeedMessage, LinkError
from workbench.connectors.files.record_limit import record_bytes, too_large
from workbench.packages import needed
from workbench.raised import first_line_of


class WebSocketWire:
    """A WebSocket connection.

    Args:
        url: the URL of the server, with its secrets.
        headers: additional headers of the handshake.
        subscribe: messages to send when the connection is open.

    Attributes:
        is_ready: whether the handshake is complete.
    """

    wants_tls = False

    def __init__(self, url: str, headers: Mapping[str, str], subscribe: Sequence[str]) -> None:
        client = needed("websockets.client", "reading WebSockets")
        uri = needed("websockets.uri", "reading WebSockets").parse_uri(url)
        frames = needed("websockets.frames", "reading WebSockets")
        self._text, self._close = (frames.Opcode.TEXT, frames.Opcode.BINARY, frames.Opcode.CONT), frames.Opcode.CLOSE
        self._protocol: Any = client.ClientProtocol(uri, max_size=record_bytes())
        self._too_big: type[Exception] = needed("websockets.exceptions", "reading WebSockets").PayloadTooBig
        self._open: object = needed("websockets.protocol", "reading WebSockets").State.OPEN
        self._response: type[Any] = needed("websockets.http11", "reading WebSockets").Response
        self._headers = headers
        self._subscribe = subscribe
        self._parts: list[bytes] = []
        self.is_ready = False

    def opened(self, position: str) -> None:
        request = self._protocol.connect()
        request.headers.update(self._headers)
        self._protocol.send_request(request)

    def to_send(self) -> bytes:
        return b"".join(self._protocol.data_to_send())

    def ping(self) -> bool:
        if self._can_send:
            self._protocol.send_ping(b"")
        return True

    def take(self, data: bytes) -> Sequence[FeedMessage]:
        protocol = self._protocol
        if data:
            protocol.receive_data(data)
        else:
            protocol.receive_eof()
        found = []
        for event in protocol.events_received():
            if isinstance(event, self._response):
                if protocol.handshake_exc is not None:
                    fact = first_line_of(protocol.handshake_exc)
                    raise LinkError(
                        f"it refuses the handshake: {fact}", fatal=event.status_code in (400, 401, 403, 404)
                    )
                for message in self._subscribe if self._can_send else ():
                    protocol.send_text(message.encode())
                self.is_ready = True
            elif event.opcode in self._text:
                self._parts.append(bytes(event.data))
                if event.fin:
                    found.append(FeedMessage(b"".join(self._parts)))
                    self._parts = []
        if not found and isinstance(protocol.parser_exc, self._too_big):
            raise LinkError(too_large("a message"), fatal=True)
        if not found and protocol.parser_exc is not None:
            raise LinkError(f"it breaks the protocol: {first_line_of(protocol.parser_exc)}")
        if not found and protocol.handshake_exc is not None:
            raise LinkError(f"it refuses the handshake: {first_line_of(protocol.handshake_exc)}")
        return found

    @property
    def _can_send(self) -> bool:
        """Whether the server has not closed the connection, which it may do with its answer to the handshake."""
        return self._protocol.state is self._open
