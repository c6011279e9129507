"""Exercise `settings` of lesson 2: what is special are the slowest and the fastest rate."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.job.job import Job
from workbench.api.job.registry import forget
from workbench.api.streams.stream import Stream
from workbench.connectors.tables.table_sink import TableSink
from workbench.drivers.stepped.stepping import ReachedError
from workbench.elements import Records
from workbench.errors import WorkbenchError
from workbench.lessons.exercises.exercise import Judge, MissingAnswerError, ViolatedError
from workbench.lessons.exercises.programs import program
from workbench.operators.event_time.watermarks import INGESTION
from workbench.operators.process.process_function import ProcessFunction

ORDERS = 240
LATENCY_MS = 20.0
BUFFERS_PER_RECORD = 0.25
RATES = (400, 500, 700, 1_000, 1_400, 2_000)
"""Orders a second. The slowest needs a long timeout for four orders in a buffer, and fills a large one too late."""
NAMES = ("buffer_timeout", "buffer_size")


class Age(ProcessFunction):
    """The time from reading a record to processing it."""

    def process(self, record: Any, state: Any, ctx: Any) -> Any:
        return {"age_us": ctx.processing_time - ctx.timestamp}


def at_rate(rate: int, answer: Any) -> None:
    """Run orders at a rate, and look at the slowest and at the number of buffers."""
    _check(answer)
    job, steps = _run(answer, rate)
    latencies = sorted(job.table("ages")["age_us"].to_pylist())
    p99_ms = latencies[int(len(latencies) * 0.99)] / 1_000
    buffers = next(row["numBuffersOut"] for row in job.metrics() if str(row["task"]).startswith("orders"))
    if p99_ms > LATENCY_MS:
        raise ViolatedError(
            "latency below 20 ms",
            f"at {rate} orders a second, the 99th percentile is {p99_ms:g} ms. An order waits until its buffer is "
            "full or the buffer timeout expires: this takes too long.",
            job,
            opens=partial(_until, answer, rate, steps["slow"]),
        )
    if buffers - 1 > ORDERS * BUFFERS_PER_RECORD:  # the last one says that there are no more orders
        raise ViolatedError(
            "at most a buffer for four orders",
            f"at {rate} orders a second, {buffers} buffers were sent for {ORDERS} orders. Each buffer costs the same, "
            "however few orders it contains: let an order wait a little for others.",
            job,
            opens=partial(_until, answer, rate, steps["small"]),
        )


def judge(answer: Any, chance: Random) -> None:
    """Run orders at a rate that nobody knows."""
    at_rate(chance.randrange(RATES[0], RATES[-1]), answer)


def _check(answer: Any) -> None:
    if not isinstance(answer, dict):
        raise ViolatedError("settings", "the answer is not a dict of settings, such as {'buffer_timeout': '100ms'}")
    if any(value is ... for value in answer.values()) or not answer:
        raise MissingAnswerError("there are no settings yet")
    if foreign := [name for name in answer if name not in NAMES]:
        raise ViolatedError("settings", f"{foreign[0]!r} is not a setting of this exercise: set {' and '.join(NAMES)}")


def _start(answer: dict[str, Any], rate: int) -> Job:
    table = pa.table({"key": [number * 7 % 5 % 2 for number in range(ORDERS)]})
    orders = Stream.from_table(table, event_time=INGESTION, rate=rate).with_parallelism(1).uid("orders")
    ages = orders.key_by("key").process(Age(), {"age_us": pa.int64()}).with_parallelism(1).uid("ages")
    try:
        job = ages.sink_to(TableSink("ages")).run(
            "lesson-check", driver="stepping", checkpoint_interval=None, replace=True, **answer
        )
    except WorkbenchError as error:
        raise ViolatedError("settings that are valid", str(error)) from error
    forget(job)
    return job


def _run(answer: dict[str, Any], rate: int) -> tuple[Job, dict[str, int]]:
    """The job at its end, and the steps before the first order that is too slow and the first small buffer."""
    job = _start(answer, rate)
    driver = job.stepper.driver
    steps = {"slow": 0, "small": 0}

    def hear(_: str, records: Records) -> None:
        ages = records.batch.column("age_us").to_pylist()
        if max(ages) > LATENCY_MS * 1_000:
            steps["slow"] = steps["slow"] or driver.taken
        if len(ages) < 1 / BUFFERS_PER_RECORD:
            steps["small"] = steps["small"] or driver.taken

    with driver.unwatched(), driver.listening(["ages"], hear):
        job.wait()
    return job, steps


def _until(answer: dict[str, Any], rate: int, step: int) -> Job:
    job = _start(answer, rate)
    driver = job.stepper.driver
    driver.stop_at = step
    with driver.unwatched(), suppress(ReachedError):
        driver.run_until(lambda: job.over)
    driver.stop_at = None
    return job


JUDGE: Judge = program(
    [partial(at_rate, rate) for rate in RATES],
    judge,
    2,
    f"runs at rates from {RATES[0]} to {RATES[-1]}: 99 of 100 orders within 20 ms, and at most a buffer for four "
    "orders.",
)
