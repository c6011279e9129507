"""Runs a pipeline whose batch is larger than the memory of Spark's JVM, and prints what came of it as JSON.

python spark_memory_job.py MASTER
"""

from __future__ import annotations

import json
import os
import sys

import pyarrow as pa

import workbench as wb
from workbench.spark.session import MEMORY_VARIABLE

HEAP = "512m"
ROWS = 100_000
BYTES = 4_096


def main(master: str) -> None:
    """400 MB of records reach the JVM as one value, in a batch that a function makes a carried one."""
    os.environ[MEMORY_VARIABLE] = HEAP
    rows = pa.table({"text": pa.array(["x" * BYTES] * ROWS)})
    stream = wb.Stream.from_table(rows).map_batches(lambda batch: batch)
    job = stream.sink_to(wb.DiscardSink()).run("large", engine="spark", spark=master, parallelism=1)
    try:
        job.wait("240s")
        told = ""
    except wb.errors.JobError as error:
        told = error.message
    sys.stdout.write(json.dumps({"state": job.state, "error": told}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
