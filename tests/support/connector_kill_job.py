"""A program that starts jobs between servers in processes of their own; see `forking`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from forking import serve

import workbench as wb

SCHEMA = {"id": pa.int64(), "key": pa.int64()}
PARTS = 2
"""Streams or partitions that a job reads."""


def redis(place: str, number: int, bounded: bool) -> wb.types.Pipeline:
    """From streams into a stream, exactly once, and the latest row of each key into a hash."""
    rows = wb.Stream.from_source(
        wb.RedisSource(place, [f"in-{number}:{part}" for part in range(PARTS)], SCHEMA, bounded=bounded)
    ).uid("read")
    latest = rows.key_by("key").aggregate(last=wb.max("id"))
    return rows.rebalance().sink_to(wb.RedisSink(place, f"out-{number}")) + latest.sink_to(
        wb.RedisSink(place, f"last-{number}", upsert_key="key", value="last")
    )


def postgresql(place: str, number: int, bounded: bool) -> wb.types.Pipeline:
    """From a table into a table, exactly once, and the latest row of each key into another one."""
    source = wb.SqlSource(place, f"in_{number}", SCHEMA, bounded=bounded, poll="10ms")
    rows = wb.Stream.from_source(source).uid("read")
    latest = rows.key_by("key").aggregate(last=wb.max("id"))
    return rows.rebalance().sink_to(wb.SqlSink(place, f"out_{number}")) + latest.sink_to(
        wb.SqlSink(place, f"last_{number}", upsert_key="key")
    )


def kafka(place: str, number: int, bounded: bool) -> wb.types.Pipeline:
    """From a topic into a topic, exactly once."""
    rows = wb.Stream.from_source(wb.KafkaSource(place, f"in-{number}", SCHEMA, bounded=bounded)).uid("read")
    return rows.rebalance().sink_to(wb.KafkaSink(place, f"out-{number}", key="key", delivery="exactly-once"))


def nats(place: str, number: int, bounded: bool) -> wb.types.Pipeline:
    """From streams into a stream, exactly once."""
    source = wb.NatsSource(place, [f"in-{number}-{part}" for part in range(PARTS)], SCHEMA, bounded=bounded)
    sink = wb.NatsSink(place, f"out-{number}", f"out-{number}.rows", delivery="exactly-once")
    return wb.Stream.from_source(source).uid("read").rebalance().sink_to(sink)


def mqtt(place: str, number: int, bounded: bool) -> wb.types.Pipeline:
    """From a topic, which has no end, into files: at most once."""
    folder, _, url = place.partition(" ")
    source = wb.MqttSource(url, SCHEMA, topic=f"in-{number}")
    return wb.Stream.from_source(source).uid("read").rebalance().sink_to(wb.ParquetSink(f"{folder}/out-{number}"))


SYSTEMS: dict[str, Callable[[str, int, bool], wb.types.Pipeline]] = {
    "redis": redis,
    "postgresql": postgresql,
    "kafka": kafka,
    "nats": nats,
    "mqtt": mqtt,
}


def run(system: str, place: str, folder: str, number: int, parallelism: int, bounded: bool) -> str:
    """Continue the job from wherever an earlier process left it; returns how it ended."""
    job = SYSTEMS[system](place, number, bounded).run(
        f"{system}-{number}",
        parallelism=parallelism,
        buffer_timeout="5ms",
        checkpoint_interval="30ms",
        checkpoint_dir=Path(folder) / "checkpoints",
        resume=True,
        restart=wb.restart.exponential_delay(),
    )
    state = job.wait()
    if state != "FINISHED":
        sys.stderr.write(f"{state}: {job.status()}\n")
    return state


def pipelines() -> None:
    """One of each kind."""
    places = {"redis": "redis://localhost", "postgresql": "postgresql://localhost/x", "nats": "nats://localhost"}
    for name, system in SYSTEMS.items():
        system(places.get(name, "/tmp mqtt://localhost" if name == "mqtt" else "localhost:9092"), 0, False)


if __name__ == "__main__":
    serve(run, pipelines)
