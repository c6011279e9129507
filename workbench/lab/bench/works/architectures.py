"""Architectures of fault tolerance side by side: the same pipeline, input and failures, and what comes of the results.

A failure happens at a record, not at a time, so it is the same for each architecture: the function that counts the
records raises an error when it first sees that record.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.connectors.contract.base import Guarantee
from workbench.elements import Int64s
from workbench.plan.acking import ACKS, IDS
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.execution import Execution
from workbench.telemetry.frames import end_latency

SECONDS = 10
RATE = 100_000
KEYS = 100
INTERVAL = "200ms"
FAILS_AT = (0.4, 0.7)
"""The places of the failing records, as parts of the input."""
ARCHITECTURES = (
    "snapshots",
    "acks",
    "stop-the-world",
    "changelog:offset_interval=2s",
    f"micro-batches:batch_interval={INTERVAL}",
    "at-most-once",
    "transactions:coalesce=1000",
    "transactions",
)
SLOW = {"transactions": 500}
"""Records per second, at most, where each record costs a write in each task."""
SAMPLE_S = 0.1
PATIENCE = "600s"


@dataclass(frozen=True, slots=True)
class Compared:
    """One run of one architecture.

    Attributes:
        architecture: as users write it.
        claimed: the guarantee of the architecture.
        observed: the strongest guarantee that the results agree with; ``"none"``: records are lost and others doubled.
        records: of the input.
        seconds: from the first record to the end.
        throughput: records of the input per second, including recoveries.
        p50_ms, p99_ms: latency from source to sink: the median of the medians, and the highest 99th percentile.
        buffers: buffers sent between tasks in the last attempt.
        ack_messages, ack_bytes: messages to and from ackers in the last attempt, and the bytes of these and of the ids
            that travel with records.
        timed_out: roots that were replayed because they were not acknowledged in time.
        checkpoints: how many were completed.
        written_bytes: of the checkpoints in the history, the last fifty.
        replayed: how often a record reached the function again.
        lost_rows, doubled_rows: records that a table of all records lacks, or has once more.
        lost_counts, doubled_counts: records that the counts by key lack, or have once more.
        recovery_ms: from a failure to the next batch of the function, on average.
    """

    architecture: str
    claimed: Guarantee
    observed: str
    records: int
    seconds: float
    throughput: float
    p50_ms: float
    p99_ms: float
    buffers: int
    ack_messages: int
    ack_bytes: int
    timed_out: int
    checkpoints: int
    written_bytes: int
    replayed: int
    lost_rows: int
    doubled_rows: int
    lost_counts: int
    doubled_counts: int
    recovery_ms: float

    @property
    def kept(self) -> bool:
        """Whether the results agree with the claimed guarantee."""
        return self.observed in ("exactly-once", self.claimed)

    def to_json(self) -> str:
        """One line of JSON."""
        found = {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(self).items()}
        config = {name: found.pop(name) for name in ("architecture", "claimed")}
        return json.dumps(
            {"peer": "workbench", "workload": "architectures", "config": config, **found, "checked": self.kept}
        )

    def describe(self) -> str:
        """One line."""
        return (
            f"{self.architecture}: claims {self.claimed}, observed {self.observed}; rows -{self.lost_rows:,} "
            f"+{self.doubled_rows:,}, counts -{self.lost_counts:,} +{self.doubled_counts:,}, "
            f"{self.replayed:,} replayed; {self.throughput:,.0f}/s, "
            f"latency {self.p50_ms:.1f} ms (p99 {self.p99_ms:.1f}), "
            f"recovery {self.recovery_ms:.0f} ms, {self.checkpoints} checkpoints"
            + (f", {self.ack_messages:,} acknowledgements" if self.ack_messages else "")
        )


def compare_architectures(
    architectures: Sequence[str | FaultTolerance] = ARCHITECTURES,
    *,
    seconds: float = SECONDS,
    rate: int = RATE,
    fails_at: Sequence[float] = FAILS_AT,
    interval: str = INTERVAL,
) -> pa.Table:
    """Run a keyed count under each architecture, with the same input and failures; a row for each, see `Compared`.

    Args:
        architectures: as for ``run(fault_tolerance=...)``.
        seconds: of input.
        rate: records per second.
        fails_at: where the function fails, as parts of the input, above 0 and below 1.
        interval: ``checkpoint_interval``.

    Example:
        >>> table = compare_architectures(["at-most-once"], seconds=0.5, rate=1_000, fails_at=[0.5], interval="50ms")
        >>> table.column("doubled_counts").to_pylist(), table.column("replayed").to_pylist()
        ([0], [0])
    """
    found = [
        compare_one(each, seconds=seconds, rate=rate, fails_at=fails_at, interval=interval) for each in architectures
    ]
    return pa.Table.from_pylist([asdict(each) for each in found])


def compare_one(
    architecture: str | FaultTolerance,
    *,
    seconds: float = SECONDS,
    rate: int = RATE,
    fails_at: Sequence[float] = FAILS_AT,
    interval: str = INTERVAL,
) -> Compared:
    """Run one architecture; arguments as for `compare_architectures`."""
    rate = min(rate, SLOW.get(str(architecture), rate))
    rows = max(int(seconds * rate), 1)
    observer = _Observer(rows, {int(rows * part) for part in fails_at})
    job = _pipeline(rows, rate, observer).run(
        "bench-architectures",
        parallelism=2,
        fault_tolerance=architecture,
        checkpoint_interval=interval,
        buffer_timeout="10ms",
        restart="fixed-delay:attempts=1000,delay=0ms",
    )
    begin = time.perf_counter()
    p50, p99 = [], []
    master = job._run.master
    execution = master.execution
    while not job.over:
        execution = master.execution or execution  # a job that has ended keeps none
        time.sleep(SAMPLE_S)
        frame = job.recorder.latest()
        latency = None if frame is None else end_latency([v.id for v in frame.vertices], frame.edges, frame.latency)
        if latency is not None:
            p50.append(latency.p50_ms)
            p99.append(latency.p99_ms)
    job.wait(PATIENCE)
    took = time.perf_counter() - begin
    passed = np.bincount(job.table("rows").column("n").to_numpy(), minlength=rows)
    counts = dict(zip(*(job.table("counts").column(name).to_pylist() for name in ("key", "records")), strict=True))
    truth = np.bincount(np.arange(rows) % KEYS, minlength=KEYS)
    differ = np.array([counts.get(key, 0) for key in range(KEYS)]) - truth
    lost, doubled = int((passed == 0).sum()), int(np.maximum(passed - 1, 0).sum())
    low, high = int(-differ[differ < 0].sum()), int(differ[differ > 0].sum())
    history = list(master.coordinator.history)
    policy = Settings().with_value("fault_tolerance", architecture).policy
    messages, ack_bytes = (0, 0) if execution is None or policy.acking is None else acknowledging(execution)
    return Compared(
        architecture=str(architecture),
        claimed=policy.guarantee,
        observed=observed(lost=lost + low, doubled=doubled + high),
        records=rows,
        seconds=took,
        throughput=rows / took,
        p50_ms=statistics.median(p50) if p50 else 0.0,
        p99_ms=max(p99, default=0.0),
        buffers=0 if execution is None else sum(channel.buffers_sent for channel in execution.channels),
        ack_messages=messages,
        ack_bytes=ack_bytes,
        timed_out=sum(counts.failed for counts in master.services.roots.values()),
        checkpoints=master.coordinator.completed,
        written_bytes=sum(record.size_bytes for record in history),
        replayed=observer.replayed,
        lost_rows=lost,
        doubled_rows=doubled,
        lost_counts=low,
        doubled_counts=high,
        recovery_ms=statistics.mean(observer.recoveries_ms) if observer.recoveries_ms else 0.0,
    )


def acknowledging(execution: Execution) -> tuple[int, int]:
    """The messages to and from the ackers of an attempt, and the bytes of these and of the ids of records."""
    acks = [*execution.returns, *(channel for channel in execution.channels if channel.flow.tag == ACKS)]
    records = sum(channel.records_sent for channel in execution.channels if channel.flow.tag != ACKS)
    ids = sum(field.type.byte_width for field in IDS)
    return (
        sum(channel.records_sent for channel in acks),
        sum(channel.bytes_sent for channel in acks) + records * ids,
    )


def observed(*, lost: int, doubled: int) -> str:
    """The strongest guarantee that agrees with these numbers of lost and duplicated records.

    Example:
        >>> [observed(lost=0, doubled=0), observed(lost=0, doubled=3), observed(lost=2, doubled=0)]
        ['exactly-once', 'at-least-once', 'at-most-once']
        >>> observed(lost=2, doubled=3)
        'none'
    """
    if not lost:
        return "at-least-once" if doubled else "exactly-once"
    return "none" if doubled else "at-most-once"


def _pipeline(rows: int, rate: int, observer: _Observer) -> wb.types.Pipeline:
    number = np.arange(rows)
    table = pa.table({"n": number, "key": number % KEYS})
    seen = wb.Stream.from_table(table, rate=rate).rebalance().map_batches(observer.take).with_parallelism(1)
    counts = seen.key_by("key").aggregate(records=wb.count())
    return seen.sink_to(wb.TableSink("rows")) + counts.sink_to(wb.TableSink("counts", upsert_key="key"))


@dataclass(slots=True)
class _Observer:
    """Counts the records that pass, in one task, and fails once at each of some records.

    Attributes:
        replayed: how often a record was sent again.
        recoveries_ms: from each failure to the next batch.
    """

    rows: int
    failing: set[int]
    replayed: int = 0
    recoveries_ms: list[float] = field(default_factory=list)
    _passed: Int64s = field(init=False)
    _failed: float | None = None

    def __post_init__(self) -> None:
        self._passed = np.zeros(self.rows, np.int64)

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the batch, unless it has a failing record."""
        now = time.perf_counter()
        if self._failed is not None:
            self.recoveries_ms.append((now - self._failed) * 1_000)
            self._failed = None
        numbers = batch.column("n").to_numpy()
        if here := self.failing.intersection(numbers.tolist() if self.failing else ()):
            self.failing -= here
            self._failed = now
            raise RuntimeError(f"failed on purpose at record {min(here)}")
        self.replayed += int((self._passed[numbers] > 0).sum())
        self._passed[numbers] += 1
        return batch
