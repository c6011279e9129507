"""What an architecture of fault tolerance cost a job that has ended, from its frames."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.api.job.job import Job
from workbench.api.pictures.mechanism import mechanism_of
from workbench.runtime.job.zombies import Woken
from workbench.telemetry.frames import end_latency


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs of one run; of one on Spark, what Spark does not measure is None.

    Attributes:
        failures: after which the job or a part of it restarted.
        records_again: records that sources read again after failures or time-outs.
        recovery_ms: until the sources were where they had been, on average; None: nothing failed.
        records_per_second: of the input, over the whole run.
        p50_ms, p99_ms: latency from the sources to the slowest sink: the median of the medians, and the highest 99th
            percentile; None: not measured.
        buffers: sent between tasks in the last attempt.
        messages: beside the records: barriers, acknowledgements to and from ackers in the last attempt, and calls of
            a store.
        checkpoints: that were completed.
        bytes: written: of checkpoints, and of transactions.
        stall_ms: how long checkpoints kept the sources from reading, in total.
        timed_out: roots that were replayed because they were not acknowledged in time.
        queued: micro-batches that waited at the same time.
        refused: what tasks tried in vain that were replaced and woke up: records that did not arrive, refused writes.
    """

    failures: int
    records_again: int
    recovery_ms: float | None
    records_per_second: float | None
    p50_ms: float | None
    p99_ms: float | None
    buffers: int | None
    messages: int | None
    checkpoints: int
    bytes: int | None
    stall_ms: float | None
    timed_out: int | None
    queued: int | None
    refused: int | None


def cost_of(job: Job, records: int, woken: Sequence[Woken] = ()) -> Cost:
    """The costs of a job that has ended.

    Args:
        job: the job.
        records: of its input.
        woken: what its tasks did that were replaced and woke up.
    """
    frames = job.recorder.frames()
    last = frames[-1]
    latencies = [end_latency([vertex.id for vertex in frame.vertices], frame.edges, frame.latency) for frame in frames]
    known = [latency for latency in latencies if latency is not None]
    seconds = float(last.metrics.get("runningTime") or 0) / 1_000
    widest = max(frames, key=lambda frame: len(frame.channels))  # the last one of a job that has ended has none
    cost = mechanism_of(
        replace(last, channels=widest.channels), {one.id: one for frame in frames for one in frame.checkpoints}.values()
    )
    return Cost(
        failures=int(last.metrics.get("numRestarts") or 0),
        records_again=cost.records_again,
        recovery_ms=cost.recovery_ms,
        records_per_second=records / seconds if seconds else None,
        p50_ms=statistics.median(latency.p50_ms for latency in known) if known else None,
        p99_ms=max((latency.p99_ms for latency in known), default=None),
        buffers=sum(int(vertex.metrics.get("numBuffersOut") or 0) for vertex in last.vertices),
        messages=cost.messages,
        checkpoints=int(last.metrics.get("numberOfCompletedCheckpoints") or 0),
        bytes=cost.bytes,
        stall_ms=cost.stall_ms,
        timed_out=cost.timed_out,
        queued=max(mechanism_of(frame).queued for frame in frames),
        refused=sum(each.in_vain for each in woken),
    )
