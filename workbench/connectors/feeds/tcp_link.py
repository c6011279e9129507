"""A non-blocking TCP connection, with or without TLS, for a protocol that does not use sockets itself."""

from __future__ import annotations

import os
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from workbench.connectors.feeds.certificates import tls_failure, trusting
from workbench.connectors.feeds.keep_alive import keep_alive
from workbench.connectors.feeds.link import FeedMessage, LinkError
from workbench.errors import told_by

_RECEIVED_MAX = 1 << 18
_MESSAGES_MAX = 10_000
_PING_US, _PROBE_US = 5_000_000, 30_000_000
"""The silence after which a server is asked whether it answers: by a ping, or otherwise by a second connection."""
_ALIVE_US = 5_000_000
"""How long it can take to answer."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server.

    Attributes:
        host, port: the server's host and port.
        tls: whether the connection is encrypted, and the server's certificate checked.
        ca_file: the authorities to trust, see `trusting`.
    """

    host: str
    port: int
    tls: bool = False
    ca_file: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Wire(Protocol):
    """A protocol: bytes in, messages and bytes out.

    Attributes:
        wants_tls: whether the open connection must be encrypted before anything else is sent; the link then sets it to
            False.
        is_ready: whether the server has accepted the request.
    """

    wants_tls: bool

    @property
    def is_ready(self) -> bool: ...

    def opened(self, position: str) -> None:
        """Called when the connection is open; the first bytes to send can be ready now."""

    def take(self, data: bytes) -> Sequence[FeedMessage]:
        """Add received bytes and return the messages that are now complete; empty bytes mean that the server has closed
        the connection.

        Raises:
            LinkError: the server refuses, or breaks the protocol.
        """

    def to_send(self) -> bytes:
        """The bytes to send now."""

    def ping(self) -> bool:
        """Ask the server for a sign of life; False: the protocol has no such question."""


class TcpLink:
    """See `Link`.

    Args:
        address: the address of the server.
        wire: creates the protocol for one connection.

    Attributes:
        heard: the number of bytes received over all connections.
    """

    def __init__(self, address: Address, wire: Callable[[], Wire]) -> None:
        self._address = address
        self._make = wire
        self._socket: socket.socket | None = None
        self._state = "closed"
        self._outgoing = b""
        self._position = ""
        self.heard = self._known = 0
        self._heard_us = 0
        self._asked_us: int | None = None
        self._probe: TcpLink | None = None
        self._failure: LinkError | None = None

    @property
    def is_ready(self) -> bool:
        """See `Link`."""
        return self._state == "open" and self._wire.is_ready

    def start(self, position: str) -> None:
        self._position = position
        self._wire = self._make()
        self._outgoing = b""
        address = self._address
        try:
            found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise LinkError(f"the host {address.host!r} is unknown ({told_by(error)})") from error
        family, kind, protocol, _, place = found[0]
        self._socket = socket.socket(family, kind, protocol)
        self._socket.setblocking(False)
        keep_alive(self._socket)
        self._socket.connect_ex(place)  # select reports the outcome
        self._state = "connecting"

    def receive(self) -> Sequence[FeedMessage]:
        if self._failure is not None:
            raise self._failure
        try:
            if self._state == "connecting":
                self._connect()
            if self._state == "greeting":
                self._greet()
            if self._state == "open":
                return self._exchange()
        except LinkError:
            raise
        except ssl.SSLError as error:
            raise tls_failure(error) from error
        except OSError as error:
            raise LinkError(told_by(error)) from error
        return ()

    def check(self, now_us: int) -> None:
        """See `Link`. A server whose process hangs is not detected by keep-alive probes, which its kernel answers."""
        is_heard = self.heard != self._known or not self.is_ready
        if is_heard or (self._probe is not None and self._is_answered(self._probe)):
            self._known, self._heard_us = self.heard, now_us
            self._end_probe()
            return
        if self._asked_us is not None:
            if now_us > self._asked_us + _ALIVE_US:
                raise LinkError("it does not answer")
        elif now_us > self._heard_us + _PING_US and self._wire.ping():
            self._asked_us = now_us
        elif now_us > self._heard_us + _PROBE_US:
            self._asked_us = now_us
            self._probe = TcpLink(self._address, self._make)
            self._probe.start(self._position)

    def _is_answered(self, probe: TcpLink) -> bool:
        """Whether the server answers a second connection; a refusal is an answer, too."""
        try:
            probe.receive()
        except LinkError:
            if not probe.heard:
                raise
        return probe.heard > 0

    def _end_probe(self) -> None:
        self._asked_us = None
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    def close(self) -> None:
        self._end_probe()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
            self._socket = None
        self._state = "closed"
        self._failure = None

    def _connect(self) -> None:
        assert self._socket is not None
        _, writable, broken = select.select([], [self._socket], [self._socket], 0)
        if not writable and not broken:
            return
        if code := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise LinkError(os.strerror(code))
        if self._address.tls:
            self._secure()
        else:
            self._open()

    def _secure(self) -> None:
        assert self._socket is not None
        context = trusting(self._address.ca_file)
        self._socket = context.wrap_socket(
            self._socket, server_hostname=self._address.host, do_handshake_on_connect=False
        )
        self._state = "greeting"

    def _greet(self) -> None:
        assert isinstance(self._socket, ssl.SSLSocket)
        with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self._socket.do_handshake()
            if self._wire.wants_tls:
                self._wire.wants_tls, self._state = False, "open"
            else:
                self._open()

    def _open(self) -> None:
        self._wire.opened(self._position)
        self._state = "open"

    def _exchange(self) -> list[FeedMessage]:
        """Send waiting bytes, and take received ones."""
        found: list[FeedMessage] = []
        assert self._socket is not None
        while len(found) < _MESSAGES_MAX:
            self._send()
            try:
                data = self._socket.recv(_RECEIVED_MAX)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            self.heard += len(data)
            try:
                found += self._wire.take(data)
                if self._wire.wants_tls:
                    self._secure()
                    break
                if not data:
                    raise LinkError("the server has closed the connection")
            except LinkError as error:
                if not found:
                    raise
                self._failure = error  # for the next call
                break
        return found

    def _send(self) -> None:
        assert self._socket is not None
        self._outgoing += self._wire.to_send()
        while self._outgoing:
            try:
                self._outgoing = self._outgoing[self._socket.send(self._outgoing) :]
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
