"""A real NATS server of a test's own, with JetStream; its streams survive its restarts."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import until


class NatsProcess:
    """A server, and what tests do with its streams."""

    def __init__(self, program: str, folder: Path, *options: str, authority: Path | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.place = f"127.0.0.1:{self.port}"
        self.url = f"{'nats' if authority is None else 'tls'}://{self.place}"
        self._tls = None if authority is None else ssl.create_default_context(cafile=str(authority))
        self._command = [
            *(program, "--addr", "127.0.0.1", "--port", str(self.port), "--jetstream"),
            *("--store_dir", str(folder / "store"), "--pid", str(folder / "pid"), *options),
        ]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._answers)

    def _answers(self) -> bool:
        """Whether it greets."""
        with socket.socket() as client:
            client.settimeout(5)
            return client.connect_ex(("127.0.0.1", self.port)) == 0 and client.recv(5) == b"INFO "

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=30)

    def stream(self, name: str, **options: Any) -> None:
        """Create a stream of the subjects ``NAME.>``."""
        self._with_jet_stream(lambda jet: jet.add_stream(name=name, subjects=[f"{name}.>"], **options))

    def delete(self, stream: str) -> None:
        """Delete a stream with its messages."""
        self._with_jet_stream(lambda jet: jet.delete_stream(stream))

    def delete_message(self, stream: str, sequence: int) -> None:
        """Delete one message."""
        self._with_jet_stream(lambda jet: jet.delete_msg(stream, sequence))

    def send(self, stream: str, values: Sequence[bytes], subject: str = "a") -> None:
        """Add messages, all of them stored when this returns."""

        async def send(jet: Any) -> None:
            for value in values:
                await jet.publish(f"{stream}.{subject}", value)

        self._with_jet_stream(send)

    def change(self, stream: str, **options: Any) -> None:
        """Change the settings of a stream."""
        self._with_jet_stream(lambda jet: jet.update_stream(name=stream, subjects=[f"{stream}.>"], **options))

    def messages(self, stream: str) -> list[tuple[str, bytes]]:
        """The subject and the value of each message."""
        found: list[tuple[str, bytes]] = []

        async def read(jet: Any) -> None:
            count = (await jet.stream_info(stream)).state.messages
            if not count:
                return
            subscription = await jet.subscribe("", stream=stream, ordered_consumer=True)
            for _ in range(count):
                message = await subscription.next_msg(timeout=10)
                found.append((message.subject, message.data))

        self._with_jet_stream(read)
        return found

    def purge(self, stream: str, up_to: int) -> None:
        """Remove the messages before this sequence number."""
        self._with_jet_stream(lambda jet: jet.purge_stream(stream, seq=up_to))

    def _with_jet_stream(self, act: Callable[[Any], Awaitable[object]]) -> None:
        import nats

        async def connected() -> None:
            client = await nats.connect(self.url, allow_reconnect=False, tls=self._tls)
            try:
                await act(client.jetstream())
            finally:
                await client.close()

        asyncio.run(connected())


@contextmanager
def running(*options: str, authority: Path | None = None) -> Iterator[NatsProcess]:
    """A server; skips the test where there is none. With an authority, the test itself connects with TLS."""
    pytest.importorskip("nats", reason="the package nats-py is not installed")
    program = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
    if program is None:
        pytest.skip("nats-server is not installed")
    folder = Path(tempfile.mkdtemp(prefix="nats-"))
    server = NatsProcess(program, folder, *options, authority=authority)
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)
