"""A job in a process of its own, whose machine's clock somebody sets: each line on its input is a question or a
command, each line on its output an answer as JSON.

``facts``: how far the job is. ``finish``: wait until the timers of all records so far have fired, then read the rest at
full speed; answers with everything that the job has written. A timer that is not due when the input ends never fires.
Nothing here calls time.sleep, which fails under a faked clock.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import workbench as wb

RATE, COUNT, KEYS = 20, 3_000, 4
IDLE_AFTER = "500ms"
KINDS = ("counted", "timed", "echoed", "read")


class Echo(wb.functions.ProcessFunction):
    """Each record comes out of a timer of processing time."""

    waiting = wb.state.ListState(pa.int64())

    def process(self, record: Any, state: Any, ctx: Any) -> None:
        state.waiting.append(record["n"])
        ctx.register_processing_timer(ctx.processing_time + 50_000)

    def on_timer(self, time: int, state: Any, ctx: Any) -> Iterator[dict[str, int]]:
        numbers = list(state.waiting)
        state.waiting.clear()
        for n in numbers:
            yield {"n": n}


def pipeline(folder: Path) -> wb.types.Pipeline:
    """Windows and timers of processing time, and windows of event time that wait for a silent source to be idle."""
    table = pa.table(
        {"n": range(COUNT), "k": [n % KEYS for n in range(COUNT)], "t": [n * 10_000 for n in range(COUNT)]}
    )
    numbers = wb.Stream.from_table(table, event_time="t", rate=RATE, idle_after=IDLE_AFTER).uid("numbers")
    far = pa.table({"n": [-1], "k": [0], "t": [10**15]})
    silent = wb.Stream.from_table(far, event_time="t", rate=1e-6, idle_after=IDLE_AFTER).uid("silent")
    counted = numbers.key_by("k").window(wb.tumbling("300ms"), time="processing").aggregate(c=wb.count())
    timed = numbers.union(silent).key_by("k").window(wb.tumbling("100ms")).aggregate(c=wb.count())
    echoed = numbers.key_by("k").process(Echo(), {"n": pa.int64()})
    return (
        counted.sink_to(wb.ParquetSink(folder / "counted"))
        + timed.sink_to(wb.ParquetSink(folder / "timed"))
        + echoed.sink_to(wb.ParquetSink(folder / "echoed"))
        + numbers.select("n").sink_to(wb.ParquetSink(folder / "read"))
    )


def main(checkpoints: str, folder: Path) -> None:
    begin_s = time.monotonic()
    sizes: dict[Path, int] = {}
    job = pipeline(folder).run("clocks", parallelism=1, checkpoint_interval="1s", checkpoint_dir=checkpoints)

    def written(name: str) -> list[dict[str, Any]]:
        return [row for path in (folder / name).glob("part-*") for row in pq.read_table(path).to_pylist()]

    def count(name: str) -> int:
        for path in (folder / name).glob("part-*"):
            if path not in sizes:
                sizes[path] = pq.read_metadata(path).num_rows
        return sum(rows for path, rows in sizes.items() if path.parent.name == name)

    for line in sys.stdin:
        if line.strip() == "finish":
            job.pause()
            later = job.status()["checkpoints"] + 3  # the second has begun after the pause, and is committed
            while not job.over and (job.status()["checkpoints"] < later or count("echoed") < count("read")):
                threading.Event().wait(0.1)
            fired = [sorted(row["n"] for row in written(name)) for name in ("read", "echoed")]
            job.tune(rate="max")
            job.resume()
            job.wait("120s")
        status = job.status()
        answer = {
            "state": job.state,
            "checkpoints": status["checkpoints"],
            "restarts": status["restarts"],
            "wall_s": time.time(),
            "lease": status["lease"],
            "rows": {name: count(name) for name in KINDS},
            "seconds": time.monotonic() - begin_s,
        }
        if line.strip() == "finish":
            for name in ("counted", "timed"):
                rows = written(name)
                answer[name] = [[row["k"], row["window_start"].timestamp(), row["c"]] for row in rows]
            answer["paused"] = fired
            answer["echoed"], answer["read"] = ([row["n"] for row in written(name)] for name in ("echoed", "read"))
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
