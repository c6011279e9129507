"""TODO of exercise settings."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.job.registry import forget
from workbench.api.streams.stream import Stream
from workbench.connectors.tables.table_sink import TableSink
from workbench.errors import WorkbenchError
from workbench.lessons.exercises.exercise import Judge, MissingAnswerError, ViolatedError
from workbench.lessons.exercises.programs import program
from workbench.operators.event_time.watermarks import INGESTION
from workbench.operators.process.process_function import ProcessFunction

ORDERS = 240
LATENCY_MS = 20.0
BUFFERS_PER_RECORD = 0.25
NAMES = ("buffer_timeout", "buffer_size")


class Age(ProcessFunction):
    """The time from reading a record to processing it."""

    def process(self, record: Any, state: Any, ctx: Any) -> Any:
        return {"age_us": ctx.processing_time - ctx.timestamp}


def judge(answer: Any, chance: Random) -> None:
    """Run orders at a rate that the notebook does not show, and look at the slowest and at the number of buffers."""
    if not isinstance(answer, dict):
        raise ViolatedError("settings", "the answer is not a dict of settings, such as {'buffer_timeout': '100ms'}")
    if ... in answer.values() or not answer:
        raise MissingAnswerError("there are no settings yet")
    if foreign := [name for name in answer if name not in NAMES]:
        raise ViolatedError("settings", f"{foreign[0]!r} is not a setting of this exercise: set {' and '.join(NAMES)}")
    rate = chance.choice((400, 700, 1_000, 2_000))
    table = pa.table({"key": [chance.randrange(2) for _ in range(ORDERS)]})
    orders = Stream.from_table(table, event_time=INGESTION, rate=rate).with_parallelism(1).uid("orders")
    ages = orders.key_by("key").process(Age(), {"age_us": pa.int64()}).with_parallelism(1)
    try:
        job = ages.sink_to(TableSink("ages")).run(
            "lesson-check", driver="stepping", checkpoint_interval=None, replace=True, **answer
        )
    except WorkbenchError as error:
        raise ViolatedError("settings that are valid", str(error)) from error
    with job.stepper.driver.unwatched():
        job.wait()
    forget(job)
    latencies = sorted(job.table("ages")["age_us"].to_pylist())
    p99_ms = latencies[int(len(latencies) * 0.99)] / 1_000
    buffers = next(row["numBuffersOut"] for row in job.metrics() if str(row["task"]).startswith("orders"))
    if p99_ms > LATENCY_MS:
        raise ViolatedError(
            "latency below 20 ms",
            f"at {rate} orders a second, the 99th percentile is {p99_ms:.0f} ms. An order waits until its buffer is "
            "full or the buffer timeout expires: this takes too long.",
            job,
        )
    if buffers > ORDERS * BUFFERS_PER_RECORD:
        raise ViolatedError(
            "at most a buffer for four orders",
            f"at {rate} orders a second, {buffers} buffers were sent for {ORDERS} orders. Each buffer costs the same, "
            "however few orders it contains: let an order wait a little for others.",
            job,
        )


JUDGE: Judge = program(
    judge, 5, "Runs at several rates: 99 of 100 orders within 20 ms, and at most a buffer for four orders."
)
