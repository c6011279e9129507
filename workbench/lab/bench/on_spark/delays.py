"""The delays of the flights by airport and hour: in the kernel, on Spark, and hand-written in PySpark.

As a program it answers for one master, because a process has one JVM of Spark::

    python -m workbench.lab.bench.on_spark.delays MASTER LOG ROUNDS
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench.errors import JobError
from workbench.packages import needed
from workbench.spark.session import session

MASTERS = ("local[2]", "local-cluster[2,1,1024]")
"""Threads of one JVM, and JVMs of their own."""
_DISORDER = "1d"  # no flight takes that long, so that none is late
_COLUMNS = ("origin", "window_start", "flights", "mean_delay", "worst")
_BY_HAND = """
SELECT origin, window.start AS window_start, count(*) AS flights, avg(dep_delay) AS mean_delay, max(dep_delay) AS worst
FROM flights WHERE dep_delay IS NOT NULL GROUP BY origin, window(departed, '1 hour')
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """One run.

    Attributes:
        engine: ``kernel``, ``translated`` (the pipeline on Spark) or ``by hand`` (a program of PySpark).
        master: of Spark; empty in the kernel.
        round: from 1; the first one starts Python workers and compiles.
        seconds: from the start to the last row.
        rows: of the answer.
        exact: whether it is that of DuckDB.
    """

    engine: str
    master: str
    round: int
    seconds: float
    rows: int
    exact: bool

    def to_json(self) -> str:
        """One line of JSON."""
        found = asdict(self)
        config = {name: found.pop(name) for name in ("engine", "master", "round")}
        peer = "spark" if self.engine == "by hand" else "workbench"
        return json.dumps({"peer": peer, "workload": "delays", "config": config, **found})

    def describe(self) -> str:
        """One line."""
        right = f"{self.rows:,} rows as DuckDB" if self.exact else "WRONG ROWS"
        return f"{self.engine:11} {self.master:24} round {self.round}  {self.seconds:7.2f} s  {right}"


def answers(log: Path, rounds: int) -> Iterator[Answer]:
    """The kernel first, then each master, whose rounds alternate between the translated pipeline and that by hand.

    Args:
        log: the flights.
        rounds: of each; the first of a master is without warm JVMs.

    Raises:
        JobError: a program of a master failed.
    """
    expected = _expected(log)
    for number in range(1, rounds + 1):
        yield _timed("kernel", "", number, lambda: _in_kernel(log), expected)
    for master in MASTERS:
        command = [sys.executable, "-m", __name__, master, str(log), str(rounds)]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            told, errors = program.communicate()
        finally:
            program.kill()
        if program.returncode:
            raise JobError(f"the program for {master!r} failed: {errors.strip().splitlines()[-1:]}")
        yield from (Answer(**json.loads(line)) for line in told.splitlines() if line.startswith("{"))


def ratios(found: list[Answer]) -> list[str]:
    """How the translated pipeline compares with the program by hand, for each master: medians of the warm rounds."""
    lines = []
    for master in MASTERS:
        warm = {
            engine: [
                each.seconds for each in found if (each.engine, each.master) == (engine, master) and each.round > 1
            ]
            for engine in ("translated", "by hand")
        }
        if all(warm.values()):
            ratio = median(warm["translated"]) / median(warm["by hand"])
            lines.append(f"{master}: the translated pipeline takes {ratio:.2f} times as long as the program by hand")
    return lines


def _timed(engine: str, master: str, number: int, run: Callable[[], pa.Table], expected: pa.Table) -> Answer:
    begin = time.perf_counter()
    found = run()
    seconds = time.perf_counter() - begin
    return Answer(engine, master, number, round(seconds, 3), len(found), _comparable(found).equals(expected))


def _comparable(found: pa.Table) -> pa.Table:
    """Sorted, in the types of DuckDB; means to nine digits, because sums of floats depend on their order."""
    table = found.select(list(_COLUMNS))
    means = pa.compute.round(table["mean_delay"].cast(pa.float64()), 9)
    columns = [
        table["origin"].cast(pa.string()),
        table["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()),
        table["flights"].cast(pa.int64()),
        means,
        table["worst"].cast(pa.float64()),
    ]
    order = [("origin", "ascending"), ("window_start", "ascending")]
    return pa.Table.from_arrays(columns, list(_COLUMNS)).sort_by(order).combine_chunks()


def _expected(log: Path) -> pa.Table:
    duckdb = needed("duckdb", "the comparison")
    return _comparable(
        duckdb.sql(
            "SELECT origin, date_trunc('hour', departed) AS window_start, count(*) AS flights, "
            "avg(dep_delay) AS mean_delay, max(dep_delay) AS worst "
            f"FROM read_parquet('{str(log).replace(chr(39), chr(39) * 2)}/**/*.parquet') "
            "WHERE dep_delay IS NOT NULL GROUP BY ALL"
        ).to_arrow_table()
    )


def _pipeline(log: Path) -> wb.types.Pipeline:
    windows = (
        wb.Stream.replay(log, out_of_orderness=_DISORDER)
        .filter("dep_delay IS NOT NULL")
        .key_by("origin")
        .window(wb.tumbling("1h"))
    )
    delays = windows.aggregate(flights=wb.count(), mean_delay=wb.mean("dep_delay"), worst=wb.max("dep_delay"))
    return delays.sink_to(wb.TableSink("delays"))


def _in_kernel(log: Path) -> pa.Table:
    job = _pipeline(log).run("delays-in-kernel", parallelism=2)
    job.wait()
    return job.table()


def _translated(log: Path, spark: object) -> pa.Table:
    job = _pipeline(log).run("delays-on-spark", engine="spark", spark=spark)
    job.wait()
    return job.table()


def _by_hand(log: Path, spark: Any) -> pa.Table:
    """What Spark's guide teaches: a stream of files, all that are there, and the last state of each window."""
    found: list[pa.Table] = []
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    files = str(log / "channel-*")
    flights = spark.readStream.schema(spark.read.parquet(files).schema).parquet(files)
    flights.withWatermark("departed", "1 day").createOrReplaceTempView("flights")
    with tempfile.TemporaryDirectory() as folder:
        writer = spark.sql(_BY_HAND).writeStream.outputMode("complete").trigger(availableNow=True)
        query = (
            writer.option("checkpointLocation", folder)
            .foreachBatch(lambda rows, number: found.append(rows.toArrow()))
            .start()
        )
        query.awaitTermination()
    return found[-1]


def _program(master: str, log: Path, rounds: int) -> None:
    spark, expected = session(master, quick_start=False), _expected(log)
    for number in range(1, rounds + 1):
        both = [("translated", _translated), ("by hand", _by_hand)]
        for engine, run in both if number % 2 else reversed(both):
            found = _timed(engine, master, number, lambda run=run: run(log, spark), expected)  # type: ignore[misc]
            sys.stdout.write(json.dumps(asdict(found)) + "\n")
    spark.stop()


if __name__ == "__main__":
    _program(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
