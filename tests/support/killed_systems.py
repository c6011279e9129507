"""Real servers between which jobs carry rows while processes are killed and the servers restart: how they are fed, what
another program reads from them, and how they go down."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import kafka_server
import mqtt_server
import nats_server
import postgresql_server
import pyarrow.parquet as pq
import redis_server
from connector_kill_job import PARTS

KEYS = 11


class System(ABC):
    """A server with numbered inputs and outputs, one pair for each job.

    Attributes:
        name: of the job's pipeline.
        place: where the job finds the server.
        keeps: whether the server keeps what comes while the job is away, and its end can be read.
    """

    name: str
    place: str
    keeps: bool = True

    @abstractmethod
    def create(self, number: int) -> None:
        """Create an input and an output."""

    @abstractmethod
    def feed(self, number: int, ids: Sequence[int]) -> None:
        """Add rows to an input; returns when the server has them."""

    @abstractmethod
    def written(self, number: int) -> Counter[int]:
        """The IDs of the rows in an output."""

    def latest(self, number: int) -> dict[int, int] | None:
        """By key: the largest ID in the output that is updated; None: there is no such output."""
        return None

    @abstractmethod
    def down(self) -> None:
        """Kill the server, or what is as near to it as it allows."""

    @abstractmethod
    def up(self) -> None:
        """Start it again."""


class RedisSystem(System):
    """Without ``appendfsync always`` a server that is killed loses writes that it has acknowledged."""

    name = "redis"

    def __init__(self, server: redis_server.RedisProcess, client: Any) -> None:
        self._server, self._client = server, client
        self.place = server.url

    def create(self, number: int) -> None:
        for part in range(PARTS):
            self._client.xgroup_create(f"in-{number}:{part}", "nobody", mkstream=True)

    def feed(self, number: int, ids: Sequence[int]) -> None:
        for each in ids:
            self._client.xadd(f"in-{number}:{each % PARTS}", {"id": each, "key": each % KEYS})

    def written(self, number: int) -> Counter[int]:
        return Counter(int(fields[b"id"]) for _, fields in self._client.xrange(f"out-{number}"))

    def latest(self, number: int) -> dict[int, int]:
        return {int(key): int(last) for key, last in self._client.hgetall(f"last-{number}").items()}

    def down(self) -> None:
        self._server.kill()

    def up(self) -> None:
        self._server.start()


class PostgresSystem(System):
    name = "postgresql"

    def __init__(self, server: postgresql_server.PostgresProcess) -> None:
        self._server = server
        self.place = server.url
        self._connect()

    def create(self, number: int) -> None:
        self._query(f"CREATE TABLE in_{number} (id BIGINT PRIMARY KEY, key BIGINT)")

    def feed(self, number: int, ids: Sequence[int]) -> None:
        rows = ", ".join(f"({each}, {each % KEYS})" for each in ids)
        self._query(f"INSERT INTO in_{number} VALUES {rows}")

    def written(self, number: int) -> Counter[int]:
        return Counter(each for (each,) in self._rows(f"out_{number}", "id"))

    def latest(self, number: int) -> dict[int, int]:
        return dict(self._rows(f"last_{number}", "key, last"))

    def _rows(self, table: str, columns: str) -> list[Any]:
        there = self._query(f"SELECT to_regclass('{table}')::text")[0][0] is not None
        return self._query(f"SELECT {columns} FROM {table}") if there else []

    def _query(self, sql: str) -> list[Any]:
        return postgresql_server.rows_of(self._connection, sql)

    def _connect(self) -> None:
        import adbc_driver_postgresql.dbapi as driver

        self._connection = driver.connect(self.place, autocommit=True)

    def down(self) -> None:
        self.close()
        self._server.crash()

    def up(self) -> None:
        self._server.start()
        self._connect()

    def close(self) -> None:
        self._connection.close()


class KafkaSystem(System):
    """The broker keeps its data in memory, so it is not restarted: all its connections are lost, and new ones refused,
    which is what a client sees of a restart."""

    name = "kafka"

    def __init__(self, server: kafka_server.KafkaProcess) -> None:
        self._server = server
        self.place = server.servers

    def create(self, number: int) -> None:
        for topic in ("in", "out"):
            self._server.topic(PARTS, f"{topic}-{number}")

    def feed(self, number: int, ids: Sequence[int]) -> None:
        self._server.send(f"in-{number}", [json.dumps({"id": n, "key": n % KEYS}).encode() for n in ids], PARTS)

    def written(self, number: int) -> Counter[int]:
        return Counter(json.loads(each.value())["id"] for each in self._server.messages(f"out-{number}", PARTS))

    def down(self) -> None:
        self._server.relay.cut()

    def up(self) -> None:
        self._server.relay.mend()


class NatsSystem(System):
    name = "nats"

    def __init__(self, server: nats_server.NatsProcess) -> None:
        self._server = server
        self.place = server.url

    def create(self, number: int) -> None:
        self._server.stream(f"out-{number}")
        for part in range(PARTS):
            self._server.stream(f"in-{number}-{part}")

    def feed(self, number: int, ids: Sequence[int]) -> None:
        for part in range(PARTS):
            rows = [json.dumps({"id": n, "key": n % KEYS}).encode() for n in ids if n % PARTS == part]
            self._server.send(f"in-{number}-{part}", rows)

    def written(self, number: int) -> Counter[int]:
        return Counter(json.loads(value)["id"] for _, value in self._server.messages(f"out-{number}"))

    def down(self) -> None:
        self._server.kill()

    def up(self) -> None:
        self._server.start()


class MqttSystem(System):
    """A source only, of a broker that keeps nothing; what it reads is written to files."""

    name = "mqtt"
    keeps = False

    def __init__(self, server: mqtt_server.MqttProcess, folder: Path) -> None:
        self._server, self._folder = server, folder
        self.place = f"{folder} {server.url}"

    def create(self, number: int) -> None:
        """A topic needs no creation."""

    def feed(self, number: int, ids: Sequence[int]) -> None:
        self._server.send(f"in-{number}", [json.dumps({"id": n, "key": n % KEYS}).encode() for n in ids])

    def written(self, number: int) -> Counter[int]:
        files = self._folder.glob(f"out-{number}/part-*.parquet")
        return Counter(each for path in files for each in pq.read_table(path, columns=["id"])["id"].to_pylist())

    def down(self) -> None:
        self._server.kill()

    def up(self) -> None:
        self._server.start()


@contextmanager
def redis_system() -> Iterator[RedisSystem]:
    with redis_server.running("--appendfsync", "always") as server, redis_server.client_of(server) as client:
        yield RedisSystem(server, client)


@contextmanager
def postgresql_system() -> Iterator[PostgresSystem]:
    with postgresql_server.running() as server, closing(PostgresSystem(server)) as system:
        yield system


@contextmanager
def kafka_system() -> Iterator[KafkaSystem]:
    with kafka_server.running() as server:
        yield KafkaSystem(server)


@contextmanager
def nats_system() -> Iterator[NatsSystem]:
    with nats_server.running() as server:
        yield NatsSystem(server)


@contextmanager
def mqtt_system() -> Iterator[MqttSystem]:
    with mqtt_server.running() as server, TemporaryDirectory() as folder:
        yield MqttSystem(server, Path(folder))


SYSTEMS = {
    "redis": redis_system,
    "postgresql": postgresql_system,
    "kafka": kafka_system,
    "nats": nats_system,
    "mqtt": mqtt_system,
}
"""By name; each skips the test where its server is missing."""
