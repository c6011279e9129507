"""Runs a pipeline on Spark in a process that kills itself around the commit of a batch; then the same, to its end.

python spark_kill_job.py FOLDER before|after|never
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.spark.engine.epochs import Epochs
from workbench.spark.jobs import spark_job

SECOND = 1_000_000
ROWS = 3_000
FIRST_US = 1_600_000_000 * SECOND


def pipeline(folder: Path) -> Pipeline:
    """Sessions and their records, in a table and in files."""
    rows = pa.table(
        {
            "k": [at % 5 for at in range(ROWS)],
            "t": pa.array([FIRST_US + at * SECOND + at // 100 * 60 * SECOND for at in range(ROWS)]),
        }
    )
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
