"""Servers of live feeds, on loopback: server-sent events, WebSockets, and an MQTT broker."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from waiting import until


class EventServer:
    """Sends its events from the one after ``Last-Event-ID`` on, then ends the stream."""

    def __init__(self) -> None:
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
        self.url = f"http://127.0.0.1:{self._server.server_port}/events?a=1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def event_server() -> Iterator[EventServer]:
    pytest.importorskip("h11", reason="the package h11 is not installed")
    server = EventServer()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def web_socket_server(messages: list[str]) -> Iterator[str]:
    """Echoes the first message that it receives, sends these, and closes the connection; yields its URL."""
    sync = pytest.importorskip("websockets.sync.server", reason="the package websockets is not installed")

    def handle(connection: Any) -> None:
        connection.send(connection.recv())
        for message in messages:
            connection.send(message)

    with sync.serve(handle, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/feed"
        server.shutdown()


@contextmanager
def mqtt_broker(folder: Path) -> Iterator[str]:
    """Mosquitto with a password; yields its URL without it."""
    pytest.importorskip("paho.mqtt.client", reason="the package paho-mqtt is not installed")
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    passwords = folder / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "ann", "pa55word"], check=True)
    passwords.chmod(0o644)
    folder.chmod(0o755)
    settings = folder / "mosquitto.conf"
    user = "user root\n" if not folder.is_relative_to("/home") else ""
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {passwords}\n{user}")
    process = subprocess.Popen([program, "-c", str(settings)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: _answers(port))
        yield f"127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        process.wait(timeout=30)


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
