"""A process that starts jobs in processes of their own, quickly: it has imported and compiled everything, and forks.

Each line on its input is the folder of a job, the number of records, after how many seconds the process is killed, 0
for not at all, and the architecture of fault tolerance. With another one than snapshots, the seconds begin when the
process has committed rows, and records come more slowly until none is to be killed. It answers with the exit status, or
the number of the signal that ended it, as a negative number.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import workbench as wb
from workbench import col
from workbench.compiled import warm_up

RATE, SLOW_RATE = 4_000, 500
KEYS = 5


def pipeline(folder: Path, count: int, rate: float) -> wb.types.Pipeline:
    """The odd numbers into Parquet files, and a rolling count by key into a table."""
    table = pa.table({"n": range(count), "k": [n % KEYS for n in range(count)]})
    numbers = wb.Stream.from_table(table, rate=rate).uid("numbers")
    odd = numbers.rebalance().filter(col("n") % 2 == 1).sink_to(wb.ParquetSink(folder / "odd"))
    counted = numbers.key_by("k").aggregate(c=wb.count()).sink_to(wb.TableSink("counts"))
    return odd + counted


def run(folder: Path, count: int, architecture: str, rate: float) -> None:
    """Run the job to its end, from wherever an earlier process left it, and leave the table's rows in a file.

    A line of the file `continued` says how a process began: from a checkpoint, or from transactions.
    """
    job = pipeline(folder, count, rate).run(
        "kills",
        parallelism=2,
        buffer_timeout="5ms",
        checkpoint_interval="30ms",
        checkpoint_dir=folder / "checkpoints",
        resume=True,
        fault_tolerance=architecture,
    )
    began = []
    while not began and not job.over:  # a frame may be older than what it would tell
        time.sleep(0.01)
        frame = job.recorder.latest()
        began = [event.text for event in (frame.events if frame else ()) if event.kind == "recovery"]
    with (folder / "continued").open("a") as file:
        file.write(f"{'transactions' if any('last transaction' in text for text in began) else 'checkpoint'}\n")
    job.wait()
    pq.write_table(job.table("counts"), folder / "written")
    (folder / "written").rename(folder / "counts.parquet")


def committed(folder: Path) -> int:
    """How many files anybody can read."""
    return sum(1 for _ in folder.glob("odd/part-*.parquet"))


def main() -> None:
    warm_up()
    for line in sys.stdin:
        folder, count, seconds, architecture = line.split()
        awaits = float(seconds) > 0 and architecture != "snapshots"
        before = committed(Path(folder))
        child = os.fork()
        if child == 0:
            try:
                run(Path(folder), int(count), architecture, SLOW_RATE if awaits else RATE)
            except BaseException as error:  # noqa: BLE001
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)
        while awaits and committed(Path(folder)) == before and Path(f"/proc/{child}/exe").exists():
            time.sleep(0.005)
        time.sleep(float(seconds))
        if float(seconds):
            os.kill(child, signal.SIGKILL)  # nobody has waited for it, so the number is still its own
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
