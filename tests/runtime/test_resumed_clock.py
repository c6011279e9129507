"""A job that resumes after somebody has set the machine's clock back: its processing time does not go back."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench import clock

HOUR_S = 3_600


def run(folder: Path, rate: int | None, awaits: int) -> list[tuple[float, int]]:
    """Run until it has written results of so many windows; returns the start and the count of each, of all runs."""
    numbers = wb.Stream.from_table(pa.table({"k": [1] * 4_000}), rate=rate).uid("numbers").key_by("k")
    counted = numbers.window(wb.tumbling("50ms"), time="processing").aggregate(c=wb.count())
    job = counted.sink_to(wb.ParquetSink(folder / "out")).run(
        "resumed-clock", checkpoint_dir=folder / "checkpoints", checkpoint_interval="50ms", resume=True
    )

    def written() -> list[tuple[float, int]]:
        rows = [row for path in (folder / "out").glob("part-*") for row in pq.read_table(path).to_pylist()]
        return [(row["window_start"].timestamp(), row["c"]) for row in rows]

    while awaits and len(written()) < awaits:
        assert not job.over
        job._run.driver.wait_for(job._run.driver.ended, 0.02)
    if awaits:
        job.stop()
    else:
        job.wait("60s")
    return written()


def test_windows_that_have_fired_do_not_open_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run(tmp_path, 500, 3)
    back = {
        name: getattr(time, name)
        for name in ("perf_counter_ns", "monotonic_ns", "clock_gettime_ns", "CLOCK_BOOTTIME")
        if hasattr(time, name)
    }
    set_back = SimpleNamespace(**back, time_ns=lambda: time.time_ns() - HOUR_S * 10**9)
    monkeypatch.setattr(clock, "time", set_back)
    after = run(tmp_path, None, 0)
    assert sum(count for _, count in after) == 4_000
    further = [start for start, _ in set(after) - set(before)]
    assert min(further) > max(start for start, _ in before)
