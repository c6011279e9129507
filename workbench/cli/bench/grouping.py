"""Grouping (E2): a running count and sum per key behind a hash exchange; for every record an updated row out."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.cli.bench.blocks import BLOCK, Emitted, continued, grouping_block
from workbench.cli.bench.measure import Meter, Result
from workbench.elements import Int64s

WARM_UP = 0.4
"""Share of the time that is not measured."""

_SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64()), ("stamp", pa.int64())])


def grouping(
    *,
    keys: int,
    parallelism: int,
    seconds: float,
    buffer_timeout: str,
    checkpoint_interval: str | None,
    checkpoint_dir: Path | None,
    on_progress: Callable[[float], None],
) -> Result:
    """Run the work once.

    Args:
        keys: distinct int64 keys.
        seconds: of the run, warm-up included.
        on_progress: called with the share of the time that has passed.
    """
    key, value = grouping_block(keys)
    columns = [continued(key), continued(value), continued(np.zeros(BLOCK, dtype=np.int64))]
    emitted = Emitted()

    def rows(first: int, count: int) -> pa.RecordBatch:
        start = first % BLOCK
        emitted.add(start, count)
        return pa.RecordBatch.from_arrays([column.slice(start, count) for column in columns], schema=_SCHEMA)

    counts: Int64s = np.zeros(keys, dtype=np.int64)
    sums: Int64s = np.zeros(keys, dtype=np.int64)

    def keep(batch: pa.RecordBatch) -> None:
        found = batch.column(0).to_numpy()
        counts[found] = batch.column(1).to_numpy()
        sums[found] = batch.column(2).to_numpy()

    job = (
        wb.Stream.from_generator(rows, _SCHEMA)
        .key_by("key")
        .aggregate(n=wb.count(), s=wb.sum("value"))
        .sink_to(wb.CallbackSink(keep, name="keep"))
        .run(
            "bench-grouping",
            parallelism=parallelism,
            buffer_timeout=buffer_timeout,
            checkpoint_interval=checkpoint_interval,
            checkpoint_dir=checkpoint_dir,
        )
    )
    _sleep(0.0, WARM_UP, seconds, on_progress)
    before = int(counts.sum())
    with Meter() as meter:
        _sleep(WARM_UP, 1.0, seconds, on_progress)
        after = int(counts.sum())
    job.stop()
    job.wait("60s")
    times = emitted.times()
    checked = np.array_equal(counts, np.bincount(key, times, keys).astype(np.int64)) and np.array_equal(
        sums, np.bincount(key, times * value, keys).astype(np.int64)
    )
    config: dict[str, object] = {"p": parallelism, "keys": keys, "timeout": buffer_timeout}
    if checkpoint_interval is not None:
        config |= {"checkpoint": checkpoint_interval, "completed": job.status()["checkpoints"]}
    return meter.result("W2", config, after - before, checked)


def _sleep(begin: float, end: float, seconds: float, on_progress: Callable[[float], None]) -> None:
    start = time.perf_counter()
    while (passed := begin + (time.perf_counter() - start) / seconds) < end:
        on_progress(passed)
        time.sleep(min(0.1, (end - passed) * seconds))
    on_progress(end)
