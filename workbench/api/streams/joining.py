"""The nodes of streams that are joined or split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

import pyarrow as pa

from workbench.api.streams.building import expression, located, operator_node
from workbench.arguments import as_given
from workbench.durations import Duration, parse_duration
from workbench.errors import PlanError, SettingError
from workbench.expressions import ColumnName, Expression, column_names, plain_name
from workbench.operators.changelogs.join import Emitted, RegularJoin
from workbench.operators.changelogs.temporal_join import TemporalJoin
from workbench.operators.functions.lookup_table import LookupTable
from workbench.operators.functions.user_function import SchemaLike
from workbench.operators.joins.async_lookup import AsyncLookup
from workbench.operators.joins.columns import How, JoinColumns, On, parse_on
from workbench.operators.joins.interval import IntervalJoin
from workbench.operators.joins.lookup import LookupJoin
from workbench.operators.joins.window import WindowJoin
from workbench.operators.stateless.split import Split
from workbench.origin import Origin
from workbench.plan.logical import Input, Node
from workbench.windows import WindowAssigner

Times = tuple[Duration, Duration | Expression]
"""The bounds of an interval, relative to a record's event time; they may be negative. The later one can be a column."""

Between = Times | Literal["latest"]
"""See `Stream.join`."""

AnyHow = How | Literal["semi", "anti"]
"""Which records a join emits: see `Stream.join`."""


def joined(
    left: Input,
    right: Input | pa.Table,
    on: On,
    window: WindowAssigner | None,
    between: Between | None,
    how: AnyHow,
    suffix: str,
    origin: Origin | None,
) -> Node:
    """See `Stream.join`."""
    with located(origin):
        left_keys, right_keys = parse_on(on)
        if how == "semi" or how == "anti":
            emitted: Emitted = how
            if isinstance(right, pa.Table) or window is not None or between is not None:
                raise PlanError(f"a {how} join is one of two streams without bounds: leave out window= and between=")
            how = "inner"
        else:
            emitted = "pairs"
        columns = JoinColumns(left_keys, right_keys, how, suffix)
        if isinstance(right, pa.Table):
            if window is not None or between is not None:
                raise PlanError("a join with a table does not use time: leave out window= and between=")
            return operator_node(LookupJoin(columns, right), (left,), origin)
        if window is not None and between is None:
            spec: WindowJoin | IntervalJoin | TemporalJoin | RegularJoin = WindowJoin(columns, window)
        elif between == "latest" and window is None:
            spec = TemporalJoin(columns)
        elif between is not None and window is None:
            spec = _interval(columns, between)
        elif window is None:
            spec = RegularJoin(columns, emitted)
        else:
            raise PlanError("a join has either window= or between=: leave one out")
    inputs = (by_keys(left, left_keys), by_keys(right, right_keys))
    return operator_node(spec, inputs, origin)


def by_keys(end: Input, keys: tuple[str, ...]) -> Input:
    """The same records, partitioned by key."""
    return replace(end, exchange="hash", keys=keys, partitioner=None)


def looked_up(
    end: Input,
    function: Callable[..., Any] | LookupTable,
    key: ColumnName | Sequence[ColumnName],
    schema: SchemaLike | None,
    concurrency: int,
    timeout: Duration,
    ordered: bool,
    how: Literal["left", "inner"],
    cache: Duration | None,
    origin: Origin | None,
) -> Node:
    """See `Stream.lookup_async`."""
    with located(origin):
        if how not in ("inner", "left"):
            raise SettingError(f"how is {how!r}: a lookup can be 'left' (nulls where nothing is known) or 'inner'")
        timeout_us, cache_us = (
            parse_duration(timeout, "timeout"),
            0 if cache is None else parse_duration(cache, "cache"),
        )
        if isinstance(function, LookupTable) == (schema is not None):
            raise SettingError(
                "schema is given, but the table declares its columns itself: leave schema out"
                if schema is not None
                else "schema is missing: declare the columns that the answers add, such as {'city': pa.string()}"
            )
        keys, inner = column_names(key, "key"), how == "inner"
        added = function.schema if isinstance(function, LookupTable) else schema
        assert added is not None
        spec = AsyncLookup(function, keys, added, concurrency, timeout_us, ordered, inner, cache_us, origin)
    return operator_node(spec, (end,), origin)


def split_up(end: Input, conditions: Mapping[str, str | Expression], rest: str, origin: Origin | None) -> Node:
    """See `Stream.split`: the rest is the main output, the others are side outputs."""
    if not isinstance(conditions, Mapping):
        raise PlanError(
            f"split got {as_given(conditions)}: write conditions by name, such as {{'late': 'dep_delay > 15'}}",
            origin=origin,
        )
    if rest in conditions:
        raise PlanError(
            f"split has a condition named {rest!r}, which is also the name of the rest: pass another rest=",
            origin=origin,
        )
    with located(origin):
        spec = Split(tuple((name, expression(value, origin)) for name, value in conditions.items()), origin)
    return operator_node(spec, (end,), origin)


def _interval(columns: JoinColumns, between: Between) -> IntervalJoin:
    if not isinstance(between, Sequence) or isinstance(between, str) or len(between) != 2:
        raise PlanError(f"between is {as_given(between)}: write two durations, such as ('-5min', '10min'), or 'latest'")
    before, after = between
    if isinstance(after, Expression):
        until = plain_name(after)
        if until is None:
            raise PlanError(f"between ends with {after.sql}: compute it before with with_columns, and name the column")
        return IntervalJoin(columns, _bound(before), until=until)
    return IntervalJoin(columns, _bound(before), _bound(after))


def _bound(value: Duration) -> int:
    """The microseconds of a duration that may be negative."""
    if isinstance(value, str) and value.strip().startswith("-"):
        return -parse_duration(value.strip().removeprefix("-"), "between")
    if isinstance(value, timedelta) and value < timedelta():
        return -parse_duration(-value, "between")
    return parse_duration(value, "between")
