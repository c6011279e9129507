"""Latency percentiles that a job tells after a change of its buffer timeout, against those of its records."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import nan

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.elements import Int64s
from workbench.lab.bench.works.latencies import Stamps, now_us
from workbench.telemetry.effects.change_frames import Measured
from workbench.telemetry.latency import RECENT_US

RATES = (300, 3_000, 30_000)
TIMEOUTS_MS = (1_000, 5, 100, 500, 20)
"""The first one is in force when the job starts; each of the others follows the one before it."""
AFTER_S = 3.0
"""The time after a change at which the percentiles are compared."""
WARM_UP_S = 3.0
WITHIN, WITHIN_MS = 0.1, 1.0
"""A percentile agrees with the records' own within this share of it, or within this many milliseconds."""
_SCHEMA = pa.schema([("n", pa.int64()), ("stamp", pa.timestamp("us"))])


@dataclass(frozen=True, slots=True)
class Compared:
    """What a job told about one buffer timeout, and what its records show.

    Attributes:
        rate: records per second.
        event_time: whether the records have event time, so that watermarks travel with them.
        timeout_ms: the buffer timeout, which applies for `AFTER_S` seconds.
        records: that were due after the change and have arrived within the time for which markers count.
        p50_ms, p99_ms: of the status, from latency markers.
        sentence_p50_ms, sentence_p99_ms: of the sentence about the change.
        exact_p50_ms, exact_p99_ms: of the records, from the time they were due.
    """

    rate: int
    event_time: bool
    timeout_ms: int
    records: int
    p50_ms: float
    p99_ms: float
    sentence_p50_ms: float
    sentence_p99_ms: float
    exact_p50_ms: float
    exact_p99_ms: float

    @property
    def agrees(self) -> bool:
        """Whether all four percentiles are those of the records."""
        pairs = (
            (self.p50_ms, self.exact_p50_ms),
            (self.sentence_p50_ms, self.exact_p50_ms),
            (self.p99_ms, self.exact_p99_ms),
            (self.sentence_p99_ms, self.exact_p99_ms),
        )
        return all(abs(told - exact) <= max(WITHIN_MS, WITHIN * exact) for told, exact in pairs)

    def to_json(self) -> str:
        """One line of JSON."""
        found = asdict(self)
        config = {name: found.pop(name) for name in ("rate", "event_time", "timeout_ms")}
        figures = {name: round(value, 3) for name, value in found.items()}
        return json.dumps({"peer": "workbench", "workload": "percentiles", "config": config, **figures})

    def describe(self) -> str:
        """One line."""
        time_kind = "event time" if self.event_time else "no event time"
        told = f"p50 {self.p50_ms:,.1f} (records {self.exact_p50_ms:,.1f})"
        told += f", p99 {self.p99_ms:,.1f} (records {self.exact_p99_ms:,.1f}) ms"
        sentence = f"sentence {self.sentence_p50_ms:,.1f} and {self.sentence_p99_ms:,.1f} ms"
        off = "" if self.agrees else "; OFF by more than a tenth"
        return f"{self.rate:,} records/s, {time_kind}, timeout {self.timeout_ms:,} ms: {told}; {sentence}{off}"


class Arrivals:
    """Which records have arrived, with the time they were due; the sink's thread adds them."""

    def __init__(self) -> None:
        self._arrived: list[tuple[Int64s, int]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """A batch has reached the sink."""
        self._arrived.append((batch.column("stamp").cast(pa.int64()).to_numpy(), now_us()))

    def latencies_us(self, since_us: int, until_us: int) -> Int64s:
        """Shape (n,): of the records that were due from `since_us` on and have arrived in the `RECENT_US` before
        `until_us`, microseconds."""
        arrived, self._arrived = self._arrived, []
        recent = ((stamps, at_us) for stamps, at_us in arrived if until_us - RECENT_US < at_us <= until_us)
        parts = [at_us - stamps[stamps >= since_us] for stamps, at_us in recent]
        found: Int64s = np.concatenate([np.empty(0, np.int64), *parts])
        return found


def compare(rate: int, *, event_time: bool, timeouts_ms: tuple[int, ...] = TIMEOUTS_MS) -> Iterator[Compared]:
    """Run one job and change its buffer timeout.

    Args:
        rate: records per second.
        event_time: whether the records have it.
        timeouts_ms: one after the other; nothing is compared under the first.

    Yields:
        The percentiles `AFTER_S` seconds after each change.
    """
    stamps, arrivals = Stamps(rate), Arrivals()

    def rows(first: int, count: int) -> pa.RecordBatch:
        numbers, due = np.arange(first, first + count), pa.array(stamps.next(count))
        return pa.RecordBatch.from_arrays([pa.array(numbers), due.cast(pa.timestamp("us"))], schema=_SCHEMA)

    stream = wb.Stream.from_generator(rows, _SCHEMA, event_time="stamp" if event_time else None, rate=rate)
    pipeline = stream.rebalance().sink_to(wb.CallbackSink(arrivals.add, name="arrivals"))
    first, *later = timeouts_ms
    job = pipeline.run("bench-percentiles", parallelism=1, buffer_timeout=f"{first}ms", checkpoint_interval=None)
    try:
        time.sleep(WARM_UP_S)
        for timeout_ms in later:
            job.tune(buffer_timeout=f"{timeout_ms}ms")
            stamps.restart()  # a source that a busy machine has held up for long does not catch up with all of it
            tuned_us = now_us()
            time.sleep(AFTER_S)
            frame, status = job.recorder.latest(), job.status()
            assert frame is not None
            after = frame.changes[-1].after or Measured()
            latencies = arrivals.latencies_us(tuned_us, frame.time_us)
            p50_ms, p99_ms = (float(us) / 1_000 for us in np.percentile(latencies, (50, 99)))
            yield Compared(
                rate, event_time, timeout_ms, len(latencies),
                status["latency_p50_ms"], status["latency_p99_ms"],
                after.p50_ms or nan, after.p99_ms or nan,
                p50_ms, p99_ms,
            )  # fmt: skip
    finally:
        job.cancel()
        job.wait("60s")


def percentiles() -> Iterator[Compared]:
    """Compare them at each rate, without event time and with it."""
    for rate in RATES:
        for event_time in (False, True):
            yield from compare(rate, event_time=event_time)
