"""Replay logs that Spark's own reader reads completely, in the only batch of a query.

A watermark only decides what is emitted before the end of the input. If all records fit into one batch, nothing is
emitted before the end: all windows are emitted then, and no record is late. So Spark's Parquet reader can read the
files, as in a PySpark program, without a Python worker. A larger log is read in batches by `native_source`, which
returns rows in order of arrival over all channels.

The sinks write the batch completely or not at all, so a run that continues has either everything left to do, or
nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.connectors.replay.log import ReplayLog
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.plan.logical import LogicalGraph
from workbench.spark.engine.native_source import TICK, TIME
from workbench.spark.engine.rereading import can_reread

if TYPE_CHECKING:
    from workbench.spark.session import DataFrame, SparkSession

_SPECIAL = re.compile(r"[\\{}\[\]*?,^%:]")
"""Characters that Hadoop interprets as a pattern, or as part of a URI."""


def is_read_whole(graph: LogicalGraph, most_rows: int) -> bool:
    """Whether Spark can read all sources of a native pipeline in one batch.

    Args:
        graph: of the pipeline.
        most_rows: the maximum number of rows in the batch.
    """
    windows = [node for node in graph.nodes if isinstance(node.spec, WindowAggregate)]
    sources = [node.spec for node in graph.nodes if node.role == "source"]
    logs = [spec.log for spec in sources if can_reread(spec)]
    return (
        len(logs) == len(sources)
        and len(windows) <= 1  # Spark supports several only in append mode, which needs a watermark
        and all(log.rows and _is_legible(log) for log in logs)
        and sum(log.rows for log in logs) <= most_rows
    )


def whole_log(spark: SparkSession, log: ReplayLog, columns: pa.Schema) -> DataFrame:
    """The records of a log as a stream of files, with event times and without ticks.

    Args:
        spark: the session of the query.
        log: a log for which `is_read_whole` is true.
        columns: the columns to read.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    times = log.schema.field(log.event_time)
    read = columns if log.event_time in columns.names else columns.append(times)
    nullable = pa.schema([field.with_nullable(True) for field in read])
    files = ",".join(file.name for file in log.manifest.files)
    frame = (
        spark.readStream.schema(from_arrow_schema(nullable, prefer_timestamp_ntz=True))
        .option("datetimeRebaseMode", "CORRECTED")
        .parquet(f"file://{log.path.absolute()}/{{{files}}}")
    )
    return frame.selectExpr(
        *map(quoted, columns.names), f"CAST({quoted(log.event_time)} AS TIMESTAMP) AS {TIME}", f"FALSE AS {TICK}"
    )


def quoted(name: str) -> str:
    """The name of a column in a Spark expression.

    Example:
        >>> quoted("a b")
        '`a b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _is_legible(log: ReplayLog) -> bool:
    kind = log.schema.field(log.event_time).type
    paths = (str(log.path.absolute()), *(file.name for file in log.manifest.files))
    return pa.types.is_timestamp(kind) and not any(_SPECIAL.search(path) for path in paths)
