"""Streams: immutable descriptions; every method returns a new one, and nothing runs until a pipeline does.

The methods are thin: functions that know inputs and nodes but no streams (``source_nodes``, ``transforming``,
``joining``, ``event_time``) turn their arguments into a node of the logical graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from workbench.api.beginning.arrivals import arrived, with_arrival
from workbench.api.running.collecting import collected, printed
from workbench.api.running.pipeline import Pipeline, with_the_settings_of
from workbench.api.streams.building import check_column, expression, located, operator_node, sink_node
from workbench.api.streams.connected import ConnectedStreams
from workbench.api.streams.event_time import WatermarksLike, event_time_column, timestamped, watermark_strategy
from workbench.api.streams.flagged import flagged_rows
from workbench.api.streams.grouped import GroupedStream, distinct_rows, key_names, over_rows
from workbench.api.streams.joining import AnyHow, Between, joined, looked_up, split_up
from workbench.api.streams.keyed import KeyedStream
from workbench.api.streams.missing import Hinting, check_function, check_named
from workbench.api.streams.source_nodes import hybrid_input, opened_log, source_input, source_schema
from workbench.api.streams.state_ttl import with_ttl
from workbench.api.streams.transforming import (
    custom_partitioner,
    filtered,
    mapped,
    renamed,
    selected,
    with_equal_kinds,
    without,
)
from workbench.api.streams.windowed import LATE, WindowedStream
from workbench.arguments import a_table, as_given, true_or_false, whole_number
from workbench.connectors.contract.base import Sink, Source
from workbench.connectors.contract.plain_types import forgetting
from workbench.connectors.files.file_source import FileSource, FormatName
from workbench.connectors.files.json_times import TimeUnit
from workbench.connectors.files.line_parser import LineFormat
from workbench.connectors.letters.decoding import LetterFormat
from workbench.connectors.letters.source import DeadLetterSource
from workbench.connectors.live.generator_source import GeneratorSource
from workbench.connectors.live.socket_source import SocketSource
from workbench.connectors.parts.parquet_sink import ParquetSink
from workbench.connectors.replay.log import ReplayLog
from workbench.connectors.replay.source import ReplaySource
from workbench.connectors.tables.table_sink import TableSink
from workbench.connectors.tables.table_source import TableSource
from workbench.durations import Duration, parse_duration, parse_speed
from workbench.errors import PlanError, SettingError, unknown
from workbench.expressions import ColumnName, Expression, column_name, column_names
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.contract.base import OperatorSpec
from workbench.operators.event_time.watermarks import EventTime, EventTimeColumn
from workbench.operators.functions.dead_letters import TAG as DEAD_LETTERS
from workbench.operators.functions.dead_letters import OnError
from workbench.operators.functions.lookup_table import LookupTable
from workbench.operators.functions.user_function import SchemaLike
from workbench.operators.joins.columns import How, On, parse_on
from workbench.operators.stateless.map import FlatMap, Map
from workbench.operators.stateless.map_batches import MapBatches
from workbench.operators.stateless.union import Union
from workbench.operators.stateless.with_columns import WithColumns
from workbench.origin import Origin, caller
from workbench.plan.logical import ExchangeKind, Input, Node
from workbench.plan.partitioner import Partitioner
from workbench.runtime.settings.restart_strategies import no_restart
from workbench.windows import Evictor, WindowAssigner
from workbench.windows.schedule import Schedule, TimeKind
from workbench.windows.trigger import Trigger

if TYPE_CHECKING:
    from workbench.api.job.job import Job
    from workbench.spark.history import History


class Stream(Hinting):
    """A stream of records with named, typed columns.

    Streams are made by the class methods (``replay``, ``from_table``, ``from_files``, ``from_socket``, ...) and by the
    operators of other streams. A stream stores how it was made and nothing else.

    Source: F1-1: streams form the logical graph; Flink's ``DataStream``.

    Example:
        >>> table = pa.table({"n": [1, 2, 3]})
        >>> Stream.from_table(table).filter("n > 1").columns
        ['n']
    """

    def __init__(self, end: Input, hidden: tuple[str, ...] = ()) -> None:
        self._end = end
        self._hidden = hidden  # columns of its input that were computed for aggregates and nothing else

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns.

        Example:
            >>> wb.Stream.from_table(pa.table({"n": [1]})).schema.field("n").type
            DataType(int64)
        """
        return forgetting(self._end.schema)

    @property
    def columns(self) -> list[str]:
        """Names of the columns.

        Example:
            >>> wb.Stream.from_table(pa.table({"a": [1], "b": [2]})).columns
            ['a', 'b']
        """
        return list(self.schema.names)

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        return f"Stream({fields}); nothing runs until sink_to(...).run(...)"

    # sources ------------------------------------------------------------------------------------------------------

    @classmethod
    def replay(
        cls,
        history: History | ReplayLog | str | Path,
        *,
        speed: str | float = "max",
        out_of_orderness: Duration = "0s",
        watermarks: WatermarksLike = None,
        idle_after: Duration | None = None,
        align: str | bool | None = True,
        max_drift: Duration | None = None,
    ) -> Stream:
        """Replay a history: its records come in the order, and at a multiple of the pace, in which they arrived.

        With parallelism 1, all records keep the order of arrival; with more, the records of a key keep it if the
        history was written with ``partition_by`` of columns of that key. A run whose result needs an order that is not
        kept says so.

        Source: F1-13: the past is replayed as if it were live; Flink's serving-speed factor.

        Args:
            history: a `History`, an open replay log, or the path of one (no JVM is needed).
            speed: seconds of history per second (``"600x"``), or ``"max"``; it can be tuned while the job runs.
            out_of_orderness: how far a record's event time may be behind the largest one before it, such as ``"5s"``;
                the watermark stays this far behind the largest event time that each subtask has read.
            watermarks, idle_after, align, max_drift: as for `from_table`, for the channels of each subtask together.

        Raises:
            SettingError: an invalid speed or duration.
            HistoryError: no replay log at that path.

        Example:
            >>> import tempfile
            >>> table = pa.table({"t": [1, 2], "seen": [2, 3]})
            >>> path = tempfile.mkdtemp() + "/clicks.log"
            >>> history = wb.History.from_arrow(table, path, event_time="t", arrival_time="seen", progress=False)
            >>> wb.Stream.replay(history, speed="600x", out_of_orderness="1s").columns
            ['t', 'seen']
        """
        source = ReplaySource(opened_log(history), parse_speed(speed))
        return cls(source_input(source, source.event_time, out_of_orderness, watermarks, idle_after, align, max_drift))

    @classmethod
    def from_table(
        cls,
        table: pa.Table,
        *,
        event_time: EventTimeColumn = None,
        out_of_orderness: Duration = "0s",
        watermarks: WatermarksLike = None,
        rate: float | None = None,
        idle_after: Duration | None = None,
        align: str | bool | None = True,
        max_drift: Duration | None = None,
    ) -> Stream:
        """Stream the rows of an Arrow table in order.

        Source: F2-5 for event time and watermarks; Flink's ``WatermarkStrategy``.

        Args:
            table: the rows.
            event_time: column that carries event time (timestamp, date or int64 microseconds),
                ``wb.watermarks.INGESTION`` for the time at which a record is read, or None. A record whose event time
                is null has none; one that is more than 2**61 microseconds (73,000 years) from 1970 fails the job, or
                becomes a dead letter if the source has ``on_error="dead_letter"``.
            out_of_orderness: how far a record's event time may be behind the largest one before it, such as ``"5s"``.
            watermarks: a watermark strategy instead: ``wb.watermarks.monotonous()``, ``wb.watermarks.punctuated(...)``
                or a subclass of `wb.watermarks.WatermarkGenerator`.
            rate: records per second over all subtasks; None for full speed.
            idle_after: a source without records for this long (of the clock) stops holding the watermark back.
            align: True: subtasks of one source, and sources whose records meet before a window, join or another
                event-time operator, wait for one another; None or False: this source waits for no other. The name of a
                group instead: one of its sources that is ahead of the others' event time by more than `max_drift` stops
                reading until they have caught up.
            max_drift: of event time, for example ``"30s"``; None: about sixteen reads, or, if event time is assigned
                again after the sources have met, a 25th of that ``out_of_orderness``.

        Raises:
            PlanError: no such event-time column, not of a time type, or arguments about event time without one.
            SettingError: an invalid rate or duration.

        Example:
            >>> clicks = pa.table({"user": ["ann"], "at": pa.array([0], pa.timestamp("s"))})
            >>> wb.Stream.from_table(clicks, event_time="at", out_of_orderness="5s", rate=1000).columns
            ['user', 'at']
        """
        source = TableSource(table, event_time=event_time_column(event_time), rate=rate)
        return cls(source_input(source, event_time, out_of_orderness, watermarks, idle_after, align, max_drift))

    @classmethod
    def from_generator(
        cls,
        function: Callable[[int, int], pa.RecordBatch],
        schema: SchemaLike,
        *,
        event_time: EventTimeColumn = None,
        out_of_orderness: Duration = "0s",
        watermarks: WatermarksLike = None,
        rate: float | None = None,
        limit: int | None = None,
        idle_after: Duration | None = None,
        align: str | bool | None = True,
        max_drift: Duration | None = None,
    ) -> Stream:
        """Stream computed rows: ``function(first, n)`` returns the `n` rows that start with row `first`.

        Source: Flink's ``DataGeneratorSource``.

        Args:
            function: deterministic, so that a recovery reads the same rows again.
            schema: of the rows.
            event_time, out_of_orderness, watermarks, rate, idle_after, align, max_drift: as for `from_table`.
            limit: total number of rows; None for an unbounded stream.

        Raises:
            PlanError: no such event-time column.
            SettingError: a rate or limit that is not above zero.
            RecordError: while running, when the function fails or returns other rows.

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
            function, source_schema(schema), event_time=event_time_column(event_time), rate=rate, limit=limit
        )
        return cls(source_input(source, event_time, out_of_orderness, watermarks, idle_after, align, max_drift))

    @classmethod
    def from_files(
        cls,
        paths: str | Path | Sequence[str | Path],
        schema: SchemaLike | None = None,
        *,
        format: FormatName | None = None,
        event_time: EventTimeColumn = None,
        out_of_orderness: Duration = "0s",
        watermarks: WatermarksLike = None,
        rate: float | None = None,
        idle_after: Duration | None = None,
        align: str | bool | None = True,
        max_drift: Duration | None = None,
        on_error: OnError = "fail",
        unit: TimeUnit | None = None,
    ) -> Stream:
        """Stream the rows of Parquet, CSV or JSON-lines files, in the order of the files' names.

        Subtasks share the files, and the row groups of Parquet files, in turn; each file or row group is a split with
        its own event time. A recovery resumes at the row that was reached. In CSV an empty value, NA, NULL and similar
        ones are null, except in a column of text. A file that was cut, that counts other rows than it holds, or that
        changes while it is read fails the task.

        Source: Flink's ``FileSource``.

        Args:
            paths: a file, a folder, a pattern such as ``"data/*.csv.gz"``, or several of them.
            schema: names and types of the columns to read; None takes them from the first file. A value that a
                column cannot hold is refused; columns of floats round.
            format: ``"parquet"``, ``"csv"``, ``"tsv"`` or ``"json"`` if the names do not show it.
            event_time, out_of_orderness, watermarks, rate, idle_after, align, max_drift: as for `from_table`.
            on_error: what happens to a line of CSV or JSON that is not a record of these columns: ``"fail"`` fails the
                task, ``"dead_letter"`` sends it to ``dead_letters()`` with its position. A quoted value may have line
                ends; a quote that no later line closes costs its own line.
            unit: what a number in a column of timestamps counts since 1970, in JSON: ``"s"``, ``"ms"``, ``"us"`` or
                ``"ns"``. The conversion is exact; without it such numbers are refused.

        Raises:
            SourceError: no such files, one that cannot be read, files of different formats, or integers whose column
                would be guessed to be doubles, which change them.
            PlanError: no such event-time column, or not of a time type; two columns of one name.
            SettingError: an invalid rate or duration, an unknown format or unit.

        Example::

            trips = wb.Stream.from_files("trips/*.parquet", event_time="pickup", out_of_orderness="1h")
        """
        columns = None if schema is None else source_schema(schema)
        source = FileSource(paths, columns, event_time_column(event_time), format, rate, on_error, unit)
        return cls(source_input(source, event_time, out_of_orderness, watermarks, idle_after, align, max_drift))

    @classmethod
    def from_dead_letters(
        cls,
        letters: str | Path | Sequence[str | Path] | pa.Table,
        columns: SchemaLike | None = None,
        *,
        format: LetterFormat | None = None,
        avro_schema: str | None = None,
        metadata: Mapping[str, str] | None = None,
        unit: TimeUnit | None = None,
        operator: str | None = None,
        event_time: EventTimeColumn = None,
        out_of_orderness: Duration = "0s",
        watermarks: WatermarksLike = None,
        idle_after: Duration | None = None,
        align: str | bool | None = True,
        max_drift: Duration | None = None,
        on_error: OnError = "fail",
    ) -> Stream:
        """Stream the records of dead letters once more, for a pipeline that was mended: see `dead_letters`.

        The bytes of messages and lines are decoded with these columns. A record that failed as a row of an operator
        comes back as that row; without `columns` it has all of its columns. A letter whose bytes were cut is none of
        these records: read it from its source again.

        Source: the dead-letter queues of messaging systems, which can be redriven; Flink's ``FileSource``.

        Args:
            letters: Parquet, CSV or JSON-lines files that a sink wrote of `dead_letters`, as in `from_files` a file, a
                folder, a pattern or several of them; or a table, such as ``job.dead_letters()``.
            columns: names and types of the columns. CSV has no header here: all columns, in the order of the file.
                None: those of the first row.
            format: of the bytes: ``"json"``, ``"csv"``, ``"tsv"``, ``"avro"``, ``"arrow"``, ``"raw"``, ``"fields"``
                (of an entry of Redis) or ``"row"``; None: each letter says so in its column ``format``.
            avro_schema: the writer's schema, as JSON, for ``"avro"``.
            metadata: columns that hold a column of the dead letter instead, with its name, such as
                ``{"at_offset": "offset"}``. Key and timestamp of a message are not kept.
            unit: as for `from_files`.
            operator: only the letters of this operator or source; None: all.
            event_time, out_of_orderness, watermarks, idle_after, align, max_drift: as for `from_table`.
            on_error: what happens to a letter that is not a record of these columns: ``"fail"`` fails the task,
                ``"dead_letter"`` makes a dead letter of the same bytes and position again.

        Raises:
            SourceError: no such files, or they are no dead letters.
            PlanError: the table has no dead letters, the format does not support a column, or no such event-time
                column.
            SettingError: an unknown format, or an Avro schema that is missing or invalid.

        Example:
            >>> texts = wb.Stream.from_table(pa.table({"n": ["1", "2 km"]}))
            >>> kinds = {"n": pa.int64()}
            >>> numbers = texts.map(lambda row: {"n": int(row["n"])}, kinds, on_error="dead_letter")
            >>> job = numbers.sink_to(wb.DiscardSink()).run("first")
            >>> job.wait("60s"), job.dead_letters().num_rows
            ('FINISHED', 1)
            >>> again = wb.Stream.from_dead_letters(job.dead_letters())
            >>> again.map(lambda row: {"n": int(row["n"].removesuffix(" km"))}, kinds).collect().to_pylist()
            [{'n': 2}]
        """
        schema = None if columns is None else source_schema(columns)
        time = event_time_column(event_time)
        source = DeadLetterSource(letters, schema, format, avro_schema, unit, metadata, operator, time, on_error)
        return cls(source_input(source, event_time, out_of_orderness, watermarks, idle_after, align, max_drift))

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
        retry_delay: Duration = "500ms",
        event_time: EventTimeColumn = None,
        out_of_orderness: Duration = "0s",
        watermarks: WatermarksLike = None,
        idle_after: Duration | None = None,
        align: str | bool | None = True,
        max_drift: Duration | None = None,
        on_error: OnError = "fail",
        unit: TimeUnit | None = None,
    ) -> Stream:
        """Stream records from a TCP server, one per line, as ``nc -lk 9999`` sends them; one subtask reads it.

        Not resettable: records between the last checkpoint and a failure are lost.

        Source: F2-8: recovery needs resettable sources, and a socket is not; Flink's ``socketTextStream``.

        Args:
            host, port: of the server; this side connects.
            schema: names and types of the columns, for ``"json"`` and ``"csv"``; text has one column, ``line``.
            format: ``"text"``, ``"json"`` (an object per line) or ``"csv"`` (values, without a header).
            delimiter: ends a record.
            retries: how often in a row to reconnect when the server refuses or ends the connection; None for no limit.
                With 0 the stream ends when the server closes the connection.
            retry_delay: time before each retry, such as ``"500ms"``.
            event_time, out_of_orderness, watermarks, idle_after, align, max_drift: as for `from_table`.
            on_error, unit: as for `from_files`.

        Raises:
            SettingError: an invalid port, format, delimiter, number or duration.
            PlanError: a schema that the format does not accept, or no such event-time column.
            SourceError: while running, if there is no connection, or a line cannot be parsed.

        Example::

            lines = wb.Stream.from_socket("localhost", 9999, event_time=wb.watermarks.INGESTION)
        """
        source = SocketSource(
            host,
            port,
            delimiter,
            format,
            None if schema is None else source_schema(schema),
            event_time_column(event_time),
            retries,
            parse_duration(retry_delay, "retry_delay"),
            on_error,
            unit,
        )
        return cls(
            source_input(source, event_time, out_of_orderness, watermarks, idle_after, align, max_drift, parallelism=1)
        )

    @classmethod
    def from_source(
        cls,
        source: Source,
        *,
        out_of_orderness: Duration = "0s",
        watermarks: WatermarksLike = None,
        idle_after: Duration | None = None,
        align: str | bool | None = True,
        max_drift: Duration | None = None,
    ) -> Stream:
        """Stream the records of a connector, for example your own.

        A source is a subclass of ``workbench.connectors.contract.base.Source``; ``workbench.lab.connectors`` tests
        it, and docs/connectors.md shows one.

        Source: Flink's ``fromSource``.

        Args:
            source: describes what is read; it names its columns and its event-time column.
            out_of_orderness, watermarks, idle_after, align, max_drift: as for `from_table`, for each split.

        Raises:
            PlanError: not a source, or it has no columns.
            SettingError: an invalid duration.

        Example:
            >>> from workbench.connectors.tables.table_source import TableSource
            >>> wb.Stream.from_source(TableSource(pa.table({"n": [1]}))).columns
            ['n']
        """
        event_time = getattr(source, "event_time", None)
        return cls(source_input(source, event_time, out_of_orderness, watermarks, idle_after, align, max_drift))

    @classmethod
    def hybrid(cls, history: Stream, live: Stream) -> Stream:
        """Read a history to its end, then continue with a live source: the same program catches up with the present.

        Watermarks continue from one to the other. Both derive event time in the same way; idleness and alignment are
        those of `live`. Nothing is read of it before the history has ended.

        Source: F1-13: fast-forward; Flink's ``HybridSource``.

        Args:
            history: a stream made directly from a bounded source: ``replay``, ``from_files``, ``from_table``, ...
            live: a stream made directly from a live source, with the same columns.

        Raises:
            PlanError: one of them is more than a source, or they differ in columns or in their watermarks.

        Example::

            past = wb.Stream.from_files("clicks/*.parquet", event_time="t")
            now = wb.Stream.from_socket("localhost", 9999, past.schema, format="json", event_time="t")
            clicks = wb.Stream.hybrid(past, now)
        """
        return cls(hybrid_input(getattr(history, "_end", history), getattr(live, "_end", live)))

    # records to records -------------------------------------------------------------------------------------------

    def filter(
        self,
        *conditions: str | Expression | Callable[..., bool | None],
        columns: ColumnName | Sequence[ColumnName] | None = None,
        compiled: bool = False,
        on_error: OnError = "fail",
    ) -> Stream:
        """Keep the records for which all conditions hold: ``"dep_delay > 15"`` or ``col("dep_delay") > 15``.

        A record for which a condition is null is dropped, as in SQL.

        Source: E1 (grep); Flink's ``filter``.

        Args:
            conditions: expressions, or one Python function, which returns True, False or None. It takes the record (a
                dict), or the values of `columns`.
            columns: the function's arguments instead of the record; see `map`.
            compiled: compile the function to machine code; see `map`.
            on_error: what happens to a record for which the function fails; see `map`. Expressions yield null instead.

        Raises:
            ExpressionError: an unknown column, or no condition.
            PlanError: no condition, or a function that takes other arguments or cannot be compiled.
            RecordError: while running, when a function fails; with the record.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": [1, None, 3]}))
            >>> job = numbers.filter("n > 1").sink_to(wb.TableSink("large")).run("filter")
            >>> job.wait("60s"), job.table()["n"].to_pylist()
            ('FINISHED', [3])
            >>> numbers.filter(lambda n: n is not None and n > 1, columns="n").collect()["n"].to_pylist()
            [3]
        """
        return self._made(filtered(self._end, conditions, columns, compiled, on_error, caller()))

    def with_columns(self, *unnamed: object, **columns: str | Expression | float | bool | None) -> Stream:
        """Add or replace columns: ``with_columns(late=col("dep_delay") > 15)``.

        Source: Spark's ``withColumns``.

        Args:
            unnamed: refused with a sentence, because each column needs a name.
            columns: by name: an expression, SQL text or a constant number; None is a null. Existing columns keep their
                place.

        Raises:
            ExpressionError: an unknown column or a type that does not fit.

        Example:
            >>> flights = wb.Stream.from_table(pa.table({"dep_delay": [20, 3]}))
            >>> flights.with_columns(late=col("dep_delay") > 15, hours="dep_delay / 60").columns
            ['dep_delay', 'late', 'hours']
        """
        origin = caller()
        check_named(unnamed, "with_columns", "with_columns(late='dep_delay > 15')", origin)
        named = tuple((name, expression(value, origin)) for name, value in columns.items())
        return self._followed_by(WithColumns(named, origin), origin)

    def select(self, *columns: ColumnName, **named: str | Expression) -> Stream:
        """Keep these columns, in this order, followed by computed ones.

        Source: Spark's ``select``.

        Args:
            columns: columns to keep, as ``"origin"`` or ``col("origin")``, and expressions, which are named by
                ``.alias(...)`` or by their text.
            named: computed columns by name, as expressions or SQL text.

        Raises:
            ExpressionError: an unknown column, with the nearest name, or duplicate names.

        Example:
            >>> flights = wb.Stream.from_table(pa.table({"origin": ["JFK"], "dep_delay": [20]}))
            >>> flights.select("origin", hours="dep_delay / 60").columns
            ['origin', 'hours']
            >>> flights.select(col("origin"), (col("dep_delay") / 60).alias("hours")).columns
            ['origin', 'hours']
        """
        return self._made(selected(self._end, columns, named, caller()))

    def drop(self, *columns: ColumnName) -> Stream:
        """Keep all columns except these.

        Source: Spark's ``drop``.

        Args:
            columns: columns to leave out.

        Raises:
            ExpressionError: an unknown column, with the nearest name.
            PlanError: no column would be left.

        Example:
            >>> wb.Stream.from_table(pa.table({"a": [1], "b": [2]})).drop("b").columns
            ['a']
        """
        return self._made(without(self._end, column_names(columns, "drop"), caller()))

    def rename(self, names: Mapping[ColumnName, str] | Mapping[str, str]) -> Stream:
        """Rename columns; they keep their places.

        Source: Polars' ``rename``; Spark's ``withColumnsRenamed``.

        Args:
            names: new names by the old ones.

        Raises:
            ExpressionError: an unknown column, with the nearest name.
            PlanError: two columns would have one name.

        Example:
            >>> wb.Stream.from_table(pa.table({"a": [1], "b": [2]})).rename({"a": "n"}).columns
            ['n', 'b']
        """
        return self._made(renamed(self._end, names, caller()))

    def map(
        self,
        function: Callable[..., Any],
        schema: SchemaLike | None = None,
        *,
        columns: ColumnName | Sequence[ColumnName] | None = None,
        keep: ColumnName | Sequence[ColumnName] = (),
        compiled: bool = False,
        on_error: OnError = "fail",
    ) -> Stream:
        """Convert each record to another with a Python function.

        The function gets the record and returns a record, each a dict. With `columns` it gets the values of these
        columns as its arguments, in that order, and returns the value of the declared column, or a tuple with a value
        for each. In both, a null is None, and an instant is a ``datetime`` with the zone of its column, if it has one.

        Source: F1-4; Flink's ``map``.

        Args:
            function: of the record, or of the values of `columns`.
            schema: of its results, a pyarrow.Schema or a dict of Arrow types by name; None means that of the input.
            columns: the function's arguments instead of the record: ``"minutes"``, ``["distance", "minutes"]``.
            keep: input columns that come first in the output, unchanged.
            compiled: compile a function of columns to machine code. It takes and returns integers, floats and booleans,
                computes with int64 and float64, and integers beyond int64 wrap around. Instants and durations are whole
                microseconds (since 1970). It is not called if one of its columns is null: the result is null. External
                values that it reads, such as a global number, are those at the time of compilation.
            on_error: what happens to a record for which the function raises or returns something else: ``"fail"`` fails
                the task, ``"dead_letter"`` sends it to ``dead_letters()`` and continues with the next. A compiled
                function is then called again for some of the records of the same batch.

        Raises:
            PlanError: the function takes other arguments, or cannot be compiled; with its line and the reason.
            RecordError: while running, for such a record, unless it becomes a dead letter.

        Example:
            >>> def fare(distance, minutes):
            ...     return distance * 1.2 + minutes * 0.3
            >>> trips = wb.Stream.from_table(pa.table({"cab": ["a"], "distance": [8.5], "minutes": [20]}))
            >>> money = {"fare": pa.float64()}
            >>> trips.map(fare, money, columns=["distance", "minutes"], keep="cab", compiled=True).columns
            ['cab', 'fare']
            >>> trips.map(lambda record: {"fare": fare(record["distance"], record["minutes"])}, money).columns
            ['fare']
        """
        return self._made(mapped(Map, self._end, function, schema, columns, keep, compiled, on_error, caller()))

    def flat_map(
        self,
        function: Callable[..., Iterable[Any]],
        schema: SchemaLike,
        *,
        columns: ColumnName | Sequence[ColumnName] | None = None,
        keep: ColumnName | Sequence[ColumnName] = (),
        on_error: OnError = "fail",
    ) -> Stream:
        """Convert each record to any number of records with a Python function.

        Source: F1-4; Flink's ``flatMap``.

        Args:
            function: of the record, or of the values of `columns`, as for `map`. It returns any number of the results
                of a `map` function: a list or a generator, possibly empty. Each has the event time of the record.
            schema: of its results, a pyarrow.Schema or a dict of Arrow types by name.
            columns, keep: as for `map`.
            on_error: what happens to a record for which it fails; see `map`. None of its results are kept.

        Raises:
            PlanError: no valid schema, or a function that takes other arguments.
            RecordError: while running, when the function fails or returns something else; with the record.

        Example:
            >>> lines = wb.Stream.from_table(pa.table({"line": ["a b"]}))
            >>> schema = {"word": pa.string()}
            >>> words = lines.flat_map(lambda record: [{"word": word} for word in record["line"].split()], schema)
            >>> job = words.sink_to(wb.TableSink("words")).run("flat_map")
            >>> job.wait("60s"), job.table()["word"].to_pylist()
            ('FINISHED', ['a', 'b'])
            >>> lines.flat_map(str.split, schema, columns="line").collect()["word"].to_pylist()
            ['a', 'b']
        """
        return self._made(mapped(FlatMap, self._end, function, schema, columns, keep, False, on_error, caller()))

    def map_batches(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        schema: SchemaLike | None = None,
        *,
        event_time: ColumnName | None = None,
        on_error: OnError = "fail",
    ) -> Stream:
        """Convert each Arrow batch to another.

        Source: F1-4; Spark's ``mapInArrow``.

        Args:
            function: from a `pyarrow.RecordBatch` (n rows) to another; it must not depend on how records are cut into
                batches.
            schema: of its results, a pyarrow.Schema or a dict of Arrow types by name; None: that of the input.
            event_time: column of the result that holds the event times, required if rows are added, dropped or
                reordered; None: row i keeps the event time of row i.
            on_error: what happens to records for which it fails; see `map`. It is called again for halves of the batch,
                so that good records are not lost with bad ones.

        Raises:
            PlanError: no valid schema, or no such event-time column.
            RecordError: while running, when the function fails, or returns another schema or number of rows.

        Example:
            >>> def doubled(batch):
            ...     return pa.RecordBatch.from_arrays([pa.compute.multiply(batch.column("n"), 2)], names=["n"])
            >>> wb.Stream.from_table(pa.table({"n": [1, 2]})).map_batches(doubled).columns
            ['n']
        """
        origin = caller()
        times = None if event_time is None else column_name(event_time, "event_time")
        check_function(function, "map_batches", origin)
        return self._followed_by(MapBatches(function, schema, times, origin, on_error), origin)

    def union(self, *others: Stream) -> Stream:
        """Merge this stream with others that have the same columns.

        Records of one stream keep their order; the order between streams is not specified. Event time is that of the
        slowest stream (F2-6).

        Source: F1-4; Flink's ``union``.

        Args:
            others: streams with the same columns.

        Raises:
            PlanError: the streams' columns differ.

        Example:
            >>> here, there = (wb.Stream.from_table(pa.table({"n": [n]})) for n in (1, 2))
            >>> job = here.union(there).sink_to(wb.TableSink("both")).run("union")
            >>> job.wait("60s"), sorted(job.table()["n"].to_pylist())
            ('FINISHED', [1, 2])
        """
        origin = caller()
        for other in others:
            if not isinstance(other, Stream):
                raise PlanError(f"union got {as_given(other)}, which is not a stream: pass streams", origin=origin)
        ends = with_equal_kinds([self._end, *(other._end for other in others)], origin)
        return self._made(operator_node(Union(origin), ends, origin))

    # keys and windows ---------------------------------------------------------------------------------------------

    def key_by(self, *keys: ColumnName) -> KeyedStream:
        """Partition by key: all records with equal keys go to one subtask.

        Source: F1-3; Flink's ``keyBy``. Keys belong to key groups by a stable hash; `max_parallelism` of `Pipeline.run`
        is their number.

        Args:
            keys: columns, as ``"origin"`` or ``col("origin")``; records with equal values in all of them have the same
                key, and null is a value like any other.

        Raises:
            PlanError: no key.
            ExpressionError: an unknown column, with the nearest name, or a computed expression.

        Example:
            >>> flights = wb.Stream.from_table(pa.table({"origin": ["JFK", "LGA", "JFK"]}))
            >>> counts = flights.key_by("origin").aggregate(flights=wb.count())
            >>> job = counts.sink_to(wb.TableSink("counts", upsert_key="origin")).run("key_by", parallelism=2)
            >>> job.wait("60s"), sorted(job.table()["flights"].to_pylist())
            ('FINISHED', [1, 2])
        """
        origin = caller()
        if not keys:
            raise PlanError("key_by needs at least one column, for example key_by('origin')", origin=origin)
        names = column_names(keys, "key_by")
        for name in names:
            check_column(name, self.schema, origin)
        return KeyedStream(self, names)

    def group_by(self, *keys: ColumnName) -> GroupedStream:
        """Groups whose aggregates are updated with every batch of records; see `GroupedStream`.

        Source: SQL's ``GROUP BY`` on a stream; Flink's ``Table.group_by``.

        Args:
            keys: column names, as ``"origin"`` or ``col("origin")``; none: all records are one group.

        Raises:
            PlanError: a column that does not exist or cannot be a key.

        Example:
            >>> rides = wb.Stream.from_table(pa.table({"city": ["Rome", "Oslo", "Rome"]}))
            >>> sorted(rides.group_by("city").aggregate(n=wb.count()).collect()["n"].to_pylist())
            [1, 2]
        """
        return GroupedStream(self, key_names(keys, "group_by", self._end.schema, caller()))

    def distinct(self, *columns: ColumnName) -> Stream:
        """Each combination of values once, as soon as it comes for the first time.

        It keeps all of them for ever.

        Source: SQL's ``SELECT DISTINCT``.

        Args:
            columns: those whose values are compared and emitted; none: all.

        Raises:
            PlanError: a column that does not exist or cannot be a key.

        Example:
            >>> rides = wb.Stream.from_table(pa.table({"city": ["Rome", "Oslo", "Rome"], "n": [1, 2, 3]}))
            >>> rides.distinct("city").collect()["city"].to_pylist()
            ['Rome', 'Oslo']
        """
        return self._made(distinct_rows(self._end, columns, caller()))

    def as_changelog(
        self,
        key: ColumnName | Sequence[ColumnName],
        *,
        op: ColumnName = "op",
        kinds: Mapping[object, Literal["+I", "-U", "+U", "-D"]] | None = None,
        on_error: OnError = "fail",
    ) -> Stream:
        """The table that rows with flags describe, as a changelog: change data capture.

        A row that adds or replaces becomes the row of its key, whether there was one or not; a row that removes takes
        back the row that the key has, whatever its other columns hold. So sinks, groups and joins behind it see the
        table, and rows that arrive twice change nothing. It keeps the row of each key for ever (see `state_ttl`).
        Rows of one key have to arrive in their order; the result has no column of flags.

        Source: Flink's ``ChangelogNormalize``; Debezium's and Flink's flags.

        Args:
            key: the columns that identify a row of the table: one name, or several.
            op: the column of the flags.
            kinds: the meaning of each flag, Flink's ``RowKind``: ``{"N": "+I", "X": "-D"}``. None: in any case, ``+I``,
                ``I``, ``C``, ``R`` and ``INSERT``, ``CREATE``, ``READ`` add a row, ``+U``, ``U``, ``UPDATE`` and
                ``UPDATE_AFTER`` replace it, ``-U`` and ``UPDATE_BEFORE`` take it back before that, and ``-D``, ``D``
                and ``DELETE`` remove it.
            on_error: what happens to a row with any other flag: ``"fail"``, or ``"dead_letter"`` (see `dead_letters`).

        Raises:
            PlanError: an unknown column, one that cannot be a key, a changelog, or flags of another type.
            RecordError: while running, a row with another flag.

        Example:
            >>> rows = pa.table({"op": ["I", "I", "U", "D"], "id": [1, 2, 1, 2], "name": ["a", "b", "c", None]})
            >>> wb.Stream.from_table(rows).as_changelog("id").collect().to_pylist()
            [{'id': 1, 'name': 'c'}]
        """
        return self._made(flagged_rows(self._end, key, op, kinds, on_error, caller()))

    def over(
        self,
        keys: Sequence[ColumnName],
        unit: Literal["rows", "range"],
        preceding: int | Duration | None,
        aggregates: Mapping[str, Aggregation],
        order: ColumnName | None = None,
    ) -> Stream:
        """Each record with aggregates of the records of its key before it, in the order of event time.

        A record is emitted when the watermark has passed it; late ones are dropped and counted. Rows of a changelog are
        ordered by a column, and replaced whenever a row before them changes; all of them are kept.

        Source: SQL's ``OVER (PARTITION BY ... ORDER BY ... ROWS or RANGE ... PRECEDING)``.

        Args:
            keys: the key columns; none: all records have one key.
            unit: ``"rows"``: `preceding` counts records; ``"range"``: it is a duration, such as ``"1h"``, and records
                with the same time count as well.
            preceding: how far back a record sees, itself not counted; None: to the first record.
            aggregates: by the name of the column: ``{"mean": wb.mean("price")}``.
            order: of a changelog: the column that orders its rows.

        Raises:
            PlanError: a column that cannot be a key or be aggregated, or a taken name; a duration, or no order, with a
                changelog.
            SettingError: an invalid number or duration.

        Example:
            >>> times = pa.array([0, 1, 2], pa.timestamp("us"))
            >>> prices = wb.Stream.from_table(pa.table({"t": times, "price": [4, 8, 6]}), event_time="t")
            >>> prices.over([], "rows", 1, {"most": wb.max("price")}).collect()["most"].to_pylist()
            [4, 8, 8]
        """
        return self._made(over_rows(self._end, keys, unit, preceding, aggregates, order, caller()))

    def window(
        self,
        window: WindowAssigner,
        *,
        time: TimeKind = "event",
        allowed_lateness: Duration = "0s",
        trigger: Schedule | Trigger | None = None,
        evictor: Evictor | None = None,
    ) -> WindowedStream:
        """Group all records by windows, in one subtask; see `KeyedStream.window`.

        Source: F1-6 to F1-9; Flink's ``windowAll``.

        Args:
            window: for example ``wb.tumbling("1h")``.
            time, allowed_lateness, trigger, evictor: as for `KeyedStream.window`.

        Raises:
            SettingError: an invalid lateness, or inconsistent settings.

        Example:
            >>> clicks = wb.Stream.from_table(pa.table({"t": [0, 1, 1_000_000]}), event_time="t")
            >>> job = clicks.window(wb.tumbling("1s")).aggregate(n=wb.count()).sink_to(wb.TableSink("n")).run("window")
            >>> job.wait("60s"), job.table()["n"].to_pylist()
            ('FINISHED', [2, 1])
        """
        return KeyedStream(self, ()).window(
            window, time=time, allowed_lateness=allowed_lateness, trigger=trigger, evictor=evictor
        )

    # several streams ----------------------------------------------------------------------------------------------

    @overload
    def join(self, other: pa.Table, on: On, *, how: How = "inner", suffix: str = "_right") -> Stream: ...

    @overload
    def join(self, other: Stream, on: On, *, how: AnyHow = "inner", suffix: str = "_right") -> Stream: ...

    @overload
    def join(
        self, other: Stream, on: On, *, window: WindowAssigner, how: How = "inner", suffix: str = "_right"
    ) -> Stream: ...

    @overload
    def join(
        self,
        other: Stream,
        on: On,
        *,
        between: Between,
        how: How = "inner",
        suffix: str = "_right",
    ) -> Stream: ...

    def join(
        self,
        other: Stream | pa.Table,
        on: On,
        *,
        window: WindowAssigner | None = None,
        between: Between | None = None,
        how: AnyHow = "inner",
        suffix: str = "_right",
    ) -> Stream:
        """Join records of two streams, or records with rows of a table, by equal keys.

        There are five joins. With a **table**, each record is joined with the table's rows immediately, without state.
        With a stream and a **window**, records of the same window are joined when the watermark ends it; the event time
        is ``window_end`` - 1 microsecond. With a stream and **between**, records with close event times are joined:
        ``between=("-5min", "10min")`` means from five minutes before the left record to ten minutes after it, bounds
        included; a pair is emitted immediately, with the later of the two event times. ``between="latest"`` joins each
        left record with the latest right one of its key up to its own event time, as soon as the watermark has passed
        it: the right stream is a table in versions, such as rates. With a stream and **neither**,
        all records of equal keys are joined, and kept for ever. This join also follows changelogs; unless it is an
        inner one of two streams that only add records, its result is a changelog itself: a record without a partner is
        emitted at once, and taken back when a partner comes.

        The output has the left columns, then the right ones without the keys. A null key equals nothing. Late records,
        whose window the watermark has ended (in an interval join: all at or behind the watermark), are dropped and
        counted in ``numLateRecordsDropped``.

        Source: Flink's window join, interval join, lookup join and regular join.

        Args:
            other: the right side.
            on: key columns: ``"origin"``, ``["origin", "day"]`` or ``{"origin": "airport"}`` (left name: right name).
            window: of both sides, such as ``wb.tumbling("1h")``, ``wb.sliding("1h", "10min")`` or
                ``wb.session("30min")``: records of both sides form a key's sessions together.
            between: the minimum and maximum of the right record's event time relative to the left one's: two durations
                such as ``("-5min", "10min")``. In an inner join the maximum can be a column of the left side instead,
                which holds the latest time of a partner, such as ``("0s", col("expires"))``. ``"latest"``: see above.
            how: ``"inner"``; ``"left"``: left records without a partner are emitted with nulls, as soon as the
                watermark shows that none will come; ``"outer"`` (not with `between`): those of both sides. With neither
                `window` nor `between` also ``"semi"``: left records that have a partner, each once; ``"anti"``: those
                that have none.
            suffix: for right columns with a name that the left side also has.

        Raises:
            PlanError: a column that does not exist, cannot be a key or clashes, or both `window` and `between`.
            SettingError: an invalid `how` or bounds.

        Example:
            >>> from workbench import Stream
            >>> flights = Stream.from_table(pa.table({"origin": ["JFK"], "delay": [7]}))
            >>> flights.join(pa.table({"origin": ["JFK"], "city": ["New York"]}), on="origin").columns
            ['origin', 'delay', 'city']
        """
        origin = caller()
        if not isinstance(other, Stream | pa.Table):
            raise PlanError(f"join got {as_given(other)}: pass a stream, or {a_table(other)}", origin=origin)
        right = other._end if isinstance(other, Stream) else other
        return self._made(joined(self._end, right, on, window, between, how, suffix, origin))

    def connect(self, other: Stream, on: On | None = None) -> ConnectedStreams:
        """Connect two streams, to process both with one function and shared state.

        Source: F1-4; Flink's ``connect``.

        Args:
            other: the second stream. With ``other.broadcast()`` each of its records goes to every subtask, for
                broadcast state: rules for the records of this stream (F1-3).
            on: key columns, as for `join`; with a broadcast stream those of this stream alone. None: not keyed.

        Raises:
            PlanError: not a stream, or no key column.

        Example:
            >>> from workbench import Stream
            >>> words = Stream.from_table(pa.table({"word": ["a"]}))
            >>> counts = Stream.from_table(pa.table({"n": [1]}))
            >>> text = {"text": pa.string()}
            >>> words.connect(counts).map(lambda r: {"text": r["word"]}, lambda r: {"text": str(r["n"])}, text).columns
            ['text']
        """
        origin = caller()
        if not isinstance(other, Stream):
            raise PlanError(f"connect got {as_given(other)}: pass a stream", origin=origin)
        with located(origin):
            left_keys, right_keys = ((), ()) if on is None else parse_on(on)
        return ConnectedStreams(self, other, left_keys, right_keys)

    def lookup_async(
        self,
        function: Callable[..., Any] | LookupTable,
        *,
        key: ColumnName | Sequence[ColumnName],
        schema: SchemaLike | None = None,
        concurrency: int = 16,
        timeout: Duration = "5s",
        ordered: bool = True,
        how: Literal["left", "inner"] = "left",
        cache: Duration | None = None,
    ) -> Stream:
        """Add the result of a lookup by each record's key, such as a row of a database, without blocking the stream.

        The function is called once for each distinct key of a batch, on separate threads (a coroutine function: on an
        event loop); while it is slow, backpressure slows down the sources. After a recovery it is called again for the
        keys without an answer.

        Source: Flink's asynchronous I/O; E6 enriches ad events this way.

        Args:
            function: called with the key's value (with several keys: one argument each); returns a dict of exactly the
                columns of `schema`, or None if it has no answer. Or a table of a server: `SqlLookup`, `RedisLookup`.
            key: the key columns; the function is not called for a record with a null key.
            schema: the columns that the answers add; a table declares them itself.
            concurrency: the maximum number of pending calls, in each subtask.
            timeout: such as ``"5s"``; a call that takes longer fails the job's attempt.
            ordered: whether results keep the order of the records; otherwise they come as answers arrive, but not
                across watermarks.
            how: ``"left"``: nulls for records without an answer; ``"inner"``: such records are dropped.
            cache: how long an answer holds for later records with the same key, such as ``"10min"``, for 100,000 keys
                in each subtask; None: the function is called again for each batch.

        Raises:
            PlanError: a column that does not exist, cannot be a key or clashes.
            SettingError: an invalid concurrency, timeout, cache or `how`.
            RecordError: while running, when a call fails, takes too long or returns something else.

        Example:
            >>> from workbench import Stream
            >>> cities = {"JFK": {"city": "New York"}}
            >>> flights = Stream.from_table(pa.table({"origin": ["JFK", "XXX"]}))
            >>> flights.lookup_async(cities.get, key="origin", schema={"city": pa.string()}).columns
            ['origin', 'city']
        """
        way = concurrency, timeout, ordered, how, cache
        return self._made(looked_up(self._end, function, key, schema, *way, caller()))

    def split(self, conditions: Mapping[str, str | Expression], *, rest: str = "rest") -> dict[str, Stream]:
        """Split the stream: each record goes to the stream of the first condition that is true for it.

        Source: F1-4; Flink's side outputs.

        Args:
            conditions: by the name of the stream, in the order in which they are tried.
            rest: name of the stream of the records that satisfy none of them.

        Raises:
            PlanError: no condition, or one with the name of `rest`.
            ExpressionError: an expression that is not a condition.

        Example:
            >>> from workbench import Stream
            >>> flights = Stream.from_table(pa.table({"dep_delay": [2, 20, None]}))
            >>> list(flights.split({"late": "dep_delay > 15", "on_time": "dep_delay <= 15"}))
            ['late', 'on_time', 'rest']
        """
        main = self._made(split_up(self._end, conditions, rest, caller()))
        return {name: main.side_output(name) for name in conditions} | {rest: main}

    # side outputs -------------------------------------------------------------------------------------------------

    def side_output(self, tag: str) -> Stream:
        """A side output of the operator that made this stream: ``"late"`` of a window aggregate.

        Source: Flink's side outputs.

        Args:
            tag: its name.

        Raises:
            PlanError: the operator has no such side output; lists those that it has.

        Example:
            >>> clicks = wb.Stream.from_table(pa.table({"t": [0]}), event_time="t")
            >>> counts = clicks.window(wb.tumbling("1s")).aggregate(n=wb.count())
            >>> counts.side_output("late").columns  # the records themselves
            ['t']
        """
        if not isinstance(tag, str) or tag not in self._end.node.side_schemas:
            raise PlanError(unknown("side output", tag, self._end.node.side_schemas), origin=caller())
        output = Stream(Input(self._end.node, tag=tag))
        return output.drop(*self._hidden) if self._hidden and tag == LATE else output

    def dead_letters(self) -> Stream:
        """The records that the operator before could not process; requires ``on_error="dead_letter"``.

        Columns: ``operator`` and ``subtask``, ``key`` (as text), ``position``, ``error``, ``record`` (as JSON text, or
        the text of a message or line, of which it shows the first 10 kB), ``event_time`` and ``traceback`` (the lines
        of your code that the error has passed, at most 4 kB; null: none). Where the record came from: ``source`` (the
        kind, such as ``kafka``), ``topic`` (or stream, or address), ``partition``, ``offset`` (or sequence number),
        ``id`` (of Redis and feeds), ``path`` and ``line``; null what its source does not have. The record itself:
        ``format``, ``raw`` and ``raw_bytes``.

        ``raw`` has the exact bytes of a message or line in that format, and of a row, ``"row"``, an Arrow IPC stream
        with it: `from_dead_letters` decodes them again. Of more than 1,048,576 bytes it has the first; ``raw_bytes``
        counts all. Sinks of CSV and JSON write ``raw`` as base64.

        ``position`` is the position of the record in its source, so that it can be found again: ``data.csv, row 17``,
        ``data.parquet#0, row 17`` (of that row group), ``table, row 17``, ``generator, row 17``, ``flights.log, channel
        0, offset 17``, counted from 0; ``data.csv, line 17``, counted from 1 as in editors, for text files that are
        read with ``on_error="dead_letter"``; for a socket its address alone. It is known if the operator is chained to
        its source with only ``filter``, ``select``, ``with_columns``, ``map``, ``flat_map`` and ``assign_timestamps``
        between the two. Behind any exchange (``key_by``, ``rebalance``, ``union``, ...), a side output or another
        operator it is null.

        Source: I15; the dead-letter queues of messaging systems.

        Raises:
            PlanError: the operator keeps no dead letters.

        Example:
            >>> lines = wb.Stream.from_table(pa.table({"n": ["1", "two"]}))
            >>> numbers = lines.map(lambda record: {"n": int(record["n"])}, {"n": pa.int64()}, on_error="dead_letter")
            >>> pipeline = numbers.sink_to(wb.TableSink("good")) + numbers.dead_letters().sink_to(wb.TableSink("bad"))
            >>> job = pipeline.run("poison")
            >>> job.wait("60s"), job.table("good").to_pylist()
            ('FINISHED', [{'n': 1}])
            >>> job.table("bad").select(["position", "record"]).to_pylist()
            [{'position': 'table, row 1', 'record': '{"n": "two"}'}]
        """
        if DEAD_LETTERS not in self._end.node.side_schemas:
            raise PlanError(
                "the operator that made this stream fails on poison records: give it on_error='dead_letter'",
                origin=caller(),
            )
        return Stream(Input(self._end.node, tag=DEAD_LETTERS))

    # event time ---------------------------------------------------------------------------------------------------

    def assign_timestamps(
        self,
        event_time: str | Expression | EventTime,
        *,
        out_of_orderness: Duration = "0s",
        watermarks: WatermarksLike = None,
        idle_after: Duration | None = None,
    ) -> Stream:
        """Assign new event times to the records, and generate new watermarks from here on.

        Watermarks of the input are replaced, except the one at its end.

        Source: F2-5; Flink's ``assignTimestampsAndWatermarks``.

        Args:
            event_time: a column or expression (timestamp, date or int64 microseconds), or ``wb.watermarks.INGESTION``
                for the time at which a record arrives here. Null means none, and a time more than 2**61 microseconds
                (73,000 years) from 1970 fails the job: ``"nullif(valid_until, 9223372036854775807)"`` turns a value
                that means "never" into null.
            out_of_orderness: how far a record's event time may be behind the largest one before it, such as ``"5s"``.
            watermarks: instead of that bound, ``wb.watermarks.monotonous()``, ``wb.watermarks.punctuated(...)`` or a
                `wb.watermarks.WatermarkGenerator`.
            idle_after: a subtask without records for this long (of the clock), such as ``"10s"``, stops holding event
                time back; set it where some subtasks may receive no records.

        Raises:
            ExpressionError: the event time is not a time, or does not fit the columns.
            SettingError: an invalid duration, or two kinds of watermarks.

        Example:
            >>> import pyarrow as pa, workbench as wb
            >>> stream = wb.Stream.from_table(pa.table({"landed": pa.array([0], pa.timestamp("us"))}))
            >>> stream.assign_timestamps("landed", out_of_orderness="5s").columns
            ['landed']
        """
        strategy = watermark_strategy(event_time, out_of_orderness, watermarks, idle_after)
        return self._made(timestamped(self._end, event_time, strategy, caller()))

    # partitioning -------------------------------------------------------------------------------------------------

    def rebalance(self, *, local: bool = False) -> Stream:
        """Send the records to the next operator's subtasks, round robin (F1-3).

        Source: Flink's ``rebalance`` and, for a sender's own share of the subtasks, its ``rescale``.

        Args:
            local: only to the sender's own share of the next operator's subtasks, which needs fewer channels.

        Raises:
            SettingError: `local` is neither True nor False.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": [1]})).with_parallelism(2)
            >>> pipeline = numbers.rebalance().filter("n > 0").sink_to(wb.DiscardSink())
            >>> pipeline.explain(parallelism=4).channels  # from each source to each filter
            8
            >>> pipeline = numbers.rebalance(local=True).filter("n > 0").sink_to(wb.DiscardSink())
            >>> pipeline.explain(parallelism=4).channels  # each source has two filters
            4
        """
        return self._spread("local rebalance" if true_or_false(local, "local") else "rebalance")

    def broadcast(self) -> Stream:
        """Send every record to every subtask of the next operator (F1-3).

        Source: Flink's ``broadcast``.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [7]})).broadcast().filter("n > 0")
            >>> job = stream.sink_to(wb.TableSink("copies")).run("broadcast", parallelism=3)
            >>> job.wait("60s"), job.table()["n"].to_pylist()
            ('FINISHED', [7, 7, 7])
        """
        return self._spread("broadcast")

    def shuffle(self) -> Stream:
        """Send each record to a random subtask of the next operator (F1-3).

        Source: Flink's ``shuffle``.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).shuffle().filter("n > 0")
            >>> stream.sink_to(wb.DiscardSink()).explain(parallelism=2).channels
            4
        """
        return self._spread("shuffle")

    def partition_by(self, target: str | Expression | Callable[[pa.RecordBatch], Any]) -> Stream:
        """Send each record to a subtask of your choice (F1-3).

        Source: Flink's ``partitionCustom``.

        Args:
            target: an integer expression such as ``"length(origin)"``, or a function from a batch to one integer per
                row; the subtask is that number modulo the number of subtasks.

        Raises:
            PlanError: the expression does not yield integers.
            ExpressionError: it does not fit the columns.
            RecordError: while running, when the function fails or returns no integer for a row.

        Example:
            >>> flights = wb.Stream.from_table(pa.table({"origin": ["JFK"]}))
            >>> flights.partition_by("length(origin)").filter("origin IS NOT NULL").columns
            ['origin']
        """
        return self._spread("custom", custom_partitioner(target, self.schema, caller()))

    # the operator that made the stream ----------------------------------------------------------------------------

    def uid(self, uid: str) -> Stream:
        """Name the operator that made this stream; a checkpoint identifies its state by this name.

        Source: Flink's ``uid``: a changed program finds its state by it (E10).

        Args:
            uid: a name that no other operator of the pipeline has; graphs and metrics show it, too.

        Raises:
            SettingError: an empty name.
            PlanError: when the pipeline is run or explained, if two operators have the same name.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).uid("numbers")
            >>> stream.sink_to(wb.DiscardSink())
            Pipeline: numbers -> discard
        """
        return self._with_operator(uid=_named(uid, "uid"))

    def state_ttl(self, duration: Duration) -> Stream:
        """Drop the state of keys without records for a time, in the last operator of this stream.

        A group, a key of ``top_n`` or ``latest_by``, or a value of ``distinct`` is dropped when the watermark is this
        far behind its latest record, and each record of a join when the watermark is this far behind it. Nothing is
        emitted then; a later record begins anew. State is kept at least that long, and at most an eighth longer.

        Source: Flink's ``STATE_TTL``, here in event time, so that a replay gives the same results.

        Args:
            duration: such as ``"1d"``.

        Raises:
            PlanError: the operator keeps no state for ever.
            SettingError: not a duration above zero.

        Example:
            >>> clicks = wb.Stream.from_table(pa.table({"user": ["ann"], "t": [0]}), event_time="t")
            >>> counts = clicks.group_by("user").aggregate(n=wb.count()).state_ttl("1d")
            >>> counts.sink_to(wb.DiscardSink()).explain().growing
            {}
        """
        return self._with_operator(spec=with_ttl(self._end, duration, caller()))

    def with_parallelism(self, parallelism: int) -> Stream:
        """Set the number of subtasks of the operator that made this stream; the default is the job's.

        Source: F1-2, F2-2; Flink's ``setParallelism``.

        Args:
            parallelism: above zero.

        Raises:
            SettingError: a number below 1.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).with_parallelism(1)
            >>> stream.sink_to(wb.DiscardSink()).explain(parallelism=4).channels  # one reads, four write
            4
        """
        if whole_number(parallelism, "parallelism", 0) == 0:
            raise SettingError(f"parallelism is {parallelism}: it must be above zero")
        return self._with_operator(parallelism=parallelism)

    def slot_sharing_group(self, name: str) -> Stream:
        """Keep the operator that made this stream, and those after it, out of the slots of other groups (F2-2).

        By default all operators share slots, so a slot holds one parallel slice of the whole pipeline.

        Source: Flink's ``slotSharingGroup``.

        Args:
            name: of the group; ``"default"`` is that of all operators without one.

        Raises:
            SettingError: an empty name.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).filter("n > 0").slot_sharing_group("filters")
            >>> len(stream.sink_to(wb.DiscardSink()).explain(parallelism=2).slots)  # two for the source, two more
            4
        """
        return self._with_operator(slot_sharing_group=_named(name, "slot_sharing_group"))

    # sinks --------------------------------------------------------------------------------------------------------

    def record_to(self, path: str | Path) -> Pipeline:
        """Record the stream while it runs, with the time at which each record arrived (column ``arrived_at``).

        Records are committed with each checkpoint, exactly once. `History.from_recording` makes a history of them,
        which is replayed at any speed. Use it right behind a live source, because it notes when records reach it.

        Source: E10: a history is replayed at a multiple of its speed.

        Args:
            path: a folder of this recording alone.

        Raises:
            PlanError: there is a column ``arrived_at`` already.

        Example:
            >>> import tempfile
            >>> stream = wb.Stream.from_table(pa.table({"n": [1, 2]}))
            >>> stream.record_to(f"{(folder := tempfile.mkdtemp())}/feed").run("record").wait("60s")
            'FINISHED'
            >>> history = wb.History.from_recording(f"{folder}/feed", f"{folder}/feed.log", progress=False)
            >>> wb.Stream.replay(history).collect()["n"].to_pylist()
            [1, 2]
        """
        return self.map_batches(arrived, with_arrival(self.schema)).sink_to(ParquetSink(path))

    def sink_to(self, sink: Sink) -> Pipeline:
        """End the stream in a sink; the resulting pipeline can be run.

        Source: F1-1; Flink's ``sinkTo``.

        Args:
            sink: for example ``wb.TableSink("delays")``, ``wb.ParquetSink("out/delays")`` or a `wb.CallbackSink`.

        Raises:
            SinkError: the sink cannot write these columns.

        Example:
            >>> wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.TableSink("numbers"))
            Pipeline: table -> numbers
        """
        return Pipeline((sink_node(sink, self._end, caller()),))

    @with_the_settings_of(Pipeline.run)
    def run(self, name: str = "job", **settings: Any) -> Job:
        """Run the stream into a table of the job's name, as ``%%stream`` does; returns immediately.

        Source: F2-1; E2: ``sink_to`` and `Pipeline.run` in one.

        Args:
            name: of the job and of its table, ``job.table()``.
            settings: those of `Pipeline.run`.

        Raises:
            SettingError: a name that is not valid for a table; and whatever `Pipeline.run` raises.

        Example:
            >>> job = wb.Stream.from_table(pa.table({"n": [1, 2]})).filter("n > 1").run("large", parallelism=2)
            >>> job.wait("60s"), job.table()["n"].to_pylist()
            ('FINISHED', [2])
        """
        return self.sink_to(TableSink(name)).run(name, **settings)

    def collect(self, limit: int = 1_000, *, timeout: Duration = "60s") -> pa.Table:
        """The first rows of the stream, for inspection: runs a job for it, and ends it.

        Source: Spark's ``take``; nothing is committed, and windows fire as they do in any job.

        Args:
            limit: the maximum number of rows.
            timeout: how long to wait for them, such as ``"10s"``; rows received by then are returned.

        Returns:
            The rows, with the columns of the stream.

        Raises:
            SettingError: a limit that is not a number above zero, or an invalid timeout.
            JobError: the job failed.

        Example:
            >>> wb.Stream.from_table(pa.table({"n": [1, 2, 3]})).with_columns(m="n * n").collect(2).to_pylist()
            [{'n': 1, 'm': 1}, {'n': 2, 'm': 4}]
        """
        return collected(
            lambda sink: self.sink_to(sink).run("collect", checkpoint_interval=None, restart=no_restart()),
            self._end.schema,
            whole_number(limit, "limit"),
            parse_duration(timeout, "timeout"),
        )

    def show(self, limit: int = 10, *, timeout: Duration = "60s") -> None:
        """Print the first rows of the stream; see `collect`.

        Source: Spark's ``show``.

        Args:
            limit: the maximum number of rows.
            timeout: how long to wait for them, such as ``"10s"``.

        Raises:
            SettingError: a limit that is not a number above zero, or an invalid timeout.
            JobError: the job failed.

        Example:
            >>> wb.Stream.from_table(pa.table({"n": [1, 2, 3]})).filter("n > 1").show()
            ┏━━━┓
            ┃ n ┃
            ┡━━━┩
            │ 2 │
            │ 3 │
            └───┘
        """
        printed(self.collect(limit, timeout=timeout))

    # internals ----------------------------------------------------------------------------------------------------

    @classmethod
    def _made(cls, node: Node, hidden: tuple[str, ...] = ()) -> Stream:
        return cls(Input(node), hidden)

    def _followed_by(self, spec: OperatorSpec, origin: Origin | None) -> Stream:
        return self._made(operator_node(spec, (self._end,), origin))

    def _spread(self, exchange: ExchangeKind, partitioner: Partitioner | None = None) -> Stream:
        return Stream(Input(self._end.node, exchange, (), self._end.tag, partitioner))

    def _with_operator(self, **changes: Any) -> Stream:
        return Stream(replace(self._end, node=replace(self._end.node, **changes)), self._hidden)


def _named(name: object, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise SettingError(f"{what} is {name!r}: write a name, for example {what}('delays')")
    return name
