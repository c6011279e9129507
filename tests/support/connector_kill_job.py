"""A process that starts jobs between servers in processes of their own, quickly: it has imported everything, and forks.

Each line on its input is one of these, in JSON:

- ``{"system", "place", "folder", "number", "parallelism", "bounded"}``: start a job; answers with its process ID.
- ``"kill"``: kill it with SIGKILL; answers with its exit status, or the number of the signal as a negative number.
- ``"wait"``: wait until it ends; answers with the same.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench.compiled import warm_up

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


def main() -> None:
    warm_up()
    child = 0
    for line in sys.stdin:
        told: Any = json.loads(line)
        if isinstance(told, dict):
            child = os.fork()
            if child == 0:
                try:
                    ended = run(**told)
                except BaseException as error:  # noqa: BLE001
                    ended = f"{type(error).__name__}: {error}"
                    sys.stderr.write(f"{ended}\n")
                sys.stderr.flush()
                os._exit(ended != "FINISHED")
            answer = child
        else:
            if told == "kill":
                os.kill(child, signal.SIGKILL)  # nobody has waited for it, so the number is still its own
            answer = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
