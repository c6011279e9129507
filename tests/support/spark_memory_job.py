"""Lets the JVM of Spark run out of memory in the middle of a batch, then runs the pipeline to its end in another one.

It begins with a session that prepares a data set, after which the process can still choose its master. The program
writes what the jobs say.

python spark_memory_job.py FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession
from refusals import error_of

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.spark.jobs import batch_limits
from workbench.spark.session import MEMORY_VARIABLE, passing_session

LITTLE, ENOUGH = "512m", "3g"
FEW = 1_000
"""Records of a batch, those of the first without much in them."""
LARGE = 250_000
"""Bytes of each of the others: their batch reaches the JVM as one value of 250 MB."""


def texts(first: int, n: int) -> pa.RecordBatch:
    return pa.record_batch({"n": range(first, first + n), "text": ["x" * (LARGE if first else 1)] * n})


def large() -> Pipeline:
    """Two batches, the second of which needs more memory than there is at first."""
    read = wb.Stream.from_generator(texts, {"n": pa.int64(), "text": pa.string()}, limit=2 * FEW)
    numbers = read.map_batches(lambda batch: batch.select(["n"]), {"n": pa.int64()})
    return numbers.sink_to(wb.TableSink("numbers"))


def run(folder: Path, **more: Any) -> Any:
    return large().run(
        "large", engine="spark", checkpoint_dir=folder / "checkpoints", resume=True, parallelism=1, **more
    )


def main(folder: Path) -> None:
    batch_limits.BATCH_ROWS = FEW
    os.environ[MEMORY_VARIABLE] = LITTLE
    with passing_session() as passing:
        passing.range(3).count()
    left = [str(left) for left in (SparkContext._active_spark_context, SparkContext._gateway) if left]
    short = run(folder, spark="local[2]")
    spark: Any = SparkSession.getActiveSession()
    told: dict[str, Any] = {"left": left, "short": error_of(lambda: short.wait("300s"))}
    spark.sparkContext._gateway.proc.wait(60)
    told["next"] = error_of(lambda: run(folder, spark=spark))
    os.environ[MEMORY_VARIABLE] = ENOUGH
    again = run(folder)
    told["again"] = again.wait("300s")
    told["numbers"] = sorted(again.table()["n"].to_pylist()) == list(range(2 * FEW))
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
