"""Passes the connections to a server on, and lets tests cut, delay and ambush them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_CHUNK = 1 << 16
_PIECE = 1_000
"""Bytes that a slow connection passes on at once."""


class Relay:
    """Passes TCP connections on to a port, or the path of a socket, until it is cut; connections are refused until it
    is mended.

    Attributes:
        port: where it listens.
        answer: answers a request of a client in the broker's place, for connections that are made from now on; where it
            returns None, the broker does.
        delay_s: how long each piece of a slow connection waits; 0: not at all.
    """

    def __init__(self, target: int | Path) -> None:
        self._target = target
        self.answer: Callable[[bytes], bytes | None] | None = None
        self.delay_s = 0.0
        self._ambush: _Ambush | None = None
        self._pairs: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.port = 0
        self.mend()

    def mend(self) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen()
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        assert self._listener is not None
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.forget()

    def forget(self) -> None:
        """End all connections, with what is on its way in them."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for each in pairs:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def ambush(self, after: int, act: Callable[[], None], *, to_server: bool) -> None:
        """Pass so many bytes on, then act once, in the middle of whatever is sent; the rest of that is lost.

        Args:
            after: a number of bytes of all connections together.
            act: cuts the connections, or kills a process.
            to_server: whether the bytes of requests are counted, or those of answers.
        """
        with self._lock:
            self._ambush = _Ambush(after, act, to_server)

    def disarm(self) -> bool:
        """Call the ambush off; returns whether it is too late for that."""
        with self._lock:
            ambush, self._ambush = self._ambush, None
            return ambush is None

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                try:
                    server = self._connected()
                except OSError:  # the server is down
                    client.close()
                    continue
                with self._lock:
                    self._pairs += [client, server]
                lock, answer = threading.Lock(), self.answer
                for source, sink in ((client, server), (server, client)):
                    asked = answer if source is client else None if answer is None else lambda _: None
                    threading.Thread(
                        target=self._pass_on, args=(source, sink, asked, lock, source is client), daemon=True
                    ).start()
                if self._listener is not listener:  # it was cut while the connection was made
                    for each in (client, server):
                        with suppress(OSError):
                            each.shutdown(socket.SHUT_RDWR)

    def _connected(self) -> socket.socket:
        if isinstance(self._target, Path):
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._target))
            except OSError:
                server.close()
                raise
            return server
        server = socket.create_connection(("127.0.0.1", self._target))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server

    def _pass_on(
        self,
        source: socket.socket,
        sink: socket.socket,
        answer: Callable[[bytes], bytes | None] | None,
        lock: threading.Lock,
        to_server: bool,
    ) -> None:
        """Pass bytes on, or, to answer some, whole requests and responses, which each begin with their size."""
        with suppress(OSError), source.makefile("rb") as whole:
            while answer is None and (data := source.recv(_CHUNK)):
                self._send(sink, data, to_server=to_server)
            while answer is not None and (size := whole.read(4)):
                data = whole.read(int.from_bytes(size, "big"))
                if (own := answer(data)) is None:
                    target, data = sink, size + data
                else:
                    target, data = source, len(own).to_bytes(4, "big") + own
                with lock:  # both directions write to the client
                    target.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        source.close()
        with self._lock:
            self._pairs = [each for each in self._pairs if each is not source]

    def _send(self, sink: socket.socket, data: bytes, *, to_server: bool) -> None:
        with self._lock:
            ambush = self._ambush
            if ambush is not None and ambush.to_server == to_server:
                ambush.after -= len(data)
                if ambush.after < 0:
                    self._ambush = None
                    data = data[: ambush.after]
                else:
                    ambush = None
            else:
                ambush = None
        while data:
            delay_s = self.delay_s
            piece, data = (data[:_PIECE], data[_PIECE:]) if delay_s else (data, b"")
            time.sleep(delay_s)
            sink.sendall(piece)
        if ambush is not None:
            ambush.act()
            raise ConnectionAbortedError


class _Ambush:
    def __init__(self, after: int, act: Callable[[], None], to_server: bool) -> None:
        self.after, self.act, self.to_server = after, act, to_server
