"""The cost of many subtasks and many jobs: a wide graph with few records, and many small jobs at once.

It uses only the public API, so another version can be measured with the same file:
``PYTHONPATH=OTHER python -P workbench/lab/bench/works/crowd.py``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.cli.scratch import scratch_folder

ROWS = 5_000
WIDE = 128
JOBS = 150
SECONDS = 10
RATE = 1_000
KEYS = 100
PATIENCE = "600s"


@dataclass(frozen=True, slots=True)
class Crowded:
    """One run.

    Attributes:
        kind: ``"wide"``, one job, or ``"jobs"``, several at once.
        p: parallelism of each job.
        jobs: number of simultaneous jobs.
        data_s: duration of the data of each job at its rate; 0: not paced.
        started_s: time until all jobs ran.
        seconds: time until all had ended.
        cpu_s: of the process.
        checked: every job committed the exact result.
    """

    kind: str
    p: int
    jobs: int
    data_s: int
    started_s: float
    seconds: float
    cpu_s: float
    checked: bool

    def to_json(self) -> str:
        """One line of JSON."""
        found = asdict(self)
        config = {name: found.pop(name) for name in ("kind", "p", "jobs", "data_s")}
        figures = {name: value if name == "checked" else round(value, 3) for name, value in found.items()}
        return json.dumps({"peer": "workbench", "workload": "crowd", "config": config, **figures})

    def describe(self) -> str:
        """One line."""
        what = f"{self.jobs} jobs at once, {self.data_s} s of data each" if self.kind == "jobs" else "one job"
        said = "exact" if self.checked else "WRONG"
        return (
            f"{what}, p {self.p}: all ran after {self.started_s:.2f} s and had ended after {self.seconds:.2f} s, "
            f"with {self.cpu_s:.2f} s of the processor; the results are {said}"
        )


def crowds(seconds: int = SECONDS, *, wide: int = WIDE, jobs: int = JOBS) -> Iterator[Crowded]:
    """One subtask, then many; one job, then many.

    Args:
        seconds: of data for each of the many jobs, at 1,000 rows a second, with a checkpoint every second.
        wide: parallelism of the wide graph.
        jobs: number of simultaneous jobs.
    """
    _run("warm-up", "wide", 1, 1, 0)
    for p in (1, wide):
        yield _run("bench-wide", "wide", p, 1, 0)
    for count in (1, jobs):
        yield _run("bench-crowd", "jobs", 1, count, seconds)


def _run(name: str, kind: str, p: int, jobs: int, data_s: int) -> Crowded:
    rows = data_s * RATE or ROWS
    pipeline = _pipeline(rows, RATE if data_s else None)
    with scratch_folder("workbench-bench-") as folder:
        begin, cpu = time.perf_counter(), time.process_time()
        running = [_start(pipeline, f"{name}-{number}", p, data_s, Path(folder)) for number in range(jobs)]
        started_s = time.perf_counter() - begin
        for job in running:
            job.wait(PATIENCE)
        seconds, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
    checked = all(_is_exact(job.table("windows"), rows) for job in running)
    return Crowded(kind, p, jobs, data_s, started_s, seconds, cpu_s, checked)


def _start(pipeline: wb.types.Pipeline, name: str, p: int, data_s: int, folder: Path) -> wb.types.Job:
    if not data_s:
        return pipeline.run(name, parallelism=p)
    return pipeline.run(name, parallelism=p, checkpoint_interval="1s", checkpoint_dir=folder / name)


def _pipeline(rows: int, rate: float | None) -> wb.types.Pipeline:
    """Rows a millisecond apart, counted and summed by key in windows of a second."""
    number = np.arange(rows)
    times = pa.array(number * 1_000, pa.timestamp("us"))
    table = pa.table({"key": number % KEYS, "value": number, "time": times})
    windows = wb.Stream.from_table(table, event_time="time", rate=rate).key_by("key").window(wb.tumbling("1s"))
    return windows.aggregate(n=wb.count(), s=wb.sum("value")).sink_to(wb.TableSink("windows"))


def _is_exact(table: pa.Table, rows: int) -> bool:
    """Whether each key has its count and sum in each window; the windows begin a second apart, with a thousand rows
    each."""
    number = np.arange(rows)
    cell = number // 1_000 * KEYS + number % KEYS
    cells = -(-rows // 1_000) * KEYS
    expected = np.bincount(cell, minlength=cells), np.bincount(cell, weights=number, minlength=cells)
    if len(table) != cells:
        return False
    seconds = table.column("window_start").cast(pa.int64()).to_numpy() // 1_000_000
    at = seconds * KEYS + table.column("key").to_numpy()
    found = (np.bincount(at, weights=table.column(name).to_numpy(), minlength=cells) for name in ("n", "s"))
    return all(np.array_equal(own, wanted) for own, wanted in zip(found, expected, strict=True))


def _print_all(say: Callable[[str], None]) -> bool:
    """Print a line of JSON for each run; returns whether every result was exact."""
    exact = True
    for crowd in crowds():
        say(crowd.to_json())
        exact &= crowd.checked
    return exact


if __name__ == "__main__":
    sys.exit(0 if _print_all(print) else 1)
