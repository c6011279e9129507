"""A sink that is a thousand times slower than its source: in-flight data stays within the pools, and memory does not
grow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job.job import Job
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Outcome

SCHEMA = pa.schema([("key", pa.int64()), ("text", pa.string())])
SLOWNESS = 1_000
TURNS = 8
SIZE = 8


def rows(first: int, count: int) -> pa.RecordBatch:
    numbers = np.arange(first, first + count)
    return pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(["x" * 100] * count)], schema=SCHEMA)


@pytest.fixture(params=["hash", "rebalance", "broadcast", "fires much at once"])
def job(request: pytest.FixtureRequest) -> Iterator[Job]:
    """An endless source, an operator and a sink behind an exchange each; nothing moves unless it is stepped."""
    stream = wb.Stream.from_generator(rows, SCHEMA, event_time="key")
    match request.param:
        case "hash":
            stream = stream.key_by("key").aggregate(n=wb.count())
        case "rebalance":
            stream = stream.rebalance().map_batches(lambda batch: batch)
        case "broadcast":
            stream = stream.broadcast().map_batches(lambda batch: batch)
        case _:
            stream = stream.key_by("key").window(wb.tumbling("1ms")).aggregate(n=wb.count())
    pipeline = stream.rebalance().sink_to(wb.DiscardSink())
    job = pipeline.run(
        "slow", driver="stepping", parallelism=2, buffer_size=SIZE, buffer_timeout="0ms", checkpoint_interval=None
    )
    yield job
    job.cancel()
    job.wait()


def in_flight(execution: Execution) -> int:
    """Buffers that are somewhere between two tasks."""
    queued = sum(channel.queued_buffers for channel in execution.channels)
    filling = sum(1 for task in execution.tasks for output in task.outputs for part in output.pending if part.rows)
    return queued + filling


def bound(execution: Execution) -> int:
    """All pools, those of the inputs (the credit of each channel) and of the outputs, and one buffer a channel."""
    inputs = sum(channel.credit for channel in execution.channels)
    return inputs + sum(task.pool.total for task in execution.tasks) + len(execution.channels)


def records_in_flight(execution: Execution) -> int:
    queued = sum(channel.queued_records for channel in execution.channels)
    return queued + sum(part.rows for task in execution.tasks for output in task.outputs for part in output.pending)


def take_one_buffer(job: Job, name: str) -> None:
    """Step a task until it has taken a buffer of records; control elements cost it nothing."""
    assert job.stepper.driver.execution is not None
    task = job.stepper.driver.execution.task(name)
    assert task is not None
    before = task.root.counters.numRecordsIn
    while task.root.counters.numRecordsIn == before:
        assert job.stepper.driver.step_task(name).outcome == "progressed"


def test_a_slow_sink_fills_the_pools_and_nothing_more(job: Job, request: pytest.FixtureRequest) -> None:
    execution = job.stepper.driver.execution
    assert execution is not None
    sources = [task.name for task in execution.sources]
    sinks = [task.name for task in execution.tasks if not task.outputs]
    quick = [task for task in execution.tasks if task.outputs]
    most = bound(execution)
    peaks: list[int] = []
    fires = request.node.callspec.params["job"] == "fires much at once"
    for _ in range(TURNS):
        peak = 0
        for _ in range(SLOWNESS):  # every other task has a step in a millisecond, a sink has one in a second
            job.stepper.driver.clock.advance_to(job.stepper.driver.clock.now_us() + 1_000)
            outcomes = {task.name: task.step() for task in quick}
            peak = max(peak, in_flight(execution))
            if not fires:  # what one step has too much waits in the task that made it
                assert records_in_flight(execution) <= most * SIZE
        assert peak <= most
        groups = {task.name: task.event_time.alignment for task in execution.sources}
        ahead = {name for name, alignment in groups.items() if alignment is not None and alignment.ahead}
        assert {outcomes[name] for name in sources if name not in ahead} == {Outcome.NO_CREDIT}
        peaks.append(peak)
        for name in sinks:
            take_one_buffer(job, name)
    assert max(peaks[TURNS // 2 :]) <= max(peaks[: TURNS // 2]) + len(sinks)
    frame = job.recorder.latest()
    assert frame is not None
    received = [task.metrics["numRecordsIn"] for task in frame.tasks if task.name in sinks]
    assert sum(int(count or 0) for count in received) >= TURNS  # it is slow, and goes on
