"""Streams partitioned by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.api.streams.building import located, named_aggregates, operator_node
from workbench.api.streams.joining import by_keys
from workbench.api.streams.missing import Hinting, check_function, check_named
from workbench.api.streams.ranked import ranked
from workbench.api.streams.windowed import WindowedStream
from workbench.arguments import whole_number
from workbench.durations import Duration
from workbench.errors import PlanError
from workbench.expressions import ColumnName, Expression, column_names
from workbench.operators.aggregates.aggregate import RollingAggregate
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.aggregates.reduce import Reduce
from workbench.operators.changelogs.sortable import Order
from workbench.operators.contract.base import OperatorSpec
from workbench.operators.functions.dead_letters import OnError
from workbench.operators.functions.user_function import Record, SchemaLike
from workbench.operators.matching.match import RowsPerMatch
from workbench.operators.matching.planning import PARTIALS_MAX, match_stages
from workbench.operators.process.process import Process, StateBackend
from workbench.operators.process.process_function import ProcessFunction, Rows
from workbench.origin import Origin, caller
from workbench.patterns.pattern import Pattern
from workbench.state.descriptors import Descriptor
from workbench.windows import Evictor, WindowAssigner
from workbench.windows.schedule import Schedule, TimeKind
from workbench.windows.trigger import Trigger

if TYPE_CHECKING:
    from workbench.api.streams.stream import Stream


class KeyedStream(Hinting):
    """A stream partitioned by key; the operators after it keep their state per key.

    Source: F1-3; Flink's ``KeyedStream``.

    Example:
        >>> wb.Stream.from_table(pa.table({"origin": ["JFK"]})).key_by("origin")
        KeyedStream by origin of Stream(origin string); nothing runs until sink_to(...).run(...)
    """

    def __init__(self, stream: Stream, keys: tuple[str, ...]) -> None:
        self._stream = stream
        self._keys = keys

    def __repr__(self) -> str:
        return f"KeyedStream by {', '.join(self._keys)} of {self._stream!r}"

    def window(
        self,
        window: WindowAssigner,
        *,
        time: TimeKind = "event",
        allowed_lateness: Duration = "0s",
        trigger: Schedule | Trigger | None = None,
        evictor: Evictor | None = None,
    ) -> WindowedStream:
        """Group the records of each key by windows.

        Source: F1-6 to F1-10; Flink's ``window``, with its assigner, trigger and evictor.

        Args:
            window: for example ``wb.tumbling("1h")``, or your own `wb.windows.WindowAssigner`.
            time: ``"event"``: a record's event time; ``"processing"``: the clock's time when the record arrives here.
            allowed_lateness: how long after its end a window accepts records, such as ``"1h"``; each makes it fire
                again with the corrected result. Records that arrive even later go to the side output ``"late"``.
            trigger: when windows fire, for example ``wb.triggers.early("1min")``, or your own `wb.triggers.Trigger`;
                None: once, at their end.
            evictor: which of a window's records stay when it fires, for example ``wb.windows.keep_last(100)``, or your
                own `wb.windows.Evictor`; None: all.

        Raises:
            SettingError: an invalid lateness, or inconsistent settings.

        Example:
            >>> clicks = wb.Stream.from_table(pa.table({"user": ["a", "a"], "t": [0, 1]}), event_time="t")
            >>> early = wb.triggers.early("1min")
            >>> clicks.key_by("user").window(wb.session("30min"), allowed_lateness="1h", trigger=early)
            WindowedStream by user, session 30min, lateness 1h, early 1min; aggregate(...) or apply(...) comes next
        """
        return WindowedStream(
            self._stream,
            self._keys,
            window,
            allowed_lateness=allowed_lateness,
            time=time,
            trigger=trigger,
            evictor=evictor,
        )

    def aggregate(self, *unnamed: object, **aggregates: Aggregation) -> Stream:
        """Rolling aggregates: each input record yields one output record with the keys and the aggregates so far
        (F1-5).

        Source: E2 is a job of this kind.

        Args:
            unnamed: refused with a sentence, because each aggregate needs a name.
            aggregates: by the name of the column: ``n=wb.count()``, ``worst=wb.max("dep_delay")``; those of whole
                windows, such as the median, need a window.

        Raises:
            PlanError: no aggregate, or one that is not defined for the column's type.
            ExpressionError: an unknown column.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"parity": ["odd", "even", "odd"], "n": [1, 2, 3]}))
            >>> sums = numbers.key_by("parity").aggregate(total=wb.sum("n"))
            >>> job = sums.sink_to(wb.TableSink("sums")).run("totals")
            >>> job.wait("60s"), job.table()["total"].to_pylist()
            ('FINISHED', [1, 2, 4])
        """
        origin = caller()
        check_named(unnamed, "aggregate", "aggregate(n=wb.count())", origin)
        end, named = named_aggregates(self._stream._end, aggregates, (Aggregation,), origin)
        spec = RollingAggregate(self._keys, named)
        return self._stream._made(operator_node(spec, (by_keys(end, self._keys),), origin))

    def latest_by(self, *order: ColumnName) -> Stream:
        """The last record of each key, as a changelog: a later one replaces it.

        Source: deduplication in Flink's SQL (``ROW_NUMBER() ... = 1``); DuckDB's and Polars' ``arg_max``.

        Args:
            order: the columns by which a record is later than another, such as that of event time; of equal ones the
                last one counts. None: by their arrival.

        Raises:
            PlanError: a column that does not exist or has no order.

        Example:
            >>> table = pa.table({"user": ["ann", "ann", "bob"], "at": [2, 1, 5], "page": ["b", "a", "c"]})
            >>> wb.Stream.from_table(table).key_by("user").latest_by("at").collect()["page"].to_pylist()
            ['b', 'c']
        """
        return self._top(order, 1, None, True, True)

    def earliest_by(self, *order: ColumnName) -> Stream:
        """The first record of each key; by arrival it is final, and by columns an earlier one replaces it.

        Source: deduplication in Flink's SQL (``ROW_NUMBER() ... = 1``).

        Args:
            order: the columns by which a record is earlier than another; of equal ones the first one counts. None: by
                their arrival; then the stream is no changelog.

        Raises:
            PlanError: a column that does not exist or has no order.

        Example:
            >>> table = pa.table({"user": ["ann", "ann", "bob"], "page": ["a", "b", "c"]})
            >>> wb.Stream.from_table(table).key_by("user").earliest_by().collect()["page"].to_pylist()
            ['a', 'c']
        """
        return self._top(order, 1, None, False, False)

    def top_n(
        self, n: int, *order: ColumnName, descending: bool | Sequence[bool] = True, rank: str | None = None
    ) -> Stream:
        """The first `n` records of each key in an order, as a changelog.

        Source: Top-N in Flink's SQL (``ROW_NUMBER() ... <= n``).

        Args:
            n: how many.
            order: the columns that order the records of a key; of equal ones the first to arrive comes first.
            descending: whether the largest value comes first: for all columns, or for each.
            rank: the name of a column for their places, from 1 on; None: a record is not emitted again when its place
                changes.

        Raises:
            PlanError: a column that does not exist or has no order, or no order at all.
            SettingError: `n` is not a whole number above zero.

        Example:
            >>> bids = wb.Stream.from_table(pa.table({"item": ["a", "a", "a"], "price": [5, 9, 7]}))
            >>> sorted(bids.key_by("item").top_n(2, "price").collect()["price"].to_pylist())
            [7, 9]
        """
        if not order:
            raise PlanError("top_n needs an order: name columns, as in top_n(3, 'price')", origin=caller())
        return self._top(order, whole_number(n, "n"), rank, descending, False)

    def _top(
        self,
        order: Sequence[ColumnName],
        limit: int,
        rank: str | None,
        descending: bool | Sequence[bool],
        last_wins: bool,
    ) -> Stream:
        origin = caller()
        with located(origin):
            names = column_names(tuple(order), "order") if order else ()
            ways = [descending] * len(names) if isinstance(descending, bool) else list(descending)
            if len(ways) != len(names):
                raise PlanError(f"descending has {len(ways)} values for {len(names)} columns: give each column one")
            orders = tuple(Order(name, way) for name, way in zip(names, ways, strict=True))
        return ranked(self._stream, self._keys, orders, limit, rank, last_wins)

    def reduce(self, function: Callable[[Record, Record], Record], *, on_error: OnError = "fail") -> Stream:
        """Fold each record of a key into the record held for the key, and emit the result (F1-5).

        Args:
            function: takes the held record and a new one, both dicts, and returns the record to hold, with the columns
                of the input. The first record of a key is held and emitted unchanged.
            on_error: what happens to a record for which it fails; see `Stream.map`. The held record stays unchanged;
                the function is called again for some of the records of the same batch.

        Raises:
            RecordError: while running, when the function raises or returns something else.

        Example:
            >>> import workbench as wb
            >>> scores = wb.Stream.from_table(pa.table({"user": ["a", "b"], "score": [3, 5]}))
            >>> best = scores.key_by("user").reduce(lambda a, b: a if a["score"] >= b["score"] else b)
        """
        origin = caller()
        check_function(function, "reduce", origin)
        return self._followed_by(Reduce(self._keys, function, origin, on_error), origin)

    def process(
        self,
        function: ProcessFunction | Callable[..., Rows],
        schema: SchemaLike,
        *,
        state: Mapping[str, Descriptor | pa.DataType] | None = None,
        side_outputs: Mapping[str, SchemaLike] | None = None,
        state_backend: StateBackend = "memory",
        on_error: OnError = "fail",
    ) -> Stream:
        """Call a Python function for each record, with the state of the record's key.

        Timers fire when a watermark comes. A source tells the time about ten times a second, behind a batch of records,
        so an event timer usually fires after records that are later than it; how many they are depends on the settings.
        A function whose result depends on that compares times itself, or its source has a watermark behind each record
        (``watermarks=wb.watermarks.punctuated("true")`` where times never decrease). Then a timer fires between two
        records of a source that runs in one task (``with_parallelism(1)``), with every setting; of several tasks the
        slowest decides. In that case each record travels in a buffer of its own. A job that continues an unaligned
        checkpoint at another parallelism can fire the timers among the records in flight later.

        Source: Flink's ``KeyedProcessFunction``.

        Args:
            function: a `ProcessFunction`, which can also have timers, or a function of (record, state) or (record,
                state, ctx). It returns None, one record (a dict) or several (a list, or a generator). The results have
                the event time of the record that it is called for.
            schema: of its results, a pyarrow.Schema or a dict of Arrow types by name.
            state: of a plain function, by name: Arrow types (None until a value is written) or descriptors such as
                ``wb.state.ValueState(pa.int64(), default=0)``.
            side_outputs: schema of each side output by its tag: ``ctx.output(tag, record)`` sends to it, and
                ``side_output(tag)`` of the resulting stream reads it.
            state_backend: ``"memory"``, or ``"disk"`` for more state than memory holds (needs the extra
                ``workbench[rocksdb]``).
            on_error: what happens to a record for which it fails; see `Stream.map`. Changes to state, timers and side
                outputs before the failure are kept. Timers have no record: a failure there fails the task.

        Raises:
            PlanError, SettingError: the function, a schema or a state is not valid.
            RecordError: while running, when the function raises or returns something else.

        Example:
            >>> import workbench as wb
            >>> def running(record, state):
            ...     state.total += record["n"]
            ...     return {"parity": record["parity"], "total": state.total}
            >>> numbers = wb.Stream.from_table(pa.table({"parity": ["odd", "even"], "n": [1, 2]}))
            >>> sums = numbers.key_by("parity").process(
            ...     running,
            ...     {"parity": pa.string(), "total": pa.int64()},
            ...     state={"total": wb.state.ValueState(pa.int64(), default=0)},
            ... )
        """
        origin = caller()
        spec = Process(self._keys, function, schema, state, dict(side_outputs or {}), state_backend, origin, on_error)
        return self._followed_by(spec, origin)

    def match(
        self,
        pattern: Pattern,
        *,
        rows: RowsPerMatch = "one",
        partials_max: int = PARTIALS_MAX,
        **measures: str | Expression,
    ) -> Stream:
        """Find a pattern among the rows of each key, in order of their event time.

        A row is looked at when the watermark has passed it; rows with one event time follow each other as they arrived.
        A match has the event time at which it was certain: that of its last row, or of a later one that was needed to
        know that no longer or earlier match comes. Partial matches that `Pattern.within` ends go to the side output
        ``"timed_out"``, with the same columns.

        Source: Flink's CEP; SQL's MATCH_RECOGNIZE for measures. See docs/patterns.md.

        Args:
            pattern: see `wb.pattern`.
            rows: ``"one"``: each match is one row, of the keys and the measures; ``"all"``: each of its rows is one, of
                all columns and the measures.
            partials_max: the job fails if a key has more partial matches.
            measures: results by name, as SQL: ``small.amount``, ``COUNT(up.price)``, ``CLASSIFIER()``,
                ``MATCH_NUMBER()``.

        Raises:
            PlanError: the pattern or a measure does not fit the columns.
            RecordError: while running, a key has more partial matches than `partials_max`.

        Example:
            >>> times = pa.array([1, 2, 3], pa.timestamp("s"))
            >>> table = pa.table({"t": times, "card": ["x", "x", "x"], "amount": [1, 20, 900]})
            >>> payments = wb.Stream.from_table(table, event_time="t")
            >>> theft = wb.pattern("small", "amount < 5").followed_by("large", "amount > 500").within("1min")
            >>> payments.key_by("card").match(theft, amount="large.amount").collect().to_pylist()
            [{'card': 'x', 'amount': 900}]
        """
        return matched(self._stream, self._keys, pattern, measures, rows, partials_max, caller())

    def _followed_by(self, spec: OperatorSpec, origin: Origin | None) -> Stream:
        return self._stream._made(operator_node(spec, (by_keys(self._stream._end, self._keys),), origin))


def matched(
    stream: Stream,
    keys: tuple[str, ...],
    pattern: Pattern,
    measures: Mapping[str, str | Expression],
    rows: RowsPerMatch,
    partials_max: int,
    origin: Origin | None,
) -> Stream:
    """See `KeyedStream.match`; without keys all rows are one group."""
    end = stream._end
    with located(origin):
        spec = match_stages(pattern, measures, keys, end.schema, rows, partials_max, origin)
    return matching(stream, keys, spec, origin)


def matching(stream: Stream, keys: tuple[str, ...], spec: OperatorSpec, origin: Origin | None) -> Stream:
    """The stream behind a keyed operator; without keys it runs in one subtask."""
    end = stream._end
    if keys:
        return stream._made(operator_node(spec, (by_keys(end, keys),), origin))
    node = operator_node(spec, (replace(end, exchange="rebalance", partitioner=None),), origin)
    return stream._made(replace(node, parallelism=1))
