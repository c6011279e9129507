"""Runs pipelines on a cluster of Spark whose executors are killed meanwhile, and writes what came of it.

python spark_cluster_job.py FOLDER LOG MASTER [carried]
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from waiting import until

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.spark.jobs import batch_limits

ROWS = 2_000
FIRST_US = 1_600_000_000_000_000


def executors() -> Iterator[tuple[str, int]]:
    """Number and process of each executor of this session."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    driver = spark.sparkContext.getConf().get("spark.driver.port") or "?"
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if "--executor-id" in words and f":{driver}" in words[words.index("--driver-url") + 1]:
            yield words[words.index("--executor-id") + 1], int(process.name)


def delays(log: Path) -> Pipeline:
    """The main job on flights, in the native tier."""
    flights = wb.Stream.replay(log, out_of_orderness="1d")
    return (
        flights.filter("dep_delay IS NOT NULL")
        .key_by("origin")
        .window(wb.tumbling("1h"))
        .aggregate(flights=wb.count(), mean_delay=wb.mean("dep_delay"), worst=wb.max("dep_delay"))
        .sink_to(wb.TableSink("delays"))
    )


def sessions(marker: Path) -> Pipeline:
    """Sessions in the carried tier; a function of the user's kills its executor once, in the middle of a batch."""
    times = [FIRST_US + (at + at // 20 * 60) * 1_000_000 for at in range(ROWS)]
    rows = pa.table({"k": [at % 5 for at in range(ROWS)], "t": pa.array(times)})

    def deadly(row: dict[str, Any]) -> dict[str, Any]:
        if row["t"] == times[ROWS // 4] and not marker.exists():
            marker.touch()
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
            os.kill(int(daemon[1]), signal.SIGKILL)  # the JVM that has started this process's parent
        return row

    events = wb.Stream.from_table(rows, event_time="t").map(deadly, rows.schema)
    return events.key_by("k").window(wb.session("10s")).aggregate(n=wb.count()).sink_to(wb.TableSink("sessions"))


def main(folder: Path, log: Path, master: str, carried: bool) -> None:
    batch_limits.REREAD_ROWS = 60_000
    job: Any = delays(log).run("delays", engine="spark", spark=master, checkpoint_dir=folder / "checkpoints")
    until(lambda: len(job.checkpoints()) >= 1 or job.over)
    number, process = next(iter(executors()))
    os.kill(process, signal.SIGKILL)
    told = {
        "killed": number,
        "state": job.wait("300s"),
        "batches": len(job.checkpoints()),
        "status": dict(job.status()),
    }
    told["html"] = job.dashboard().html()
    pq.write_table(job.table(), folder / "delays.parquet")
    if carried:
        batch_limits.BATCH_ROWS = ROWS // 2
        again: Any = sessions(folder / "killed").run("sessions", engine="spark", parallelism=2)
        told |= {"carried": again.wait("300s"), "carried_status": dict(again.status())}
        pq.write_table(again.table(), folder / "sessions.parquet")
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:] == ["carried"])
