"""Runs pipelines on Spark, in one session, until each stands at its place in a batch; then kills itself and the JVM.

A second process runs the same pipelines to their ends. Then its JVM is killed while another job runs. It writes what
its jobs say.

python spark_kill_job.py FOLDER killed|resumed
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import spark_feeds
from pipelines.killed import drawn, problems
from pyspark import SparkContext
from refusals import error_of
from spark_connectors import everything
from waiting import until

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.spark.engine.epochs import Epochs
from workbench.spark.jobs import batch_limits

SECOND = 1_000_000
ROWS = 3_000
LATE = 100
FIRST_US = 1_600_000_000 * SECOND
RANDOM = "killed 10"
PLACES = {
    "feeds": "written",
    "random": "begun",
    "sessions": "ended",
    "native": "saved",
    "connected": "committing",
}
"""Where each job stands in a batch when it is killed: no sink has a row of it; all have, and none has saved them; all
have saved them, and none has committed; half of them have committed; all have, and Spark does not know it."""
BATCH_ROWS = {"random": 60, "sessions": 1_200, "native": 300, "connected": 2_000}
"""So that each job has several batches; each but that of feeds is killed in its second one."""


def sessions(folder: Path) -> Pipeline:
    """Sessions and their records, in a table and in files; the last records are hours late."""
    times = [FIRST_US + at * SECOND + at // 100 * 60 * SECOND for at in range(ROWS)]
    times += [FIRST_US - (LATE - at) * 3_600 * SECOND for at in range(LATE)]
    rows = pa.table({"k": [at % 5 for at in range(ROWS + LATE)], "t": pa.array(times)})
    events = wb.Stream.from_table(rows, event_time="t")
    sessions = events.key_by("k").window(wb.session("10s")).aggregate(n=wb.count())
    return sessions.sink_to(wb.TableSink("sessions")) + events.sink_to(wb.ParquetSink(folder / "events"))


def native(folder: Path) -> Pipeline:
    """A history in a table, in files and in a database."""
    rows = wb.Stream.replay(folder / "log").select("source", "n")
    stored = rows.sink_to(wb.SqlSink(f"sqlite:///{folder}/native.sqlite", "rows"))
    return stored + rows.sink_to(wb.ParquetSink(folder / "native")) + rows.sink_to(wb.TableSink("rows"))


def run(pipeline: Pipeline, name: str, folder: Path, **more: Any) -> Any:
    batch_limits.BATCH_ROWS = batch_limits.REREAD_ROWS = BATCH_ROWS.get(name, 10_000)
    return pipeline.run(
        name, engine="spark", spark="local[2]", checkpoint_dir=checkpoints(folder, name), resume=True, **more
    )


def checkpoints(folder: Path, name: str) -> Path:
    return folder / f"{name} checkpoints"


class Standing:
    """Keeps each job at its place in a batch.

    Args:
        folder: of the jobs.
    """

    def __init__(self, folder: Path) -> None:
        self._name_of = {checkpoints(folder, name) / "epochs": name for name in PLACES}
        self._write = Epochs.write
        self._fed: Counter[tuple[str, int]] = Counter()
        self.there = {name: threading.Event() for name in PLACES}
        Epochs.write = lambda epochs, batch, rows: self.write(epochs, batch, rows)  # type: ignore[method-assign]

    def write(self, epochs: Any, batch: int, rows: Any) -> None:
        """Write a batch, or a part of the one in which the job is to stand."""
        name = self._name_of[epochs._folder]
        if not self._is_last(name, batch, rows):
            return self._write(epochs, batch, rows)

        def stand(*_: object) -> NoReturn:
            self.there[name].set()
            while True:
                threading.Event().wait()  # until this process is killed

        operators: list[Any] = list(epochs._operators.values())
        match PLACES[name]:
            case "begun":
                stand()
            case "written":
                operators[0].snapshot = stand
            case "saved":
                operators[0].notify_complete = stand
            case "committing":
                operators[len(operators) // 2].notify_complete = stand
        self._write(epochs, batch, rows)
        stand()

    def _is_last(self, name: str, batch: int, rows: Any) -> bool:
        """Whether the job stands in this batch: the second one, or the one in which feeds have sent everything."""
        if name != "feeds":
            return batch == 1
        for _, records in rows:
            self._fed.update((row["source"], row["n"]) for row in records.batch.to_pylist())
        return spark_feeds.expected(1).keys() <= self._fed.keys()


def killed(folder: Path) -> None:
    """Start one job after the other: a busy machine starts few processes in the time that Spark gives them."""
    standing = Standing(folder)
    started: dict[str, Callable[[], Any]] = {
        "feeds": lambda: run(spark_feeds.of_feeds(folder), "feeds", folder),
        "sessions": lambda: run(sessions(folder), "sessions", folder),
        "native": lambda: run(native(folder), "native", folder),
        "connected": lambda: run(everything(folder), "connected", folder),
        "random": lambda: run(drawn(folder / "random", RANDOM)[1], "random", folder, parallelism=2),
    }
    for name, start in started.items():
        job = start()
        end_s = time.monotonic() + spark_feeds.PATIENCE_S
        while not standing.there[name].wait(0.1):
            if job.over or time.monotonic() > end_s:
                sys.exit(f"the job {name!r} has not come to its place: {job.status()}")
    os.killpg(0, signal.SIGKILL)


def resumed(folder: Path) -> None:
    """Run all jobs to their ends, and say what they have."""
    feeds = run(spark_feeds.of_feeds(folder), "feeds", folder)
    everything_fed = spark_feeds.expected(2).keys()
    until(lambda: everything_fed <= spark_feeds.called(folder).keys() or feeds.over, None, spark_feeds.PATIENCE_S)
    feeds.stop(timeout="300s")
    draft, random = drawn(folder / "random", RANDOM)
    started: dict[str, Callable[[], Any]] = {
        "sessions": lambda: run(sessions(folder), "sessions", folder),
        "native": lambda: run(native(folder), "native", folder),
        "connected": lambda: run(everything(folder), "connected", folder),
        "random": lambda: run(random, "random", folder, parallelism=2),
    }
    jobs = {}
    for name, start in started.items():  # one after the other, as above
        jobs[name] = start()
        jobs[name].wait("500s")
    pq.write_table(jobs["sessions"].table(), folder / "sessions.parquet")
    pq.write_table(jobs["native"].table(), folder / "native.parquet")
    told: dict[str, Any] = {
        "late": jobs["sessions"].status()["late_records"],
        "problems": problems(draft, jobs["random"]),
        "batches": {name: len(job.checkpoints()) for name, job in jobs.items()},
        "tiers": {name: job.graph().tier for name, job in jobs.items()},
    }
    orphan = run(sessions(folder / "orphan"), "orphan", folder)
    until(lambda: orphan.state == "RUNNING")
    SparkContext._gateway.proc.kill()
    told["orphan"] = error_of(lambda: orphan.wait("60s"))
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    {"killed": killed, "resumed": resumed}[sys.argv[2]](Path(sys.argv[1]))
