"""Streams grouped without a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast, get_args

import pyarrow as pa

from workbench.api.streams.building import computed_for_aggregates, located, named_aggregates, operator_node
from workbench.api.streams.joining import by_keys
from workbench.api.streams.missing import Hinting, check_named
from workbench.arguments import whole_number
from workbench.durations import Duration, parse_duration
from workbench.errors import PlanError, SettingError, unknown
from workbench.expressions import ColumnName, column_names
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.aggregates.window_functions import AnyAggregation, HolisticAggregation
from workbench.operators.changelogs.group_aggregate import GroupAggregate
from workbench.operators.changelogs.over_rows import OverRows
from workbench.operators.changelogs.row_kinds import KIND, is_changelog
from workbench.operators.changelogs.sortable import Order
from workbench.operators.windows.over import Over, Unit
from workbench.origin import Origin, caller
from workbench.plan.logical import Input, Node
from workbench.state.key_columns import check_keys

if TYPE_CHECKING:
    from workbench.api.streams.stream import Stream


class GroupedStream(Hinting):
    """A stream in groups whose results change with later records.

    Source: SQL's ``GROUP BY`` without a window; Flink's ``GroupedTable``.

    Example:
        >>> wb.Stream.from_table(pa.table({"city": ["Rome"]})).group_by("city")
        GroupedStream by city; aggregate(...) comes next
    """

    def __init__(self, stream: Stream, keys: tuple[str, ...]) -> None:
        self._stream = stream
        self._keys = keys

    def __repr__(self) -> str:
        by = f" by {', '.join(self._keys)}" if self._keys else ""
        return f"GroupedStream{by}; aggregate(...) comes next"

    def aggregate(self, *unnamed: object, **aggregates: AnyAggregation) -> Stream:
        """The keys and the aggregates of each group, as a changelog: a batch of records updates each group once.

        It keeps the aggregates of each group for ever; for ``wb.count_distinct``, and minima and maxima of text or of a
        changelog, also the different values of each group.

        Source: SQL's ``GROUP BY``; Flink's ``group_by(...).select(...)``.

        Args:
            unnamed: refused with a sentence, because each aggregate needs a name.
            aggregates: by the name of the column: ``n=wb.count()``, ``users=wb.count_distinct("user")``.

        Raises:
            PlanError: no aggregate, or one that is not defined for the column's type, or needs a window.
            ExpressionError: an unknown column.

        Example:
            >>> sales = wb.Stream.from_table(pa.table({"item": ["a", "b", "a"], "price": [5, 9, 7]}))
            >>> totals = sales.group_by("item").aggregate(total=wb.sum("price"))
            >>> sorted(totals.collect()["total"].to_pylist())
            [9, 12]
        """
        origin = caller()
        check_named(unnamed, "aggregate", "aggregate(n=wb.count())", origin)
        kinds = (Aggregation, HolisticAggregation)
        end, named = named_aggregates(self._stream._end, aggregates, kinds, origin)
        hidden = computed_for_aggregates(end, self._stream._end)
        spec = GroupAggregate(self._keys, named)
        if self._keys:
            return self._stream._made(operator_node(spec, (by_keys(end, self._keys),), origin), hidden)
        node = operator_node(spec, (replace(end, exchange="rebalance", partitioner=None),), origin)
        return self._stream._made(replace(node, parallelism=1), hidden)


def key_names(columns: Sequence[ColumnName], what: str, schema: pa.Schema, origin: Origin | None) -> tuple[str, ...]:
    """The names of columns that can be keys."""
    with located(origin):
        names = column_names(tuple(columns), what)
        check_keys(names, schema)
    return names


def distinct_rows(end: Input, columns: Sequence[ColumnName], origin: Origin | None) -> Node:
    """See `Stream.distinct`."""
    every = tuple(name for name in end.schema.names if name != KIND)
    names = key_names(columns or every, "distinct", end.schema, origin)
    return operator_node(GroupAggregate(names), (by_keys(end, names),), origin)


def over_rows(
    end: Input,
    keys: Sequence[ColumnName],
    unit: Unit,
    preceding: int | Duration | None,
    aggregates: Mapping[str, Aggregation],
    order: ColumnName | None,
    origin: Origin | None,
) -> Node:
    """See `Stream.over`."""
    names = key_names(keys, "over", end.schema, origin) if keys else ()
    back: int | None = None
    with located(origin):
        if unit not in get_args(Unit):
            raise SettingError(unknown("unit", unit, get_args(Unit)))
        if preceding is not None and unit == "rows":
            back = whole_number(preceding, "preceding", 0)
        elif preceding is not None:
            back = parse_duration(cast("Duration", preceding), "preceding")
    made, named = named_aggregates(end, aggregates, (Aggregation,), origin)
    if is_changelog(end.schema):
        spec: Over | OverRows = _over_changes(names, named, unit, back, order, origin)
    elif order is None:
        spec = Over(names, named, unit, back)
    else:
        raise PlanError("these rows stay, and OVER takes them in order of event time: leave out order=", origin=origin)
    if names:
        return operator_node(spec, (by_keys(made, names),), origin)
    return replace(operator_node(spec, (replace(made, exchange="rebalance", partitioner=None),), origin), parallelism=1)


def _over_changes(
    keys: tuple[str, ...],
    aggregates: tuple[tuple[str, Aggregation], ...],
    unit: Unit,
    preceding: int | None,
    order: ColumnName | None,
    origin: Origin | None,
) -> OverRows:
    if unit != "rows":
        raise PlanError("OVER a changelog counts rows: use unit='rows', in SQL ROWS ... PRECEDING", origin=origin)
    if order is None:
        raise PlanError("the rows of a changelog have no order of their own: name a column with order=", origin=origin)
    return OverRows(keys, aggregates, Order(column_names(order, "order")[0]), preceding)
