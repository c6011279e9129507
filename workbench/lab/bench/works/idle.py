"""The cost of jobs with little to do: a paused one, an idle source, paced replays, and many small jobs at once.

Each kind runs in a process of its own: memory that earlier jobs have given back would be used again, and not counted.

It uses only the public API, so another version can be measured with the same file:
``PYTHONPATH=OTHER python -P workbench/lab/bench/works/idle.py``.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
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
        memory_mb: memory that the jobs have added to a process in which one job has run before, in megabytes per job.
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


@dataclass(frozen=True, slots=True)
class Kind:
    """What jobs do.

    Attributes:
        name: in words.
        rate: records per second of each job.
        timeout: the setting ``buffer_timeout``.
        many: many jobs at once, instead of one.
        checkpoints: each job takes one every second.
    """

    name: str
    rate: float
    timeout: str
    many: bool = False
    checkpoints: bool = False


PAUSED = "paused"
KINDS = (
    Kind(PAUSED, 1_000, "100ms"),
    Kind("idle source", 0.001, "100ms"),
    Kind("1,000 records/s, timeout 50 ms", 1_000, "50ms"),
    Kind("40,000 records/s, timeout 50 ms", 40_000, "50ms"),
    Kind(PAUSED, 1_000, "100ms", many=True),
    Kind("100 records/s", 100, "100ms", many=True),
    Kind("100 records/s, checkpoints every second", 100, "100ms", many=True, checkpoints=True),
)


def idles(seconds: int = SECONDS) -> Iterator[Idle]:
    """Measure each kind in turn, in a new process.

    Args:
        seconds: of each kind.
    """
    for number, kind in enumerate(KINDS):
        command = [sys.executable, "-P", __file__, str(number), str(JOBS if kind.many else 1), str(seconds)]
        told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        yield _from_json(told.stdout.splitlines()[-1])


def measure(kind: Kind, jobs: int, seconds: int, settled_s: float = SETTLED_S) -> Idle:
    """Measure jobs of a kind in this process, after one that compiles what all kinds need."""
    _measured(Kind("warm-up", 1_000, "100ms"), 1, 1, 0.2)
    return _measured(kind, jobs, seconds, settled_s)


def _measured(kind: Kind, jobs: int, seconds: int, settled_s: float) -> Idle:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(scratch_folder("workbench-bench-")))
        pipeline = _pipeline(int(max(kind.rate, 1) * (60 + 2 * seconds + jobs)), kind.rate)
        gc.collect()  # so that nothing that is given back later makes up for what the jobs take
        before = resident_mb()
        running: list[wb.types.Job] = []
        for number in range(jobs):
            name = f"bench-idle-{number}"
            kept = {"checkpoint_interval": "1s", "checkpoint_dir": folder / str(number)} if kind.checkpoints else {}
            running.append(pipeline.run(name, buffer_timeout=kind.timeout, parallelism=1, **kept))  # type: ignore[arg-type]
            stack.callback(running[-1].wait, "60s")
            stack.callback(running[-1].cancel)
            if kind.name == PAUSED:
                running[-1].pause()
        time.sleep(settled_s)
        after = resident_mb()
        read, begin, cpu = _rows_read(running), time.perf_counter(), time.process_time()
        time.sleep(seconds)
        lasted_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
        found = _rows_read(running) - read
        due = 0 if kind.name == PAUSED else kind.rate * jobs * lasted_s
        return Idle(
            kind.name,
            jobs,
            kind.rate,
            lasted_s,
            100 * cpu_s / lasted_s,
            found >= 0.9 * due - max(1, kind.rate) * jobs,
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


def _from_json(line: str) -> Idle:
    """What `Idle.to_json` has written."""
    told = json.loads(line)
    found = {**told, **told["config"]}
    return Idle(**{field.name: found[field.name] for field in fields(Idle)})


def _main(arguments: list[str]) -> int:
    """Print a line of JSON for each kind, or for one: its number, its jobs and seconds; returns whether all kept up."""
    if arguments:
        number, jobs, seconds = map(int, arguments)
        found: Iterator[Idle] = iter([measure(KINDS[number], jobs, seconds)])
    else:
        found = idles()
    kept_up = True
    for idle in found:
        print(idle.to_json(), flush=True)
        kept_up &= idle.kept_up
    return 0 if kept_up or arguments else 1


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
