"""The Spark job behind a history: order the records by arrival, split them into channels, write Parquet."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from workbench.arguments import as_given
from workbench.clock import SystemClock
from workbench.connectors.replay.appending import LogAppend
from workbench.connectors.replay.draft import LogDraft, writing
from workbench.connectors.replay.log import (
    ROW_GROUP_ROWS,
    Progress,
    ReplayLog,
    block_of,
    check_channels,
    log_schema,
    null_arrivals,
)
from workbench.connectors.replay.manifest import Partitioned
from workbench.durations import format_instant
from workbench.elements import event_times
from workbench.errors import HistoryError, unknown
from workbench.spark.fingerprint import quoted, row_hash
from workbench.spark.progress import run_job
from workbench.spark.session import spark_setting

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_CHANNEL = "workbench_channel"
_FILE_ROWS = 1_000_000
_CASTS = {
    "VariantType": "to_json({})",
    "TimeType": "CAST({} AS STRING)",
    "YearMonthIntervalType": "CAST({} AS STRING)",
    "CalendarIntervalType": "CAST({} AS STRING)",
    "GeographyType": "hex(ST_AsBinary({}))",
    "GeometryType": "hex(ST_AsBinary({}))",
    "NullType": "CAST({} AS STRING)",
}
"""Spark types that a log cannot hold, and the cast to a type that it can."""


def check_columns(
    df: DataFrame, event_time: str, arrival_time: str, channels: int, partition_by: Sequence[str] = ()
) -> None:
    """Reject a frame that cannot become a history, before any job runs.

    Raises:
        HistoryError: no Spark frame, a column is missing, a time column holds no times, names repeat, or there is no
            channel.
    """
    from pyspark.sql.types import DateType, LongType, TimestampNTZType, TimestampType

    if not hasattr(df, "sparkSession"):
        other = "History.from_arrow takes a pyarrow.Table"
        if type(df).__module__.startswith("pandas."):
            other += (
                ": convert it with pyarrow.Table.from_pandas(frame), or with spark.createDataFrame(frame) to a Spark "
                "DataFrame"
            )
        raise HistoryError(f"df is {as_given(df)}, but must be a Spark DataFrame: {other}")
    if df.isStreaming:
        raise HistoryError(
            "df is a streaming DataFrame, which has no end: pass a batch DataFrame, such as spark.read in place of "
            "spark.readStream"
        )
    for field in df.schema:
        check_type(quoted(field.name), field.dataType)
    check_channels(channels)
    strict = df.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    names = [name if strict else name.lower() for name in df.columns]
    repeated = sorted({name for name, same in zip(df.columns, names, strict=True) if names.count(same) > 1})
    if repeated:
        as_letters = len(repeated) > len({name.lower() for name in repeated})
        why = ", because Spark ignores case" if as_letters else ""
        raise HistoryError(f"columns {repeated} occur more than once{why}: give each column a different name")
    for name in partition_by:
        if name not in df.columns:
            raise HistoryError(unknown("partition_by column", name, df.columns))
    for role, name in (("event_time", event_time), ("arrival_time", arrival_time)):
        if name not in df.columns:
            raise HistoryError(unknown(f"{role} column", name, df.columns))
        kind = df.schema[name].dataType
        if not isinstance(kind, DateType | LongType | TimestampNTZType | TimestampType):
            raise HistoryError(
                f"{role} column {name!r} is of type {kind.simpleString()}: it must be a timestamp, a date or a bigint "
                f"of microseconds since 1970 (UTC), for example to_timestamp({name})"
            )


def check_type(name: str, kind: DataType) -> None:
    """Refuse a type that Spark cannot write to the log or Arrow cannot read, at any depth.

    Raises:
        HistoryError: with the column, or the place within it, and the cast that helps.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    fix = _CASTS.get(type(kind).__name__)
    if fix is not None:
        raise HistoryError(
            f"column {name} is of type {kind.simpleString()}, which a replay log cannot hold: cast it, for example "
            f"{fix.format(name)}"
        )
    if isinstance(kind, StructType):
        for part in kind.fields:
            check_type(f"{name}.{quoted(part.name)}", part.dataType)
    elif isinstance(kind, ArrayType):
        check_type(f"{name}[]", kind.elementType)
    elif isinstance(kind, MapType):
        check_type(f"{name} (its keys)", kind.keyType)
        check_type(f"{name} (its values)", kind.valueType)


def write_with_spark(
    df: DataFrame,
    path: Path,
    *,
    event_time: str,
    arrival_time: str,
    channels: int,
    fingerprint: Mapping[str, str],
    notes: Sequence[str],
    progress: Progress,
    partition_by: Sequence[str] = (),
    onto: ReplayLog | None = None,
) -> ReplayLog:
    """Write a replay log from a frame whose columns have been checked, or append to the log `onto`.

    A record's channel follows from its arrival, or from a hash of its values in `partition_by`, and records with equal
    arrivals are ordered by a hash of all their values: the same records always make the same channels. Spark's tasks
    sort ranges of arrival times in parallel, and each writes one file per channel.

    Raises:
        HistoryError: an arrival is null or, to be appended, before the last one of the log; or the files did not reach
            this machine's disk.
    """
    draft = LogDraft(path, event_time, arrival_time) if onto is None else LogAppend(path, onto.manifest)
    try:
        rows, first_us, last_us = _count(df, arrival_time, progress)
        if onto is not None and rows:
            _check_later(onto, first_us)
        if partition_by:
            draft.partitioned = Partitioned(tuple(partition_by), "spark")
        block_us = max(1, (last_us - first_us) * block_of(rows) // max(1, rows))
        turn = row_hash(df, partition_by) if partition_by else _block(df, arrival_time, block_us)
        unordered = draft.folder / "spark"
        if rows:
            with spark_setting(df.sparkSession, "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"):
                run_job(
                    df.sparkSession,
                    lambda: _order(df, unordered, arrival_time, channels, rows, turn),
                    "order and write",
                    progress,
                )
        for channel in range(channels):
            progress("index", channel, channels)
            with writing(path):
                draft.add_channel()
                # Names begin with the number of the range.
                for file in sorted((unordered / f"{_CHANNEL}={channel}").glob("part-*.parquet")):
                    draft.add_file(file)
        if draft.rows != rows:
            raise HistoryError(
                f"Spark counted {rows} records and {draft.rows} of them are at {path.absolute()}: use a frame "
                "that gives the same records each time, and a session whose workers share this machine's disk"
            )
        shutil.rmtree(unordered, ignore_errors=True)
        schema = log_schema(df.limit(0).toArrow().schema)
        with writing(path):
            draft.publish(schema, fingerprint, notes, SystemClock().now_us())
        progress("index", channels, channels)
    finally:
        draft.discard()
    return ReplayLog.open(path)


def check_like(
    log: ReplayLog, df: DataFrame, event_time: str, arrival_time: str, partition_by: tuple[str, ...] = ()
) -> None:
    """Reject a frame that cannot be appended to a log.

    Raises:
        HistoryError: it has other columns, or other columns hold the times.
    """
    if (event_time, arrival_time) != (log.event_time, log.arrival_time):
        raise HistoryError(
            f"the log at {log.path} has event_time={log.event_time!r} and arrival_time={log.arrival_time!r}, but the "
            f"records to append have {event_time!r} and {arrival_time!r}: use the columns of the log"
        )
    partitioned = log.manifest.partitioned
    by = () if partitioned is None else partitioned.by
    if by != partition_by:
        raise HistoryError(
            f"the log at {log.path} has partition_by={list(by)}, but the records to append have {list(partition_by)}: "
            "use the columns of the log"
        )
    if partitioned is not None and partitioned.writer != "spark":
        raise HistoryError(
            f"the keys of the log at {log.path} were dealt out by History.from_arrow, which Spark cannot continue: "
            "write the whole log with History.from_spark"
        )
    here = {field.name: str(field.type) for field in log.schema}
    there = {field.name: str(field.type) for field in log_schema(df.limit(0).toArrow().schema)}
    if list(here.items()) == list(there.items()):
        return
    differing = [
        f"{name} ({there.get(name, 'missing')} instead of {here.get(name, 'none')})"
        for name in {**here, **there}
        if here.get(name) != there.get(name)
    ]
    raise HistoryError(
        f"the records to append to {log.path} have other columns: "
        f"{', '.join(differing) or f'in the order {list(there)}'}; select those of the log, {list(here)}"
    )


def _check_later(log: ReplayLog, first_us: int) -> None:
    if log.rows and first_us < log.end_us:
        raise HistoryError(
            f"the records to append begin at {format_instant(first_us)}, but the log at {log.path} ends at "
            f"{format_instant(log.end_us)}: a replay log is ordered by arrival, so append only later records, or "
            "write the whole log again"
        )


def _count(df: DataFrame, arrival_time: str, progress: Progress) -> tuple[int, int, int]:
    """The number of records, all of which have an arrival, and the first and last arrival in microseconds."""
    from pyspark.sql import functions

    arrival = df[quoted(arrival_time)]
    counts = df.agg(
        functions.count("*").alias("rows"),
        functions.count_if(arrival.isNull()).alias("nulls"),
        functions.min(arrival).alias("first"),
        functions.max(arrival).alias("last"),
    )
    found = run_job(df.sparkSession, counts.toArrow, "check", progress)
    rows, nulls = found["rows"][0].as_py(), found["nulls"][0].as_py()
    if nulls:
        first = df.filter(arrival.isNull()).limit(1).collect()[0]
        raise HistoryError(null_arrivals(arrival_time, nulls, shorten(str(first), 120, placeholder=" ...)")))
    first, last = (int(event_times(found[name].combine_chunks(), arrival_time)[0]) for name in ("first", "last"))
    return int(rows), first, last


def _block(df: DataFrame, arrival_time: str, block_us: int) -> Column:
    """The number of the block of time in which a record arrived."""
    from pyspark.sql import functions
    from pyspark.sql.types import LongType

    arrival = df[quoted(arrival_time)]
    if not isinstance(df.schema[arrival_time].dataType, LongType):
        arrival = functions.unix_micros(arrival.cast("timestamp"))
    return functions.floor((arrival - functions.pmod(arrival, functions.lit(block_us))) / functions.lit(block_us))


def _order(df: DataFrame, folder: Path, arrival_time: str, channels: int, rows: int, turn: Column) -> None:
    from pyspark.sql import functions

    cores = df.sparkSession.sparkContext.defaultParallelism
    ranges = max(min(cores, -(-rows // ROW_GROUP_ROWS)), -(-rows // _FILE_ROWS))
    hashed = row_hash(df)
    (
        df.withColumn(_CHANNEL, functions.pmod(turn, functions.lit(channels)))
        .repartitionByRange(ranges, quoted(arrival_time))
        .sortWithinPartitions(_CHANNEL, quoted(arrival_time), hashed)
        .write.partitionBy(_CHANNEL)
        .option("compression", "zstd")
        .option("parquet.block.row.count.limit", str(ROW_GROUP_ROWS))
        .parquet(hadoop_path(folder))
    )


def hadoop_path(folder: Path) -> str:
    """A local folder for Spark, whose file systems do not unescape characters of a path: in the URI
    ``file:///my%20data`` they see a folder ``my%20data``."""
    return f"file:///{folder.absolute().as_posix().lstrip('/')}"
