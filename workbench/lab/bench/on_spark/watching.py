"""The cost of `wb.watch` for a hand-written PySpark query: the same query, watched and alone in turn.

The query has many small batches, because what a watcher asks for is told by batch.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import workbench as wb
from workbench.connectors.replay.log import ReplayLog
from workbench.spark.session import session

_FILES = 40
"""Of the input; each is a batch."""
_QUERY = """
SELECT origin, window.start, count(*) AS flights, avg(dep_delay) AS mean_delay
FROM flights GROUP BY origin, window(departed, '1 hour')
"""
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True, slots=True)
class Watched:
    """One run of the query.

    Attributes:
        watched: whether `wb.watch` looked at it, and its picture was drawn each second, as in a notebook.
        round: from 1; the first of each kind is without a warm JVM.
        seconds: from the start to the end.
        cpu_s: of Spark's JVM and of this process; 0: not known.
        batches: that it had.
        seen: batches that the watcher saw; 0 without it.
    """

    watched: bool
    round: int
    seconds: float
    cpu_s: float
    batches: int
    seen: int

    @property
    def complete(self) -> bool:
        """Whether each file was a batch, and each batch was seen."""
        return self.batches == _FILES and self.seen == (self.batches if self.watched else 0)

    def to_json(self) -> str:
        """One line of JSON."""
        found = asdict(self)
        config = {name: found.pop(name) for name in ("watched", "round")}
        return json.dumps({"peer": "workbench", "workload": "watch", "config": config, **found})

    def describe(self) -> str:
        """One line."""
        how = f"watched, {self.seen} batches seen" if self.watched else "alone"
        return f"round {self.round}  {self.seconds:6.2f} s  {self.cpu_s:6.2f} CPU s  {self.batches} batches  {how}"


def watching(log: ReplayLog, rounds: int) -> Iterator[Watched]:
    """The query alone and watched, `rounds` times in turn, on two threads.

    Args:
        log: the flights.
        rounds: of each.
    """
    spark = session("local[2]", quick_start=False)
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as folder:
        files = Path(folder, "flights")
        _split(log, files)
        for number in range(1, rounds + 1):
            for watched in (False, True) if number % 2 else (True, False):
                yield _run(spark, files, number, watched=watched)


def ratios(found: Sequence[Watched]) -> str:
    """What watching costs, as a sentence about the medians of the warm rounds; empty without any.

    Example:
        >>> runs = [Watched(watched, 2, 10.2 if watched else 10.0, 5.0, 40, 40 * watched) for watched in (True, False)]
        >>> ratios(runs)
        'watched, the query takes 1.020 times as long, and 1.000 times the CPU time'
    """
    warm = {kind: [each for each in found if each.round > 1 and each.watched is kind] for kind in (True, False)}
    if not all(warm.values()):
        return ""
    seconds, cpu = (
        median(getattr(each, name) for each in warm[True])
        / max(median(getattr(each, name) for each in warm[False]), 1e-9)
        for name in ("seconds", "cpu_s")
    )
    return f"watched, the query takes {seconds:.3f} times as long, and {cpu:.3f} times the CPU time"


def _split(log: ReplayLog, files: Path) -> None:
    files.mkdir()
    columns = ["origin", "departed", "dep_delay"]
    records = pa.concat_tables(pq.read_table(log.path / file.name, columns=columns) for file in log.manifest.files)
    rows = -(-len(records) // _FILES)
    for number in range(_FILES):
        pq.write_table(records.slice(number * rows, rows), files / f"{number:03}.parquet")


def _run(spark: Any, files: Path, number: int, *, watched: bool) -> Watched:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    flights = spark.readStream.schema(spark.read.parquet(str(files)).schema).option("maxFilesPerTrigger", 1)
    flights.parquet(str(files)).withWatermark("departed", "1 day").createOrReplaceTempView("flights")
    frame = spark.sql(_QUERY)
    with tempfile.TemporaryDirectory() as folder:
        writer = frame.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
        begin, cpu = time.perf_counter(), _cpu_s(spark)
        query = writer.option("checkpointLocation", folder).start()
        looked = _look(query) if watched else None
        query.awaitTermination()
        seconds, used = time.perf_counter() - begin, _cpu_s(spark) - cpu
        batches = sum("addBatch" in each["durationMs"] and each["numInputRows"] > 0 for each in query.recentProgress)
        seen = 0
        if looked is not None:
            looked.look()
            seen = sum(batch.rows > 0 for batch in looked.queries[0].batches)
    return Watched(watched, number, round(seconds, 3), round(used, 2), batches, seen)


def _look(query: Any) -> Any:
    """A watcher whose picture is drawn each second, as in a notebook."""
    looked = wb.watch(query)

    def draw() -> None:
        while not looked.over:
            looked.html()
            time.sleep(1)

    threading.Thread(target=draw, name="drawn", daemon=True).start()
    return looked


def _cpu_s(spark: Any) -> float:
    """CPU time of this process and of Spark's JVM so far."""
    jvm = int(spark.sparkContext._jvm.ProcessHandle.current().pid())
    try:
        fields = Path(f"/proc/{jvm}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return time.process_time() + (int(fields[11]) + int(fields[12])) / _TICK
