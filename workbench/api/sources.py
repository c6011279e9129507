"""Where streams begin: the class methods of `Stream` that make one from a source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from workbench.api.building import located
from workbench.api.event_time import WatermarksLike, event_time_column, watermark_strategy
from workbench.arguments import as_given
from workbench.connectors.base import Source
from workbench.connectors.file_source import FileSource, FormatName
from workbench.connectors.generator_source import GeneratorSource
from workbench.connectors.hybrid_source import HybridSource
from workbench.connectors.line_parser import LineFormat
from workbench.connectors.replay_log import ReplayLog
from workbench.connectors.replay_source import ReplaySource
from workbench.connectors.socket_source import SocketSource
from workbench.connectors.table_source import TableSource
from workbench.durations import parse_duration, parse_speed
from workbench.errors import HistoryError, PlanError, WorkbenchError
from workbench.operators.dead_letters import OnError, keeps_dead_letters, side_schemas
from workbench.operators.user_function import SchemaLike, declared_schema
from workbench.operators.watermarks import EventTimeColumn
from workbench.origin import caller
from workbench.plan.logical import Node
from workbench.plan.watermark_strategy import WatermarkStrategy

if TYPE_CHECKING:
    from workbench.spark.history import History


class StreamSources:
    """The sources; `Stream` inherits them."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @classmethod
    def replay(
        cls,
        history: History | ReplayLog | str | Path,
        *,
        speed: str | float = "max",
        out_of_orderness: str = "0s",
        watermarks: WatermarksLike = None,
        idle_after: str | None = None,
        align: str | None = None,
        max_drift: str | None = None,
    ) -> Self:
        """Replay a history: its records come in the order, and at a multiple of the pace, in which they arrived.

        Source: F1-13: the past is replayed as if it were live; Flink's serving-speed factor.

        Args:
            history: a `History`, an open replay log, or the path of one (no JVM is needed).
            speed: seconds of history per second (``"600x"``), or ``"max"``; a running job can be tuned.
            out_of_orderness: how much later than a record with a later event time a record may come, such as ``"5s"``;
                the watermark stays that far behind the largest event time seen on each channel.
            watermarks, idle_after, align, max_drift: as for `from_table`, for each channel.

        Raises:
            SettingError: a bad speed or duration.
            HistoryError: no replay log at that path.

        Example:
            >>> import tempfile
            >>> table = pa.table({"t": [1, 2], "seen": [2, 3]})
            >>> path = tempfile.mkdtemp() + "/clicks.log"
            >>> history = wb.History.from_arrow(table, path, event_time="t", arrival_time="seen", progress=False)
            >>> wb.Stream.replay(history, speed="600x", out_of_orderness="1s").columns
            ['t', 'seen']
        """
        source = ReplaySource(_open_log(history), parse_speed(speed))
        strategy = watermark_strategy(source.event_time, out_of_orderness, watermarks, idle_after, align, max_drift)
        return cls._begun(source, strategy)

    @classmethod
    def from_table(
        cls,
        table: pa.Table,
        *,
        event_time: EventTimeColumn = None,
        out_of_orderness: str = "0s",
        watermarks: WatermarksLike = None,
        rate: float | None = None,
        idle_after: str | None = None,
        align: str | None = None,
        max_drift: str | None = None,
    ) -> Self:
        """Stream the rows of an Arrow table in order.

        Source: F2-5 for event time and watermarks; Flink's ``WatermarkStrategy``.

        Args:
            table: the rows.
            event_time: column that carries event time (timestamp, date or int64 microseconds), ``wb.INGESTION`` for
                the time at which a record is read, or None. A record whose event time is null goes on without one; one
                that is more than 2**61 microseconds (73,000 years) from 1970 fails the job, or is a dead letter where
                the source has ``on_error="dead_letter"``.
            out_of_orderness: how much later than a record with a later event time a record may come, such as ``"5s"``.
            watermarks: how event time is told instead: ``wb.monotonous()``, ``wb.punctuated(...)`` or a subclass of
                `wb.WatermarkGenerator`.
            rate: records per second over all subtasks; None for full speed.
            idle_after: a source without records for so long (of the clock) no longer holds the watermark back.
            align: name of a group of sources that wait for one another: one that is ahead of the others' event time
                by more than `max_drift` stops reading until they have come as far.
            max_drift: of event time, for example ``"30s"``.

        Raises:
            PlanError: no such event-time column, not of a time type, or none where the rest is about event time.
            SettingError: a rate or duration that cannot be.

        Example:
            >>> clicks = pa.table({"user": ["ann"], "at": pa.array([0], pa.timestamp("s"))})
            >>> wb.Stream.from_table(clicks, event_time="at", out_of_orderness="5s", rate=1000).columns
            ['user', 'at']
        """
        source = TableSource(table, event_time=event_time_column(event_time), rate=rate)
        strategy = watermark_strategy(event_time, out_of_orderness, watermarks, idle_after, align, max_drift)
        return cls._begun(source, strategy)

    @classmethod
    def from_generator(
        cls,
        function: Callable[[int, int], pa.RecordBatch],
        schema: SchemaLike,
        *,
        event_time: EventTimeColumn = None,
        out_of_orderness: str = "0s",
        watermarks: WatermarksLike = None,
        rate: float | None = None,
        limit: int | None = None,
        idle_after: str | None = None,
        align: str | None = None,
        max_drift: str | None = None,
    ) -> Self:
        """Stream what a function computes: ``function(first, n)`` gives the `n` rows that start with row `first`.

        Source: Flink's ``DataGeneratorSource``.

        Args:
            function: deterministic, so that a recovery reads the same rows again.
            schema: of the rows.
            event_time, out_of_orderness, watermarks, rate, idle_after, align, max_drift: as for `from_table`.
            limit: rows in all; None for a stream without end.

        Raises:
            PlanError: no such event-time column.
            SettingError: a rate or limit that is not above zero.
            RecordError: while it runs, when the function fails or returns other rows.

        Example:
            >>> def squares(first, n):
            ...     numbers = range(first, first + n)
            ...     return pa.record_batch({"n": list(numbers), "square": [i * i for i in numbers]})
            >>> stream = wb.Stream.from_generator(squares, {"n": pa.int64(), "square": pa.int64()}, limit=4)
            >>> job = stream.sink_to(wb.TableSink("squares")).run("from_generator")
            >>> job.wait("60s"), job.table()["square"].to_pylist()
            ('FINISHED', [0, 1, 4, 9])
        """
        source = GeneratorSource(
            function, _as_schema(schema), event_time=event_time_column(event_time), rate=rate, limit=limit
        )
        strategy = watermark_strategy(event_time, out_of_orderness, watermarks, idle_after, align, max_drift)
        return cls._begun(source, strategy)

    @classmethod
    def from_files(
        cls,
        paths: str | Path | Sequence[str | Path],
        schema: SchemaLike | None = None,
        *,
        format: FormatName | None = None,
        event_time: EventTimeColumn = None,
        out_of_orderness: str = "0s",
        watermarks: WatermarksLike = None,
        rate: float | None = None,
        idle_after: str | None = None,
        align: str | None = None,
        max_drift: str | None = None,
        on_error: OnError = "fail",
    ) -> Self:
        """Stream the rows of Parquet, CSV or JSON-lines files, in the order of the files' names.

        Subtasks share the files, and the row groups of Parquet files, in turn; each file or row group is a split with
        an event time of its own. A recovery goes on at the row where it was. In CSV an empty value, NA, NaN, NULL
        and their like are null, but in a column of text.

        Source: Flink's ``FileSource``.

        Args:
            paths: a file, a folder, a pattern such as ``"data/*.csv.gz"``, or several of them.
            schema: names and types of the columns to be read; None takes them from the first file.
            format: ``"parquet"``, ``"csv"``, ``"tsv"`` or ``"json"`` where the names do not tell.
            event_time, out_of_orderness, watermarks, rate, idle_after, align, max_drift: as for `from_table`.
            on_error: what becomes of a line of CSV or JSON that is no record of these columns: ``"fail"`` fails the
                task, ``"dead_letter"`` sends it to ``dead_letters()`` with its place. Values then have no line ends.

        Raises:
            SourceError: no such files, one that cannot be read, or files of different formats.
            PlanError: no such event-time column, or not of a time type.
            SettingError: a rate or duration that cannot be, or an unknown format.

        Example::

            trips = wb.Stream.from_files("trips/*.parquet", event_time="pickup", out_of_orderness="1h")
        """
        columns = None if schema is None else _as_schema(schema)
        source = FileSource(paths, columns, event_time_column(event_time), format, rate, on_error)
        strategy = watermark_strategy(event_time, out_of_orderness, watermarks, idle_after, align, max_drift)
        return cls._begun(source, strategy)

    @classmethod
    def from_socket(
        cls,
        host: str,
        port: int,
        schema: SchemaLike | None = None,
        *,
        format: LineFormat = "text",
        delimiter: str = "\n",
        retries: int | None = 0,
        retry_delay: str = "500ms",
        event_time: EventTimeColumn = None,
        out_of_orderness: str = "0s",
        watermarks: WatermarksLike = None,
        idle_after: str | None = None,
        align: str | None = None,
        max_drift: str | None = None,
        on_error: OnError = "fail",
    ) -> Self:
        """Stream what a TCP server sends, one record to a line, as ``nc -lk 9999`` does; one subtask reads it.

        Not resettable: what came between the last checkpoint and a failure is lost.

        Source: F2-8: recovery needs resettable sources, and a socket is none; Flink's ``socketTextStream``.

        Args:
            host, port: of the server; this side connects.
            schema: names and types of the columns, for ``"json"`` and ``"csv"``; text has one column, ``line``.
            format: ``"text"``, ``"json"`` (an object to a line) or ``"csv"`` (values, without a header).
            delimiter: ends a record.
            retries: how often in a row to connect again when the server refuses or ends the connection; None for
                ever. With 0 the stream ends when the server closes the connection.
            retry_delay: time before each of them, such as ``"500ms"``.
            event_time, out_of_orderness, watermarks, idle_after, align, max_drift: as for `from_table`.
            on_error: what becomes of a line that is no record of these columns; see `from_files`.

        Raises:
            SettingError: a port, format, delimiter, number or duration that cannot be.
            PlanError: a schema that the format does not take, or no such event-time column.
            SourceError: while running, when there is no connection, or a line that cannot be read.

        Example::

            lines = wb.Stream.from_socket("localhost", 9999, event_time=wb.INGESTION)
        """
        source = SocketSource(
            host,
            port,
            delimiter,
            format,
            None if schema is None else _as_schema(schema),
            event_time_column(event_time),
            retries,
            parse_duration(retry_delay, "retry_delay"),
            on_error,
        )
        strategy = watermark_strategy(event_time, out_of_orderness, watermarks, idle_after, align, max_drift)
        return cls._begun(source, strategy, parallelism=1)

    @classmethod
    def hybrid(cls, history: StreamSources, live: StreamSources) -> Self:
        """Read a history to its end, then go on with a live source: the same program catches up with the present.

        There is one line of watermarks through both. They tell event time in the same way; when a split is idle, and
        with whom the source is aligned, is as `live` says. Nothing is read of it before the history has ended.

        Source: F1-13: fast-forward; Flink's ``HybridSource``.

        Args:
            history: a stream just made from a bounded source: ``replay``, ``from_files``, ``from_table``, ...
            live: one just made from the source of the present, with the same columns.

        Raises:
            PlanError: one of them is more than a source, or they differ in columns or in how event time is told.

        Example::

            past = wb.Stream.from_files("clicks/*.parquet", event_time="t")
            now = wb.Stream.from_socket("localhost", 9999, past.schema, format="json", event_time="t")
            clicks = wb.Stream.hybrid(past, now)
        """
        origin = caller()
        for name, stream in (("history", history), ("live", live)):
            if not isinstance(stream, StreamSources):
                raise PlanError(f"{name} is {as_given(stream)}: give hybrid two streams just made", origin=origin)
            if stream._node.role != "source":
                raise PlanError(
                    f"{name} is a stream behind an operator: give hybrid the two sources, and the operators to what"
                    " comes out of it",
                    origin=origin,
                )
        past, present = history._node.watermarks, live._node.watermarks
        told = [None if strategy is None else strategy.watermarks for strategy in (past, present)]
        if told[0] != told[1]:
            ways = ["not at all" if policy is None else policy.describe() for policy in told]
            raise PlanError(
                f"the history tells event time {ways[0]} and the live source {ways[1]}: tell it alike in both",
                origin=origin,
            )
        try:
            source = HybridSource(_spec(history), _spec(live))
        except WorkbenchError as error:
            raise located(error, origin) from None
        return cls(Node(source, (), source.schema, side_schemas(source.on_error), present, origin))

    @classmethod
    def _begun(cls, source: Source, strategy: WatermarkStrategy, parallelism: int | None = None) -> Self:
        if not len(source.schema):
            raise PlanError(
                f"the {source.kind} has no columns, so it has no records: give it one at least", origin=caller()
            )
        tells = source.event_time is not None or strategy.by_ingestion
        origin = caller()
        try:
            strategy.watermarks.create(source.schema)
        except WorkbenchError as error:
            raise located(error, origin) from None
        letters = side_schemas(source.on_error) if keeps_dead_letters(source) else {}
        node = Node(source, (), source.schema, letters, strategy if tells else None, origin, parallelism=parallelism)
        return cls(node)


def _spec(stream: StreamSources) -> Source:
    return stream._node.spec  # type: ignore[return-value]  # of a source's node


def _as_schema(schema: SchemaLike) -> pa.Schema:
    return declared_schema(schema, "the source", caller())


def _open_log(history: History | ReplayLog | str | Path) -> ReplayLog:
    if isinstance(history, ReplayLog):
        return history
    if isinstance(history, str | Path):
        return ReplayLog.open(history)
    if not isinstance(log := getattr(history, "log", None), ReplayLog):
        raise HistoryError(
            f"history is {as_given(history)}: pass a wb.History, or the path of one; wb.History.from_arrow makes one of"
            " a table, and wb.Stream.from_table streams it as it is"
        )
    return log
