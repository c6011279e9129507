"""Databases under kill -9 at random moments: a process is killed, and another goes on at another parallelism."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from databases import query

ROWS = 6_000
KEYS = 11
KILLS = int(os.environ.get("WORKBENCH_KILLS", "3"))
"""For a longer search than the suite's."""

RUN = """
import sys
from pathlib import Path
import pyarrow as pa
import workbench as wb
from workbench import col

folder, parallelism, rate = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) or None
table = pa.table({{"n": list(range({rows}))}})
numbers = wb.Stream.from_table(table, rate=rate).with_columns(key=col("n") % {keys})
counts = numbers.key_by("key").aggregate(count=wb.count(), last=wb.max("n"))
pipeline = (
    numbers.rebalance().sink_to(wb.SqlSink(f"sqlite:///{{folder}}/a.db", "numbers"))
    + counts.sink_to(wb.SqlSink(f"sqlite:///{{folder}}/a.db", "counts", upsert_key="key"))
    + numbers.rebalance().sink_to(wb.SqlSink(f"duckdb:///{{folder}}/b.db", "numbers"))
    + counts.sink_to(wb.SqlSink(f"duckdb:///{{folder}}/b.db", "counts", upsert_key="key"))
)
job = pipeline.run("kills", parallelism=parallelism, checkpoint_interval="50ms",
                   checkpoint_dir=folder / "checkpoints", resume=True)
print("started", flush=True)
print(job.wait(), flush=True)
"""


@pytest.mark.slow
def test_kill_minus_nine_loses_and_doubles_no_row(tmp_path: Path) -> None:
    chance = Random(KILLS)
    code = RUN.format(rows=ROWS, keys=KEYS)
    kills, ended = 0, ""
    while ended != "FINISHED\n":
        rate = 200 if kills < KILLS else 0  # half a minute for all, or as fast as it can: no process ends unkilled
        command = [sys.executable, "-c", code, str(tmp_path), str(chance.choice((1, 2, 3))), str(rate)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            if kills < KILLS:
                time.sleep(chance.uniform(0.0, 4.5 / KILLS))
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            ended = process.stdout.readline()
    for address in (f"sqlite:///{tmp_path}/a.db", f"duckdb:///{tmp_path}/b.db"):
        assert sorted(n for (n,) in query(address, "SELECT n FROM numbers")) == list(range(ROWS))
        keys = [[n for n in range(ROWS) if n % KEYS == key] for key in range(KEYS)]
        found = sorted(query(address, "SELECT key, count, last FROM counts"))
        assert found == [(key, len(values), max(values)) for key, values in enumerate(keys)]
    assert kills == KILLS
