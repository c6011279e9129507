"""Runs a pipeline on Spark in a process that kills itself around the commit of a batch; then the same, to its end.

At its end it kills Spark's JVM, and writes what a job of then and the next one say.

python spark_kill_job.py FOLDER before|after|never
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.spark.engine.epochs import Epochs
from workbench.spark.jobs import spark_job

SECOND = 1_000_000
ROWS = 3_000
LATE = 100
FIRST_US = 1_600_000_000 * SECOND


def pipeline(folder: Path) -> Pipeline:
    """Sessions and their records, in a table and in files; the last records are hours late."""
    times = [FIRST_US + at * SECOND + at // 100 * 60 * SECOND for at in range(ROWS)]
    times += [FIRST_US - (LATE - at) * 3_600 * SECOND for at in range(LATE)]
    rows = pa.table({"k": [at % 5 for at in range(ROWS + LATE)], "t": pa.array(times)})
    events = wb.Stream.from_table(rows, event_time="t")
    sessions = events.key_by("k").window(wb.session("10s")).aggregate(n=wb.count())
    return sessions.sink_to(wb.TableSink("sessions")) + events.sink_to(wb.ParquetSink(folder / "events"))


def main(folder: Path, when: str) -> None:
    spark_job.BATCH_ROWS = 1_000
    write = Epochs.write

    def killing(self: Epochs, batch: int, rows: Any) -> None:
        if batch == 1 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, batch, rows)
        if batch == 1 and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    Epochs.write = killing  # type: ignore[method-assign]
    job = pipeline(folder).run("killed", engine="spark", checkpoint_dir=folder / "checkpoints", resume=True)
    job.wait("300s")
    pq.write_table(job.table(), folder / "table.parquet")
    told = {"late": job.status()["late_records"], "orphan": "", "next": ""}
    spark: Any = SparkSession.getActiveSession()
    orphan = pipeline(folder / "orphan").run("orphan", engine="spark", spark=spark)
    spark.sparkContext._gateway.proc.kill()
    try:
        orphan.wait("60s")
    except wb.errors.JobError as error:
        told["orphan"] = str(error)
    try:
        pipeline(folder / "next").run("next", engine="spark", spark=spark)
    except wb.errors.SettingError as error:
        told["next"] = str(error)
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
