"""A real MQTT broker of a test's own, Mosquitto; it keeps nothing over its restarts."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import until

USER, PASSWORD = "ann", "pa55word"


class MqttProcess:
    """A broker with one user.

    Args:
        program: Mosquitto.
        folder: an empty folder.
        options: further lines of its configuration.

    Attributes:
        place: its host and port.
        url: with the user and the password.
    """

    def __init__(self, program: str, folder: Path, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.place = f"127.0.0.1:{self.port}"
        self.url = f"mqtt://{USER}:{PASSWORD}@{self.place}"
        passwords, settings = folder / "passwords", folder / "mosquitto.conf"
        subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), USER, PASSWORD], check=True)
        passwords.chmod(0o644)
        folder.chmod(0o755)
        user = "user root\n" if not folder.is_relative_to("/home") else ""
        lines = (f"listener {self.port} 127.0.0.1", "allow_anonymous false", f"password_file {passwords}", *options)
        settings.write_text("\n".join(lines) + "\n" + user)
        self._command = [program, "-c", str(settings)]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._answers)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=30)

    def send(self, topic: str, values: Sequence[bytes], authority: Path | None = None) -> None:
        """Publish messages, all of them received by the broker when this returns; with an authority, over TLS."""
        import paho.mqtt.publish as publish

        options: dict[str, Any] = {"hostname": "127.0.0.1", "port": self.port}
        options["tls"] = None if authority is None else {"ca_certs": str(authority)}
        options["auth"] = {"username": USER, "password": PASSWORD}
        publish.multiple([{"topic": topic, "payload": value, "qos": 1} for value in values], **options)

    def _answers(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def running(*options: str) -> Iterator[MqttProcess]:
    """A broker; skips the test where there is none."""
    pytest.importorskip("paho.mqtt.client", reason="the package paho-mqtt is not installed")
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed")
    folder = Path(tempfile.mkdtemp(prefix="mqtt-"))
    server = MqttProcess(program, folder, *options)
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)
