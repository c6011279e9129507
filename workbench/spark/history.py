"""Histories: recorded events that Spark, or Arrow, has prepared for replay."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.arguments import as_given, path_of, table_of, true_or_false
from workbench.connectors.replay.log import ARRIVED, Progress, ReplayLog, check_channels, write_log
from workbench.durations import format_instant
from workbench.errors import HistoryError, SettingError, unknown
from workbench.expressions import ColumnName, column_names
from workbench.spark.fingerprint import difference, fingerprint
from workbench.spark.frame import frame_of
from workbench.spark.prepare import check_columns, check_like, write_with_spark
from workbench.spark.progress import say, shown
from workbench.spark.reading import read_recording, read_to_its_end
from workbench.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from workbench.connectors.kafka.source import KafkaSource


_APPENDED = "appended"
"""Entry of a log's fingerprint that tells what was appended last."""


@dataclass(frozen=True, repr=False)
class History:
    """A history on disk, ready to be replayed; opening and replaying it needs neither Spark nor Java.

    Source: E10 replays a history of 480 GiB in this way; F1-13.

    Attributes:
        log: the replay log that holds it.
        notice: one sentence that says whether it was written now, and why, or found unchanged.

    Example:
        >>> history = History.from_spark(df, "flights.log", event_time="departed", arrival_time="landed")
        >>> history.rows
        336776
    """

    log: ReplayLog
    notice: str = ""

    @staticmethod
    def open(path: str | Path) -> History:
        """Open a history that was written before.

        Args:
            path: its folder.

        Raises:
            HistoryError: there is none at `path`, or it is damaged.
        """
        return History(ReplayLog.open(path), f"opened {path}")

    @staticmethod
    def from_spark(
        df: DataFrame,
        path: str | Path,
        *,
        event_time: ColumnName,
        arrival_time: ColumnName,
        channels: int = 2,
        partition_by: ColumnName | Sequence[ColumnName] = (),
        notes: Sequence[str] = (),
        source: Mapping[str, str] | None = None,
        overwrite: bool = False,
        append: bool = False,
        progress: bool | Progress = True,
    ) -> History:
        """Order the records of a DataFrame by arrival with Spark, and write them for replay.

        A history that is already at `path` is reused when nothing changed, and rewritten when its source, the query,
        the columns or the options have changed. A frame over files is compared by its query and its files' sizes and
        modification times; any other by its records, which costs a Spark job. Changes in the result of a query that
        depends on the time or on randomness are not detected: use `overwrite`.

        Args:
            df: the records; the frame is evaluated three times (to count, to find ranges, to write), so cache an
                expensive one.
            path: folder of the history, on this machine's disk.
            event_time: column with the time at which something happened: a timestamp, a date or a bigint of
                microseconds since 1970 (UTC); null where a record has none. Such records are replayed, and
                event-time operators count and drop them.
            arrival_time: column with the time at which it became known; never null. Records are replayed in its
                order; with Spark, whose frames have no order, equal arrivals are ordered by a hash of their values.
            channels: number of parts that can be read in parallel; each spans the whole time. They take turns, each
                for about 1/2,048 of the history and at most 1,024 records (with Spark, on average).
            partition_by: a column, or several; all records with equal values in them go to one channel. Then a replay
                keeps their order of arrival at any parallelism; otherwise it keeps that of all records at
                parallelism 1 only.
            notes: sentences for readers of the history.
            source: a name for the origin of the records, used instead of examining the frame.
            overwrite: rewrite it even if nothing has changed.
            append: add the records to the log at `path`, if there is one, in its channels. A job that was stopped
                continues on the longer log. The same records are not appended twice in a row.
            progress: show a progress bar, or call this with the stage, the steps done and the total number of steps.

        Timestamps without a zone (TIMESTAMP_NTZ) are taken as UTC, in columns and within structs, lists and maps.

        Raises:
            HistoryError: no Spark frame, or a streaming one; a column of a type that a log cannot hold; a time
                column is unknown or holds no times, an arrival is null, the folder cannot be written, or another
                thread writes it; records to append have other columns, or arrived before the log's last one.
            SettingError: the path or the notes have the wrong type, or both `overwrite` and `append` are given.
        """
        event_time, arrival_time = column_names((event_time, arrival_time), "History")
        keys = column_names(partition_by, "partition_by")
        check_columns(df, event_time, arrival_time, channels, keys)
        path, notes = path_of(path, "path"), _sentences(notes)
        if true_or_false(append, "append") and true_or_false(overwrite, "overwrite"):
            raise SettingError("overwrite and append are both given: remove one of them")

        def identify(report: Progress) -> Mapping[str, str]:
            return source if source is not None else fingerprint(df, report)

        options = event_time, arrival_time, channels
        write = partial(write_with_spark, df, partition_by=keys)
        if append and os.path.exists(path):  # noqa: PTH110  nor where nobody may look: writing says so
            log = ReplayLog.open(path)
            check_like(log, df, event_time, arrival_time, keys)
            return _append(log, identify, write, notes, progress)
        return _reuse_or_write(path, identify, write, options, notes, overwrite, progress, keys)

    @staticmethod
    def from_arrow(
        table: pa.Table,
        path: str | Path,
        *,
        event_time: ColumnName,
        arrival_time: ColumnName,
        channels: int = 2,
        partition_by: ColumnName | Sequence[ColumnName] = (),
        notes: Sequence[str] = (),
        overwrite: bool = False,
        progress: bool | Progress = True,
    ) -> History:
        """Do the same as ``from_spark`` for a table in memory, without Spark; equal arrivals keep their order.

        Args:
            table: the records.
            path: folder of the history, on this machine's disk.
            event_time, arrival_time, channels, partition_by, notes, overwrite, progress: as for `from_spark`.

        Raises:
            HistoryError: a time column is unknown or holds no times, an arrival is null, or another thread writes it.
            SettingError: the table, the path or the notes have the wrong type.
        """
        table, path, notes = table_of(table, "table"), path_of(path, "path"), _sentences(notes)
        event_time, arrival_time = column_names((event_time, arrival_time), "History")
        check_channels(channels)
        keys = column_names(partition_by, "partition_by")
        for key in keys:
            if key not in table.column_names:
                raise HistoryError(unknown("partition_by column", key, table.column_names))

        def identify(report: Progress) -> Mapping[str, str]:
            return {"schema": table.schema.to_string(), "content": _content(table)}

        options = event_time, arrival_time, channels
        write = partial(write_log, table, partition_by=keys)
        return _reuse_or_write(path, identify, write, options, notes, overwrite, progress, keys)

    @staticmethod
    def from_kafka(
        source: KafkaSource,
        path: str | Path,
        *,
        arrival_time: ColumnName,
        event_time: ColumnName | None = None,
        channels: int = 2,
        partition_by: ColumnName | Sequence[ColumnName] = (),
        notes: Sequence[str] = (),
        overwrite: bool = False,
        progress: bool | Progress = True,
    ) -> History:
        """Read Kafka topics to their current end, and write the messages as a history.

        They are read into memory.

        Source: F1-13: the same program runs over the past.

        Args:
            source: with ``bounded=True``. A column with ``metadata={"sent": "timestamp"}`` holds arrival times.
            path: folder of the history, on this machine's disk.
            arrival_time: column of the arrival times.
            event_time: column of the event times; None: that of the source, or the arrival times.
            channels, partition_by, notes, overwrite, progress: as for `from_spark`.

        Raises:
            HistoryError: the source has no end, or as for `from_arrow`.
            SourceError: the topics cannot be read.

        Example::

            source = wb.KafkaSource("localhost:9092", "orders", schema, metadata={"sent": "timestamp"}, bounded=True)
            orders = wb.History.from_kafka(source, "orders.log", arrival_time="sent")
        """
        if event_time is None:
            event_time = source.event_time if source.event_time is not None else arrival_time
        table = read_to_its_end(source)
        more = {"channels": channels, "partition_by": partition_by, "notes": notes, "overwrite": overwrite}
        return History.from_arrow(
            table,
            path,
            event_time=event_time,
            arrival_time=arrival_time,
            progress=progress,
            **more,  # type: ignore[arg-type]
        )

    @staticmethod
    def from_recording(
        recording: str | Path,
        path: str | Path,
        *,
        event_time: ColumnName | None = None,
        channels: int = 2,
        partition_by: ColumnName | Sequence[ColumnName] = (),
        notes: Sequence[str] = (),
        overwrite: bool = False,
        progress: bool | Progress = True,
    ) -> History:
        """Create a history from a recording of `Stream.record_to`, so that a live feed can be replayed.

        The records are read into memory.

        Source: E10: a history is replayed at a multiple of its speed.

        Args:
            recording: the folder of the recording; the job can still be running.
            path: folder of the history, on this machine's disk.
            event_time: column of the event times; None: the times of arrival.
            channels, partition_by, notes, overwrite, progress: as for `from_spark`.

        Raises:
            HistoryError: nothing was recorded, or as for `from_arrow`.

        Example::

            wb.Stream.from_source(feed).record_to("feed").run("record", checkpoint_interval="10s")
            yesterday = wb.History.from_recording("feed", "feed.log")
            wb.Stream.replay(yesterday, speed="600x")
        """
        table = read_recording(path_of(recording, "recording"))
        more = {"channels": channels, "partition_by": partition_by, "notes": notes, "overwrite": overwrite}
        return History.from_arrow(
            table,
            path,
            event_time=ARRIVED if event_time is None else event_time,
            arrival_time=ARRIVED,
            progress=progress,
            **more,  # type: ignore[arg-type]
        )

    def to_spark(self, spark: SparkSession | None = None) -> DataFrame:
        """The records as a frame of Spark, which its executors read from the files of the channels.

        Args:
            spark: the session; None: that of this process.

        Returns:
            The columns of `schema`, in no order.

        Raises:
            HistoryError: a column of a type that Spark does not have, or there is no Java.

        Example:
            >>> history.to_spark().groupBy("origin").count().show()
        """
        return frame_of(self.log, session() if spark is None else spark)

    @property
    def path(self) -> Path:
        """Folder of the history."""
        return self.log.path

    @property
    def rows(self) -> int:
        """Number of records."""
        return self.log.rows

    @property
    def channels(self) -> int:
        """Number of parts that can be read in parallel."""
        return self.log.channels

    @property
    def schema(self) -> pa.Schema:
        """Columns of the records."""
        return self.log.schema

    @property
    def event_time(self) -> str:
        """Name of the event-time column."""
        return self.log.event_time

    @property
    def arrival_time(self) -> str:
        """Name of the arrival-time column."""
        return self.log.arrival_time

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the records."""
        return self.log.manifest.notes

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self._facts())
        lines = [f"  {name:<{width}}  {value}" for name, value in self._facts()]
        return "\n".join([f"History {self.path}", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
            for name, value in self._facts()
        )
        return f"<table><caption>History {escape(str(self.path))}</caption>{rows}</table>"

    def _facts(self) -> list[tuple[str, str]]:
        log = self.log
        events = [file.event_us for file in log.manifest.files if file.event_us is not None]
        keys = log.manifest.partitioned
        parts = "" if keys is None else f", partitioned by {', '.join(keys.by)}"
        facts = [("records", f"{log.rows:,} in {log.channels} channels{parts}")]
        if log.rows:
            facts.append((f"arrival ({log.arrival_time})", _range(log.start_us, log.end_us)))
        if events:
            first, last = min(first for first, _ in events), max(last for _, last in events)
            facts.append((f"event time ({log.event_time})", _range(first, last)))
        if log.rows_without_event_time:
            facts.append(("no event time", f"{log.rows_without_event_time:,} records"))
        facts.append(("columns", ", ".join(f"{column.name} {column.type}" for column in log.schema)))
        return facts + [("note", note) for note in self.notes]


def _sentences(notes: object) -> tuple[str, ...]:
    if isinstance(notes, str) or not isinstance(notes, Iterable):
        raise SettingError(f"notes is {as_given(notes)}: write a list of sentences, such as ['delays are in minutes']")
    return tuple(notes)


def _range(first_us: int, last_us: int) -> str:
    return f"{format_instant(first_us)} to {format_instant(last_us)}"


def fresh_history(path: str | Path, source: Mapping[str, str], options: tuple[str, str, int]) -> History | None:
    """The history at `path` if it was made from `source` with these options (time columns, channels), else None."""
    log, notice = _kept(path, _marks(source, options))
    return None if log is None else History(log, f"history {path}: {notice}")


def _reuse_or_write(
    path: str | Path,
    identify: Callable[[Progress], Mapping[str, str]],
    write: Callable[..., ReplayLog],
    options: tuple[str, str, int],
    notes: Sequence[str],
    overwrite: bool,
    progress: bool | Progress,
    keys: tuple[str, ...],
) -> History:
    overwrite = true_or_false(overwrite, "overwrite")
    if not callable(progress):
        progress = true_or_false(progress, "progress")
    with shown(progress) as report:
        marks = _marks(identify(report), options, keys)
        log, notice = (None, "rewritten, as requested") if overwrite else _kept(path, marks)
        if log is None:
            event_time, arrival_time, channels = options
            log = write(
                path,
                event_time=event_time,
                arrival_time=arrival_time,
                channels=channels,
                fingerprint=marks,
                notes=notes,
                progress=report,
            )
    notice = f"history {path}: {notice}"
    say(progress, notice)
    return History(log, notice)


def _append(
    log: ReplayLog,
    identify: Callable[[Progress], Mapping[str, str]],
    write: Callable[..., ReplayLog],
    notes: Sequence[str],
    progress: bool | Progress,
) -> History:
    path, rows = log.path, log.rows
    with shown(progress if callable(progress) else true_or_false(progress, "progress")) as report:
        mark = hashlib.sha256(json.dumps(sorted(identify(report).items())).encode()).hexdigest()
        if log.manifest.fingerprint.get(_APPENDED) == mark:
            notice = f"history {path}: the same records were appended before, unchanged"
        else:
            log = write(
                path,
                event_time=log.event_time,
                arrival_time=log.arrival_time,
                channels=log.channels,
                fingerprint={_APPENDED: mark},
                notes=notes,
                progress=report,
                onto=log,
            )
            notice = f"history {path}: {log.rows - rows:,} records appended"
    say(progress, notice)
    return History(log, notice)


def _kept(path: str | Path, marks: Mapping[str, str]) -> tuple[ReplayLog | None, str]:
    """The log at `path` if it matches `marks`, and a notice about it."""
    if not os.path.exists(path):  # noqa: PTH110  nor where nobody may look: writing says so
        return None, "written"
    try:
        log = ReplayLog.open(path)
    except HistoryError as error:
        return None, f"rewritten, because {error.message.split(':')[0]}"
    stale = difference(log.manifest.fingerprint, marks)
    if stale is not None:
        return None, f"rewritten, because {stale}"
    return log, f"unchanged since {log.manifest.created_at} UTC, reused"


def _marks(
    source: Mapping[str, str], options: tuple[str, str, int], partition_by: tuple[str, ...] = ()
) -> dict[str, str]:
    event_time, arrival_time, channels = options
    keys = f" partition_by={','.join(partition_by)}" if partition_by else ""
    return {**source, "options": f"event_time={event_time} arrival_time={arrival_time} channels={channels}{keys}"}


def _content(table: pa.Table) -> str:
    """A hash of a table's records."""
    digest = hashlib.sha256()
    for batch in table.combine_chunks().to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()
