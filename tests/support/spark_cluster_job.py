"""Runs pipelines on a cluster of Spark whose executors are killed meanwhile, and writes what came of it.

``carried``: also one whose function kills its executor. ``memory``: also one whose function fills the memory of its
executor, and which comes to its end on a cluster with more.

python spark_cluster_job.py FOLDER LOG MASTER [carried] [memory]
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Collection, Iterator
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
LARGE = 300_000_000
"""Bytes of the one long text: more than twice that passes through the memory of an executor."""
ENOUGH = "local-cluster[2,1,3072]"
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


def texts() -> Pipeline:
    """A function of the user's makes a long text of one row of the second batch, which another executor gets."""
    rows = pa.table({"n": list(range(ROWS))})

    def long(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "text": "x" * (LARGE if row["n"] == ROWS - 1 else 1)}

    read = wb.Stream.from_table(rows).map(long, {"n": pa.int64(), "text": pa.string()}).shuffle()
    numbers = read.map_batches(lambda batch: batch.select(["n"]), {"n": pa.int64()})
    return numbers.sink_to(wb.TableSink("numbers"))


def run_out_of_memory(folder: Path) -> dict[str, Any]:
    """What a job says whose executors have too little memory, and the one that continues with more."""

    def run(**more: Any) -> Any:
        place = {"checkpoint_dir": folder / "memory", "resume": True}
        return texts().run("texts", engine="spark", parallelism=2, **place, **more)

    short = run()
    try:
        short.wait("1200s")  # Spark tries each task four times, and each stage
    except wb.errors.JobError as error:
        told = {"short": error.message, "lost": short.status()["executors_lost"], "html": short.dashboard().html()}
    told["written"] = len(short.table())
    spark = SparkSession.getActiveSession()
    assert spark is not None
    spark.stop()
    again = run(spark=ENOUGH)
    told |= {"again": again.wait("300s"), "numbers": sorted(again.table()["n"].to_pylist())}

    def die(row: dict[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does when memory runs out

    dying: Any = wb.Stream.from_table(pa.table({"n": [1]})).map(die, {"n": pa.int64()}).sink_to(wb.DiscardSink())
    try:
        dying.run("dying", engine="spark").wait("300s")
    except wb.errors.JobError as error:
        told["dying"] = error.message
    return told


def main(folder: Path, log: Path, master: str, more: Collection[str]) -> None:
    batch_limits.REREAD_ROWS = 120_000
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
    batch_limits.BATCH_ROWS = ROWS // 2
    if "carried" in more:
        again: Any = sessions(folder / "killed").run("sessions", engine="spark", parallelism=2)
        told |= {"carried": again.wait("300s"), "carried_status": dict(again.status())}
        pq.write_table(again.table(), folder / "sessions.parquet")
    if "memory" in more:
        told["memory"] = run_out_of_memory(folder)
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
