"""The pipelines of runs: a source, a map, an aggregate by key, and one or several sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench import col

from .rows import PARTS

SCHEMA = {"id": pa.int64(), "key": pa.int64(), "value": pa.int64(), "text": pa.string()}

APPENDING: dict[str, Callable[[str, int], Any]] = {
    "kafka": lambda place, number: wb.KafkaSink(place, f"out-{number}", key="key", delivery="exactly-once"),
    "kafka-at-least-once": lambda place, number: wb.KafkaSink(place, f"out-{number}", key="key"),
    "kafka-transactions": lambda place, number: wb.KafkaSink(
        place, f"out-{number}", key="key", delivery="transactions"
    ),
    "nats": lambda place, number: wb.NatsSink(place, f"out-{number}", f"out-{number}.rows", delivery="exactly-once"),
    "nats-at-least-once": lambda place, number: wb.NatsSink(place, f"out-{number}", f"out-{number}.rows"),
    "redis": lambda place, number: wb.RedisSink(place, f"out-{number}"),
    "postgresql": lambda place, number: wb.SqlSink(place, f"out_{number}", create=False),
    "parquet": lambda place, number: wb.ParquetSink(f"{place}/out-{number}"),
    "csv": lambda place, number: wb.FileSink(f"{place}/out-{number}", "csv"),
    "json": lambda place, number: wb.FileSink(f"{place}/out-{number}", "json"),
    "sqlite": lambda place, number: wb.SqlSink(f"sqlite:///{place}/{number}.sqlite", f"out_{number}"),
    "duckdb": lambda place, number: wb.SqlSink(f"duckdb:///{place}/{number}.duckdb", f"out_{number}"),
}
"""Sinks that add rows, by their names."""

UPDATING: dict[str, Callable[[str, int, str], Any]] = {
    "redis-hash": lambda place, number, key: wb.RedisSink(place, f"last-{number}", upsert_key=key),
    "postgresql-upsert": lambda place, number, key: wb.SqlSink(place, f"last_{number}", upsert_key=key),
    "sqlite-upsert": lambda place, number, key: wb.SqlSink(
        f"sqlite:///{place}/{number}.sqlite", f"last_{number}", upsert_key=key
    ),
    "duckdb-upsert": lambda place, number, key: wb.SqlSink(
        f"duckdb:///{place}/{number}.duckdb", f"last_{number}", upsert_key=key
    ),
}
"""Sinks that replace the row of a key, by their names."""


@dataclass(frozen=True)
class End:
    """A source or a sink.

    Attributes:
        kind: its name.
        place: the URL of its server, or its folder.
    """

    kind: str
    place: str


def source_of(end: End, number: int, *, bounded: bool, rate: float | None) -> wb.Stream:
    """The stream of an input.

    Args:
        end: the source.
        number: of the run, which is in the names of its input and outputs.
        bounded: whether it ends where the input ends now.
        rate: of files: rows per second.
    """
    sign = ":" if end.kind == "redis" else "-"
    streams = [f"in-{number}{sign}{part}" for part in range(PARTS)]
    match end.kind:
        case "kafka":
            source: Any = wb.KafkaSource(end.place, f"in-{number}", SCHEMA, bounded=bounded)
        case "nats":
            source = wb.NatsSource(end.place, streams, SCHEMA, bounded=bounded)
        case "redis":
            source = wb.RedisSource(end.place, streams, SCHEMA, bounded=bounded)
        case "postgresql":
            source = wb.SqlSource(end.place, f"in_{number}", SCHEMA, bounded=bounded, poll="10ms")
        case "postgresql-log":
            source = wb.PostgresLogSource(
                end.place,
                f"in_{number}",
                SCHEMA,
                slot=f"slot_{number}",
                publication=f"publication_{number}",
                bounded=bounded,
                chunk_rows=40,
            )
        case "mqtt":
            source = wb.MqttSource(end.place, SCHEMA, topic=f"in-{number}")
        case _:
            files = [Path(end.place) / f"in-{number}-{part}.{end.kind}" for part in range(PARTS)]
            return wb.Stream.from_files(files, SCHEMA, rate=rate).uid("read")
    return wb.Stream.from_source(source).uid("read")


def mapped(rows: wb.Stream) -> wb.Stream:
    """The map of each run."""
    return rows.with_columns(twice=col("value") * 2).uid("map")


def flow(
    source: End,
    sinks: Sequence[End],
    number: int,
    *,
    shape: str,
    bounded: bool = False,
    rate: float | None = None,
    through: Callable[[wb.Stream], wb.Stream] = mapped,
) -> wb.types.Pipeline:
    """The pipeline of a run.

    Args:
        source: what it reads.
        sinks: what it writes to.
        number: of the run.
        shape: what is appended: ``rows`` as the map passes them, or ``counts`` of their keys so far.
        bounded: whether it ends where the input ends now.
        rate: of files: rows per second.
        through: the map.
    """
    passed = through(source_of(source, number, bounded=bounded, rate=rate))
    if source.kind == "postgresql-log":
        groups = passed.group_by("key").aggregate(n=wb.count(), total=wb.sum("value")).uid("groups")
        branches = [
            (passed if shape == "rows" else groups).sink_to(
                UPDATING[each.kind](each.place, number, "id" if shape == "rows" else "key")
            )
            for each in sinks
        ]
    else:
        counts = passed.key_by("key").aggregate(n=wb.count(), id=wb.max("id"), total=wb.sum("value")).uid("counts")
        appended = passed.partition_by("key") if shape == "rows" else counts
        branches = [
            counts.sink_to(UPDATING[each.kind](each.place, number, "key"))
            if each.kind in UPDATING
            else appended.sink_to(APPENDING[each.kind](each.place, number))
            for each in sinks
        ]
    pipeline, *others = branches
    for each in others:
        pipeline = pipeline + each
    return pipeline
