"""A real Redis server of a test's own, at a socket in its folder."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Any

import pytest
from waiting import until


class RedisProcess:
    """A server whose data survives its restarts."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.socket = folder / "s"
        self.url = f"unix://{self.socket}"
        self._command = [
            *("redis-server", "--port", "0", "--unixsocket", str(self.socket), "--dir", str(folder)),
            *("--appendonly", "yes", "--save", "", *options),
        ]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        until(self._answers)

    def _answers(self) -> bool:
        """Whether it accepts connections and has loaded its data."""
        with socket(AF_UNIX) as client:
            client.settimeout(5)
            if client.connect_ex(str(self.socket)) != 0:
                return False
            client.sendall(b"PING\r\n")
            return not client.recv(100).startswith(b"-LOADING")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=30)
        self.socket.unlink(missing_ok=True)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        self.socket.unlink(missing_ok=True)


@contextmanager
def running(*options: str) -> Iterator[RedisProcess]:
    """A server; skips the test where there is none."""
    pytest.importorskip("redis", reason="the package redis is not installed")
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    folder = Path(tempfile.mkdtemp(prefix="redis-"))  # a socket's path is short
    server = RedisProcess(folder, *options)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@contextmanager
def client_of(server: RedisProcess) -> Iterator[Any]:
    """A client, closed at the end."""
    import redis

    client = redis.Redis.from_url(server.url)
    try:
        yield client
    finally:
        client.close()
