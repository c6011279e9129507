"""Runs two pipelines on Spark in a process that kills itself around the commit of a batch of each; then to their ends.

At the end the JVM is killed while another job runs. The program writes what the jobs of the second run say.

python spark_kill_job.py FOLDER before|after|never
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pipelines.killed import drawn, problems
from pyspark import SparkContext
from refusals import error_of
from waiting import until

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.spark.engine.epochs import Epochs
from workbench.spark.jobs import batch_limits

SECOND = 1_000_000
ROWS = 3_000
LATE = 100
FIRST_US = 1_600_000_000 * SECOND
RANDOM = "killed 23"
SMALL_BATCH = 150
FEW = 1_200


def pipeline(folder: Path) -> Pipeline:
    """Sessions and their records, in a table and in files; the last records are hours late."""
    times = [FIRST_US + at * SECOND + at // 100 * 60 * SECOND for at in range(ROWS)]
    times += [FIRST_US - (LATE - at) * 3_600 * SECOND for at in range(LATE)]
    rows = pa.table({"k": [at % 5 for at in range(ROWS + LATE)], "t": pa.array(times)})
    events = wb.Stream.from_table(rows, event_time="t")
    sessions = events.key_by("k").window(wb.session("10s")).aggregate(n=wb.count())
    return sessions.sink_to(wb.TableSink("sessions")) + events.sink_to(wb.ParquetSink(folder / "events"))


def run(pipeline: Pipeline, name: str, folder: Path, **more: Any) -> Any:
    checkpoints = folder / f"{name} checkpoints"
    return pipeline.run(name, engine="spark", checkpoint_dir=checkpoints, resume=True, **more)


def patched(when: str) -> threading.Event:
    """Kill this process around the second batch of one job, when the other one is behind its own: the event."""
    write = Epochs.write
    random_is_behind = threading.Event()

    def killing(self: Epochs, batch: int, rows: Any) -> None:
        if when == "never" or batch != 1:
            return write(self, batch, rows)
        if "sessions" in " ".join(self.rows):
            random_is_behind.wait()
            if when == "after":
                write(self, batch, rows)
            os.kill(os.getpid(), signal.SIGKILL)
        if when == "after":
            write(self, batch, rows)
        random_is_behind.set()
        threading.Event().wait()  # until the process is killed
        return None

    Epochs.write = killing  # type: ignore[method-assign]
    return random_is_behind


def main(folder: Path, when: str) -> None:
    random_is_behind = patched(when)
    draft, random = drawn(folder / "random", RANDOM)
    batch_limits.BATCH_ROWS = SMALL_BATCH
    drawing = run(random, "random", folder, parallelism=2, spark="local[2]")
    while not (random_is_behind.wait(0.1) or drawing.over):
        pass  # one after the other: a busy machine starts few processes in the time that Spark gives them
    batch_limits.BATCH_ROWS = FEW
    job = run(pipeline(folder), "killed", folder)
    drawing.wait()
    job.wait("300s")
    pq.write_table(job.table(), folder / "table.parquet")
    told: dict[str, Any] = {
        "late": job.status()["late_records"],
        "problems": problems(draft, drawing),
        "batches": len(drawing.checkpoints()),
    }
    orphan = run(pipeline(folder / "orphan"), "orphan", folder)
    until(lambda: orphan.state == "RUNNING")
    SparkContext._gateway.proc.kill()
    told["orphan"] = error_of(lambda: orphan.wait("60s"))
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
