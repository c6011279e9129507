"""A process that runs, or stands by for, the job of a checkpoint directory: ``standby_job.py FOLDER COUNT``.

It tells its states, one line for each, and in the end the rows of the table. It reads slowly until there is a file of
the name ``fast`` in the folder.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyarrow as pa

import workbench as wb


def tell(*words: object) -> None:
    sys.stdout.write(json.dumps([time.time(), *words]) + "\n")
    sys.stdout.flush()


def main(folder: Path, count: int) -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(count)}), rate=200)
    job = numbers.sink_to(wb.TableSink("out")).run(
        "shared", checkpoint_interval="50ms", checkpoint_dir=folder / "checkpoints", standby=True
    )
    told = None
    while not job.over:
        checkpoints = 0 if job.state == "SUSPENDED" else job.status().get("checkpoints")
        if (job.state, bool(checkpoints)) != told:
            told = (str(job.state), bool(checkpoints))
            tell(*told, job.status()["lease"])
        if job.state == "RUNNING" and (folder / "fast").exists():
            job.tune(rate="max")
        time.sleep(0.02)
    tell(str(job.state), sorted(job.table("out")["n"].to_pylist()) if job.state == "FINISHED" else [])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
