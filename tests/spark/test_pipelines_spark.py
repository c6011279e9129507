"""Fixed pipelines give the same rows as Spark Structured Streaming on the same files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.spark.session import session as spark_session
from workbench.spark.session import spark_setting

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]

SECOND = 1_000_000
DISORDER = "20 seconds"
FAR = 10_000 * SECOND
"""Event time of a last record: Spark tells event time only as far as records came, and then says what is left."""


def written(folder: Path, seed: int) -> pa.Table:
    """Random records, in one file, and the last one in another; the table of the random ones."""
    chance = Random(seed)
    times = [at * SECOND - chance.randint(0, 20 * SECOND) for at in range(60, 260)]
    table = pa.table(
        {
            "k": [chance.choice(("a", "b", "c")) for _ in times],
            "v": pa.array([chance.choice((None, *range(9))) for _ in times], pa.int64()),
            "t": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    last = pa.table({"k": ["end"], "v": [0], "t": pa.array([FAR], pa.int64()).cast(pa.timestamp("us", "UTC"))})
    folder.mkdir()
    for number, part in enumerate((table, last)):
        pq.write_table(part, folder / f"{number}.parquet")
    return table


def streamed(spark: Any, folder: Path) -> Any:
    """The files as a stream of Spark's, one after the other."""
    stream = spark.readStream.schema("k STRING, v BIGINT, t TIMESTAMP").option("maxFilesPerTrigger", 1)
    return stream.parquet(str(folder)).withWatermark("t", DISORDER)


def told(spark: Any, frame: Any, name: str) -> Counter[tuple[Any, ...]]:
    """All rows that a streaming query appends until its files are read."""
    query = frame.writeStream.format("memory").queryName(name).outputMode("append").trigger(availableNow=True).start()
    query.awaitTermination()
    return Counter(tuple(row) for row in spark.table(name).collect() if "end" not in tuple(row))


def ours(stream: wb.Stream, name: str) -> Counter[tuple[Any, ...]]:
    """All rows that a job gives; times as seconds since 1970."""
    job = stream.sink_to(wb.TableSink("out")).run(name, parallelism=2, buffer_size=16)
    job.wait("120s")
    columns = [
        [value // SECOND for value in column.cast(pa.int64()).to_pylist()]
        if pa.types.is_timestamp(column.type)
        else column.to_pylist()
        for column in job.table().columns
    ]
    return Counter(zip(*columns, strict=True))


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    session = spark_session()
    with spark_setting(session, "spark.sql.shuffle.partitions", "2"):
        yield session


WINDOWS: dict[str, tuple[wb.windows.WindowAssigner, Callable[[Any], Any]]] = {
    "tumbling": (wb.tumbling("10s"), lambda f: f.window("t", "10 seconds")),
    "sliding": (wb.sliding("10s", "5s"), lambda f: f.window("t", "10 seconds", "5 seconds")),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_give_what_they_give_on_spark(spark: Any, tmp_path: Path, kind: str) -> None:
    from pyspark.sql import functions as f

    table, (window, of_spark) = written(tmp_path / "records", 1), WINDOWS[kind]
    grouped = streamed(spark, tmp_path / "records").groupBy("k", of_spark(f).alias("w"))
    frame = grouped.agg(f.count("*").alias("n"), f.sum("v").alias("total"), f.avg("v").alias("mean"), f.max("v"))
    start, end = f.unix_timestamp("w.start"), f.unix_timestamp("w.end")
    theirs = told(spark, frame.select("k", start, end, "n", "total", "mean", "max(v)"), kind)
    stream = wb.Stream.from_table(table, event_time="t", out_of_orderness="20s").key_by("k").window(window)
    results = stream.aggregate(n=wb.count(), total=wb.sum("v"), mean=wb.mean("v"), most=wb.max("v"))
    assert theirs
    assert ours(results, f"spark-{kind}") == theirs


@pytest.mark.slow
def test_an_interval_join_gives_what_it_gives_on_spark(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    left, right = written(tmp_path / "left", 2), written(tmp_path / "right", 3)
    a, b = streamed(spark, tmp_path / "left").alias("a"), streamed(spark, tmp_path / "right").alias("b")
    near = f.expr("a.k = b.k AND b.t BETWEEN a.t - INTERVAL 2 SECONDS AND a.t + INTERVAL 3 SECONDS")
    theirs = told(spark, a.join(b, near).select("a.k", "a.v", "b.v"), "joined")
    streams = [wb.Stream.from_table(side, event_time="t", out_of_orderness="20s") for side in (left, right)]
    joined = streams[0].join(streams[1], on="k", between=("-2s", "3s")).select("k", "v", "v_right")
    assert theirs
    assert ours(joined, "spark-join") == theirs
