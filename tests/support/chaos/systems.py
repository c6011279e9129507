"""The servers of runs: how a producer feeds them, what another program reads from them, and how they fail."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import kafka_server
import mqtt_server
import nats_server
import redis_server
from hanging import hanging
from relay import Relay

from .judge import Found
from .messages import message, read_message, read_texts
from .rows import PARTS, Row, part_of, row


class System(ABC):
    """A server with numbered inputs and outputs, one pair for each run.

    Attributes:
        place: where jobs find it.
        relay: through which they do; None: it has no connections.
        restarts: whether it keeps what it has over its end.
        keeps: whether it keeps what comes while the job is away, and its end can be read.
        late: whether messages of a killed job may come when another one has begun, if the server is slow. The producer
            is behind the relay, too.
        busy: held while rows are fed, and while the server cannot be reached.
    """

    place: str
    relay: Relay | None = None
    restarts: bool = True
    keeps: bool = True
    late: bool = False

    def __init__(self, server: Any = None) -> None:
        self._server = server
        self.busy = threading.RLock()

    def create_input(self, kind: str, number: int) -> None:  # noqa: B027  most need nothing
        """Create an input."""

    def create_output(  # noqa: B027  most need nothing
        self, kind: str, number: int, columns: Mapping[str, type]
    ) -> None:
        """Create an output; see `found`."""

    def drop(self, kind: str, number: int) -> None:  # noqa: B027  most need nothing
        """Drop what would burden later runs."""

    @abstractmethod
    def feed(self, kind: str, number: int, numbers: range) -> None:
        """Add rows to an input; returns when the server has them."""

    @abstractmethod
    def found(self, kind: str, number: int, columns: Mapping[str, type]) -> list[Found]:
        """The rows of an output, in its order.

        Args:
            kind: of the sink.
            number: of the run.
            columns: and their types.
        """

    def down(self) -> None:
        """Kill the server."""
        self._server.kill()

    def up(self) -> None:
        """Start it again."""
        self._server.start()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """A server that is stopped, and goes on at the end."""
        with hanging(self._server):
            yield


def by_part(numbers: range) -> Iterator[tuple[int, list[Row]]]:
    """The rows of each partition."""
    rows = [row(number) for number in numbers]
    for part in range(PARTS):
        yield part, [each for each in rows if part_of(each) == part]


class RedisSystem(System):
    """Without ``appendfsync always`` a server that is killed loses writes that it has acknowledged."""

    def __init__(self, server: redis_server.RedisProcess, client: Any) -> None:
        super().__init__(server)
        self._client = client
        self.relay = Relay(server.socket)
        self.place = f"redis://127.0.0.1:{self.relay.port}"

    def create_input(self, kind: str, number: int) -> None:
        for part in range(PARTS):
            self._client.xgroup_create(f"in-{number}:{part}", "nobody", mkstream=True)

    def feed(self, kind: str, number: int, numbers: range) -> None:
        for part, rows in by_part(numbers):
            for each in rows:
                self._client.xadd(f"in-{number}:{part}", each)

    def found(self, kind: str, number: int, columns: Mapping[str, type]) -> list[Found]:
        if kind == "redis":
            return [read_texts(fields, columns) for _, fields in self._client.xrange(f"out-{number}")]
        begin = f"last-{number}:"
        keys = [key for key in sorted(self._client.keys(f"{begin}*")) if key != f"{begin}workbench".encode()]
        return [read_texts(self._client.hgetall(key), columns) for key in keys]


class KafkaSystem(System):
    """The broker keeps its data in memory, so it is not restarted. It tells clients the address of the relay, so the
    producer and the reader need that, too."""

    restarts = False
    late = True

    def __init__(self, server: kafka_server.KafkaProcess) -> None:
        super().__init__(server)
        self.relay = server.relay
        self.place = server.servers

    def create_input(self, kind: str, number: int) -> None:
        self._server.topic(PARTS, f"in-{number}")

    def create_output(self, kind: str, number: int, columns: Mapping[str, type]) -> None:
        self._server.topic(PARTS, f"out-{number}")

    def feed(self, kind: str, number: int, numbers: range) -> None:
        rows = [row(each) for each in numbers]
        self._server.send(f"in-{number}", list(map(message, rows)), PARTS, to=list(map(part_of, rows)))

    def found(self, kind: str, number: int, columns: Mapping[str, type]) -> list[Found]:
        return [read_message(each.value()) for each in self._server.messages(f"out-{number}", PARTS)]

    def down(self) -> None:
        """Lose all connections, which is what a client sees of a restart."""
        self._server.relay.cut()

    def up(self) -> None:
        self._server.relay.mend()


class NatsSystem(System):
    def __init__(self, server: nats_server.NatsProcess) -> None:
        super().__init__(server)
        self.relay = Relay(server.port)
        self.place = f"nats://127.0.0.1:{self.relay.port}"

    def create_input(self, kind: str, number: int) -> None:
        for part in range(PARTS):
            self._server.stream(f"in-{number}-{part}")

    def create_output(self, kind: str, number: int, columns: Mapping[str, type]) -> None:
        self._server.stream(f"out-{number}")

    def feed(self, kind: str, number: int, numbers: range) -> None:
        for part, rows in by_part(numbers):
            self._server.send(f"in-{number}-{part}", list(map(message, rows)))

    def found(self, kind: str, number: int, columns: Mapping[str, type]) -> list[Found]:
        return [read_message(value) for _, value in self._server.messages(f"out-{number}")]


class MqttSystem(System):
    """A source only, of a broker that keeps nothing."""

    keeps = False

    def __init__(self, server: mqtt_server.MqttProcess) -> None:
        super().__init__(server)
        self.relay = Relay(server.port)
        self.place = server.url.replace(server.place, f"127.0.0.1:{self.relay.port}")

    def feed(self, kind: str, number: int, numbers: range) -> None:
        self._server.send(f"in-{number}", [message(row(each)) for each in numbers])

    def found(self, kind: str, number: int, columns: Mapping[str, type]) -> list[Found]:
        raise NotImplementedError("there is no sink")


@contextmanager
def redis() -> Iterator[RedisSystem]:
    with redis_server.running("--appendfsync", "always") as server, redis_server.client_of(server) as client:
        yield RedisSystem(server, client)


@contextmanager
def kafka() -> Iterator[KafkaSystem]:
    with kafka_server.running() as server:
        yield KafkaSystem(server)


@contextmanager
def nats() -> Iterator[NatsSystem]:
    with nats_server.running() as server:
        yield NatsSystem(server)


@contextmanager
def mqtt() -> Iterator[MqttSystem]:
    with mqtt_server.running() as server:
        yield MqttSystem(server)
