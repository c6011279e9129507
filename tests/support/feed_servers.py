"""Servers of live feeds, on loopback: server-sent events and WebSockets."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class EventServer:
    """Sends its events from the one after ``Last-Event-ID`` on, then ends the stream."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.events: list[str] = []
        self.asked: list[str] = []
        self.status, self.kind = 200, "text/event-stream"
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                last = self.headers.get("Last-Event-ID", "")
                outer.asked.append(last)
                self.send_response(outer.status)
                self.send_header("Content-Type", outer.kind)
                self.end_headers()
                for at in range(int(last or -1) + 1, len(outer.events)):
                    self.wfile.write(f": hint\nid: {at}\ndata: {outer.events[at]}\n\n".encode())

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/events?a=1"
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def event_server(context: ssl.SSLContext | None = None) -> Iterator[EventServer]:
    pytest.importorskip("h11", reason="the package h11 is not installed")
    server = EventServer(context)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def web_socket_server(
    messages: list[str], port: int = 0, *, keeps: bool = False, context: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Echoes the first message that it receives, sends these, and closes the connection; yields its URL.

    Args:
        messages: to send.
        port: to listen at; 0: any.
        keeps: send nothing, and keep the connection open until the client closes it.
        context: for TLS.
    """
    sync = pytest.importorskip("websockets.sync.server", reason="the package websockets is not installed")

    def handle(connection: Any) -> None:
        if keeps:
            for _ in connection:
                pass
            return
        connection.send(connection.recv())
        for message in messages:
            connection.send(message)

    with sync.serve(handle, "127.0.0.1", port, ssl=context) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{'ws' if context is None else 'wss'}://127.0.0.1:{server.socket.getsockname()[1]}/feed"
        server.shutdown()
