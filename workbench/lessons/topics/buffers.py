"""Lesson 2: latency, throughput and buffers (the coffee shop, E1, E3, E4, F2-3, F2-4, D2, D3, D6)."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.job.registry import forget
from workbench.api.streams.stream import Stream
from workbench.connectors.tables.table_sink import TableSink
from workbench.errors import WorkbenchError
from workbench.lessons.exercises.exercise import Exercise, MissingAnswerError, ViolatedError
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.programs import program
from workbench.lessons.exercises.question import Choice, Number, Option
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


LESSON = LessonPlan(
    number="02",
    title="Latency, throughput and buffers",
    promise="Afterwards you can explain why a stream processor sends buffers, what a buffer timeout does, and why a slow "
    "task slows down its source.",
    questions=(
        Choice(
            "rush-hour",
            "A coffee shop makes a coffee in 3 minutes, one at a time. Guests arrive at random, 19 an hour on average. "
            "How long does a guest wait from entering to drinking, on average?",
            (
                Option("About 3 minutes: the shop can make 20 an hour.", lambda minutes: minutes < 4),
                Option("About 6 minutes.", lambda minutes: 4 <= minutes < 10),
                Option("More than 10 minutes.", lambda minutes: minutes >= 10),
            ),
            "Close to the peak throughput of a system, requests spend their time in queues. Latency is low only while "
            "there is spare capacity.",
        ),
        Number(
            "channels-of-four",
            "Four parallel senders and four parallel receivers, by key. How many channels, and so at least how many "
            "buffers?",
            "channels",
            "There is one for each pair: the number grows with the square of the parallelism.",
            factor=1.0,
        ),
        Choice(
            "timeout",
            "Records arrive at 1,000 a second, and a buffer has room for 64. The buffer timeout is 10 ms. What is the "
            "latency of the slowest records?",
            (
                Option("About 0 ms: the timeout is the exception.", lambda ms: ms < 5),
                Option("About 10 ms.", lambda ms: 5 <= ms <= 20),
                Option("About 64 ms: the buffer has to be full.", lambda ms: ms > 20),
            ),
            "In 10 ms only ten records arrive, so the timeout sends the buffer. The first record in it has waited 10 ms.",
        ),
        Choice(
            "stalled",
            "A sink stops accepting records. The source could read 200 more records. How many does it read before it "
            "stops?",
            (
                Option("All 200: they wait in the memory of the stalled task.", lambda read: read >= 200),
                Option("As many as there are buffers between the source and the sink.", lambda read: 5 < read < 200),
                Option("None: it stops immediately.", lambda read: read <= 5),
            ),
            "Buffers are bounded. Each task fills the pool of the next one, then its own, and then takes no input.",
        ),
    ),
    exercises=(
        Exercise(
            "settings",
            "Choose `buffer_timeout` and `buffer_size` so that, at rates between 400 and 2,000 orders a second, 99 of "
            "100 orders arrive within 20 ms, and at most one buffer is sent for four orders.",
            (
                "Look at your curves: which timeouts keep the latency below 20 ms?",
                "At 400 orders a second, four orders arrive in 10 ms. A shorter timeout sends buffers with too few orders.",
                "A timeout between 12 and 18 ms works, with a buffer that has room for more than four orders.",
            ),
            program(
                judge, 5, "Runs at several rates: 99 of 100 orders within 20 ms, and at most a buffer for four orders."
            ),
        ),
    ),
)
