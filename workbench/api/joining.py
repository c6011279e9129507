"""Streams that meet and part: the methods of `Stream` that join, look up and split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from workbench.api.building import expression, located, operator_node
from workbench.api.connected import ConnectedStreams
from workbench.arguments import as_given
from workbench.durations import parse_duration
from workbench.errors import PlanError, SettingError, WorkbenchError
from workbench.expressions import Expression
from workbench.operators.async_lookup import AsyncLookup
from workbench.operators.base import OperatorSpec
from workbench.operators.join_columns import How, JoinColumns, On, parse_on
from workbench.operators.join_interval import IntervalJoin
from workbench.operators.join_lookup import LookupJoin
from workbench.operators.join_window import WindowJoin
from workbench.operators.split import Split
from workbench.operators.user_function import SchemaLike
from workbench.origin import caller
from workbench.plan.logical import ExchangeKind, Input, Node
from workbench.windows import WindowAssigner

if TYPE_CHECKING:
    from workbench.api.stream import Stream


class StreamJoins:
    """What combines a stream with others, or parts it; `Stream` inherits it."""

    if TYPE_CHECKING:

        def _input(self, exchange: ExchangeKind | None = None, keys: tuple[str, ...] = ()) -> Input: ...

        def _derived(self, node: Node) -> Stream: ...

    @overload
    def join(self, other: pa.Table, on: On, *, how: How = "inner", suffix: str = "_right") -> Stream: ...

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
        between: tuple[str | timedelta, str | timedelta],
        how: How = "inner",
        suffix: str = "_right",
    ) -> Stream: ...

    def join(
        self,
        other: Stream | pa.Table,
        on: On,
        *,
        window: WindowAssigner | None = None,
        between: tuple[str | timedelta, str | timedelta] | None = None,
        how: How = "inner",
        suffix: str = "_right",
    ) -> Stream:
        """Put the records (or a table's rows) with equal keys beside each other.

        There are three joins. With a **table**, each record finds the table's rows at once, without state. With a
        stream and a **window**, records of the same window find each other when the watermark ends it; the event time
        is ``window_end`` - 1 microsecond. With a stream and **between**, records find each other whose event times are
        near: ``between=("-5min", "10min")`` means from five minutes before the left record to ten minutes after it,
        bounds included; a pair comes out at once, with the later of the two event times.

        What comes out has the left columns, then the right ones without the keys. A null key equals nothing. Records
        whose window the watermark has ended (of an interval join: all that come at or behind the watermark) are dropped
        and counted in ``numLateRecordsDropped``.

        Source: Flink's window join, interval join and lookup join.

        Args:
            other: the right side.
            on: key columns: ``"origin"``, ``["origin", "day"]`` or ``{"origin": "airport"}`` (left name: right name).
            window: of both sides, such as ``wb.tumbling("1h")``, ``wb.sliding("1h", "10min")`` or
                ``wb.session("30min")``: records of both sides make up a key's sessions together.
            between: the right record's event time relative to the left one's, at least and at most: two durations such
                as ``("-5min", "10min")``.
            how: ``"inner"``; ``"left"``: left records without a partner come out with nulls, as soon as the watermark
                says that none will come; ``"outer"`` (with a window): those of both sides.
            suffix: for right columns whose name the left side has as well.

        Raises:
            PlanError: a column that does not exist, cannot be a key or clashes, or neither `window` nor `between`.
            SettingError: a bad `how` or bad bounds.

        Example:
            >>> from workbench import Stream
            >>> flights = Stream.from_table(pa.table({"origin": ["JFK"], "delay": [7]}))
            >>> flights.join(pa.table({"origin": ["JFK"], "city": ["New York"]}), on="origin").columns
            ['origin', 'delay', 'city']
        """
        origin = caller()
        spec: OperatorSpec
        try:
            left_keys, right_keys = parse_on(on)
            columns = JoinColumns(left_keys, right_keys, how, suffix)
            if isinstance(other, pa.Table):
                if window is not None or between is not None:
                    raise PlanError("a join with a table has no time: leave window= and between= out")
                return self._derived(operator_node(LookupJoin(columns, other), (self._input(),), origin))
            if not isinstance(other, StreamJoins):
                raise PlanError(f"join got {type(other).__name__}: pass a stream or a pyarrow.Table")
            if (window is None) == (between is None):
                raise PlanError(
                    "a join of two streams needs either window= or between=, which say how long records wait for a "
                    "partner: for example window=wb.tumbling('1h') or between=('-5min', '10min')"
                )
            if window is not None:
                spec = WindowJoin(columns, window)
            else:
                if not isinstance(between, Sequence) or isinstance(between, str) or len(between) != 2:
                    raise PlanError(f"between is {as_given(between)}: write two times, for example ('-5min', '10min')")
                spec = IntervalJoin(columns, _bound(between[0]), _bound(between[1]))
        except WorkbenchError as error:
            raise located(error, origin) from None
        inputs = (self._input("hash", left_keys), other._input("hash", right_keys))
        return self._derived(operator_node(spec, inputs, origin))

    def connect(self, other: Stream, on: On | None = None) -> ConnectedStreams:
        """Bring two streams to one function that may keep state for both.

        Source: F1-4; Flink's ``connect``.

        Args:
            other: the second stream. With ``other.broadcast()`` each of its records goes to every subtask, for
                broadcast state: rules for the records of this stream (F1-3).
            on: key columns, as for `join`; with a broadcast stream those of this stream alone. None: not keyed.

        Raises:
            PlanError: no stream, or no key column.

        Example:
            >>> from workbench import Stream
            >>> words = Stream.from_table(pa.table({"word": ["a"]}))
            >>> counts = Stream.from_table(pa.table({"n": [1]}))
            >>> text = {"text": pa.string()}
            >>> words.connect(counts).map(lambda r: {"text": r["word"]}, lambda r: {"text": str(r["n"])}, text).columns
            ['text']
        """
        origin = caller()
        if not isinstance(other, StreamJoins):
            raise PlanError(f"connect got {type(other).__name__}: pass a stream", origin=origin)
        try:
            left_keys, right_keys = ((), ()) if on is None else parse_on(on)
        except WorkbenchError as error:
            raise located(error, origin) from None
        return ConnectedStreams(self, other, left_keys, right_keys)

    def lookup_async(
        self,
        function: Callable[..., Any],
        *,
        key: str | Sequence[str],
        schema: SchemaLike,
        concurrency: int = 16,
        timeout: str | timedelta = "5s",
        ordered: bool = True,
        how: Literal["left", "inner"] = "left",
    ) -> Stream:
        """Add what a function answers about each record's key, such as a row of a database, without waiting for it.

        The function is called once for each distinct key of a batch, on threads of its own (a coroutine function: on an
        event loop); while it is slow, backpressure holds the sources back. After a recovery the keys whose answers were
        still out are asked about again.

        Source: Flink's asynchronous I/O; E6 enriches ad events so.

        Args:
            function: called with the key's value (with several keys: one argument each); returns a dict of exactly the
                columns of `schema`, or None where it knows nothing.
            key: the key columns; a record with a null key is not asked about.
            schema: the columns that the answers add.
            concurrency: how many calls may be under way at a time, in each subtask.
            timeout: such as ``"5s"``; a call that takes longer fails the job's attempt.
            ordered: results in the order of the records; otherwise as the answers come, but not across watermarks.
            how: ``"left"``: nulls where nothing is known; ``"inner"``: such records are dropped.

        Raises:
            PlanError: a column that does not exist, cannot be a key or clashes.
            SettingError: a bad concurrency, timeout or `how`.
            RecordError: while running, when a call fails, takes too long or answers something else.

        Example:
            >>> from workbench import Stream
            >>> cities = {"JFK": {"city": "New York"}}
            >>> flights = Stream.from_table(pa.table({"origin": ["JFK", "XXX"]}))
            >>> flights.lookup_async(cities.get, key="origin", schema={"city": pa.string()}).columns
            ['origin', 'city']
        """
        origin = caller()
        keys = (key,) if isinstance(key, str) else tuple(key)
        try:
            if how not in ("inner", "left"):
                raise SettingError(f"how is {how!r}: a lookup can be 'left' (nulls where nothing is known) or 'inner'")
            timeout_us = parse_duration(timeout, "timeout")
            spec = AsyncLookup(function, keys, schema, concurrency, timeout_us, ordered, how == "inner", origin)
        except WorkbenchError as error:
            raise located(error, origin) from None
        return self._derived(operator_node(spec, (self._input(),), origin))

    def split(self, conditions: Mapping[str, str | Expression], *, rest: str = "rest") -> dict[str, Stream]:
        """Part the stream: each record goes to the stream of the first condition that is true for it.

        Source: F1-4; Flink's side outputs.

        Args:
            conditions: by the name of the stream, in the order in which they are tried.
            rest: name of the stream of the records for which none is true.

        Raises:
            PlanError: no condition, or one that is called like `rest`.
            ExpressionError: what is no condition.

        Example:
            >>> from workbench import Stream
            >>> flights = Stream.from_table(pa.table({"dep_delay": [2, 20, None]}))
            >>> list(flights.split({"late": "dep_delay > 15", "on_time": "dep_delay <= 15"}))
            ['late', 'on_time', 'rest']
        """
        origin = caller()
        if rest in conditions:
            raise PlanError(f"split has a condition named {rest!r}, like the rest: pass another rest=", origin=origin)
        try:
            spec = Split(tuple((name, expression(value, origin)) for name, value in conditions.items()), origin)
        except WorkbenchError as error:
            raise located(error, origin) from None
        main = self._derived(operator_node(spec, (self._input(),), origin))
        return {name: main.side_output(name) for name in conditions} | {rest: main}


def _bound(value: str | timedelta) -> int:
    """Microseconds in a duration that may be negative."""
    if isinstance(value, str) and value.strip().startswith("-"):
        return -parse_duration(value.strip().removeprefix("-"), "between")
    if isinstance(value, timedelta) and value < timedelta():
        return -parse_duration(-value, "between")
    return parse_duration(value, "between")
