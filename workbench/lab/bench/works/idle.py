"""The cost of jobs with little to do: a paused one, an idle source, paced replays, and many small jobs at once.

It uses only the public API, so another version can be measured with the same file:
``PYTHONPATH=OTHER python -P workbench/lab/bench/works/idle.py``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.cli.scratch import scratch_folder
from workbench.lab.bench.works.memory import resident_mb

SECONDS = 10
JOBS = 150
SETTLED_S = 3.0
"""The time until a job's paces and telemetry have settled."""
KEYS = 100


@dataclass(frozen=True, slots=True)
class Idle:
    """One run.

    Attributes:
        kind: what the jobs do.
        jobs: number of simultaneous jobs.
        rate: records per second of each.
        seconds: measured.
        cpu_percent: of one core, for all jobs together.
        kept_up: the sources have read everything that was due.
        memory_mb: memory added to the process, in megabytes per job.
    """

    kind: str
    jobs: int
    rate: float
    seconds: float
    cpu_percent: float
    kept_up: bool
    memory_mb: float

    def to_json(self) -> str:
        """One line of JSON."""
        found = asdict(self)
        config = {name: found.pop(name) for name in ("kind", "jobs", "rate")}
        figures = {name: round(value, 3) if isinstance(value, float) else value for name, value in found.items()}
        return json.dumps({"peer": "workbench", "workload": "idle", "config": config, **figures})

    def describe(self) -> str:
        """One line."""
        late = "" if self.kept_up else "; it FELL BEHIND"
        jobs = f"{self.jobs} jobs" if self.jobs > 1 else "one job"
        return f"{self.kind}, {jobs}: {self.cpu_percent:.2f} % of a core, {self.memory_mb:.2f} MB each{late}"


def idles(seconds: int = SECONDS, jobs: int = JOBS) -> Iterator[Idle]:
    """Measure each kind in turn.

    Args:
        seconds: of each kind.
        jobs: number of simultaneous jobs, for the last one.
    """
    list(_measure("warm-up", 1, 1_000, "100ms", 1, settled_s=0.2))  # compiles what all kinds need
    yield from _measure("paused", 1, 1_000, "100ms", seconds)
    yield from _measure("idle source", 1, 0.001, "100ms", seconds)
    yield from _measure("1,000 records/s, timeout 50 ms", 1, 1_000, "50ms", seconds)
    yield from _measure("40,000 records/s, timeout 50 ms", 1, 40_000, "50ms", seconds)
    yield from _measure("paused", jobs, 1_000, "100ms", seconds)
    yield from _measure("100 records/s", jobs, 100, "100ms", seconds)
    yield from _measure("100 records/s, checkpoints every second", jobs, 100, "100ms", seconds, checkpoints=True)


def _measure(
    kind: str,
    jobs: int,
    rate: float,
    timeout: str,
    seconds: int,
    *,
    checkpoints: bool = False,
    settled_s: float = SETTLED_S,
) -> Iterator[Idle]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(scratch_folder("workbench-bench-")))
        rows = int(max(rate, 1) * (60 + 2 * seconds + jobs))
        pipeline = _pipeline(rows, rate)
        before = resident_mb()
        running: list[wb.types.Job] = []
        for number in range(jobs):
            name = f"bench-idle-{number}"
            kept = {"checkpoint_interval": "1s", "checkpoint_dir": folder / str(number)} if checkpoints else {}
            running.append(pipeline.run(name, buffer_timeout=timeout, parallelism=1, **kept))  # type: ignore[arg-type]
            stack.callback(running[-1].wait, "60s")
            stack.callback(running[-1].cancel)
            if kind == "paused":
                running[-1].pause()
        time.sleep(settled_s)
        after = resident_mb()
        read, begin, cpu = _rows_read(running), time.perf_counter(), time.process_time()
        time.sleep(seconds)
        lasted_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
        found = _rows_read(running) - read
        due = 0 if kind == "paused" else rate * jobs * lasted_s
        yield Idle(
            kind,
            jobs,
            rate,
            lasted_s,
            100 * cpu_s / lasted_s,
            found >= 0.9 * due - max(1, rate) * jobs,
            (after - before) / jobs,
        )


def _rows_read(jobs: list[wb.types.Job]) -> float:
    """According to the latest telemetry, which may be a second old."""
    return sum(float(row["numRecordsOut"]) for job in jobs for row in job.metrics() if row["task"].startswith("table"))


def _pipeline(rows: int, rate: float) -> wb.types.Pipeline:
    """Rows a millisecond apart, counted and summed by key in windows of a second."""
    number = np.arange(rows)
    table = pa.table({"key": number % KEYS, "value": number, "time": pa.array(number * 1_000, pa.timestamp("us"))})
    windows = wb.Stream.from_table(table, event_time="time", rate=rate).key_by("key").window(wb.tumbling("1s"))
    return windows.aggregate(n=wb.count(), s=wb.sum("value")).sink_to(wb.TableSink("windows"))


def _print_all(say: Callable[[str], None]) -> bool:
    """Print a line of JSON for each run; returns whether all kept up."""
    kept_up = True
    for idle in idles():
        say(idle.to_json())
        kept_up &= idle.kept_up
    return kept_up


if __name__ == "__main__":
    sys.exit(0 if _print_all(print) else 1)
