"""Records to records: the nodes of operators that filter, select columns, call functions and partition records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from workbench.api.beginning.preparing import compiling
from workbench.api.streams.building import check_column, expression, located, operator_node
from workbench.arguments import as_given, true_or_false
from workbench.errors import PlanError
from workbench.expressions import ColumnName, Expression, col, column_names, lit, refuse_function
from workbench.operators.changelogs.row_kinds import INSERT, KIND, is_changelog
from workbench.operators.functions.called_function import CalledFunction
from workbench.operators.functions.dead_letters import OnError
from workbench.operators.functions.user_function import SchemaLike
from workbench.operators.stateless.filter import Filter
from workbench.operators.stateless.filter_function import FilterFunction
from workbench.operators.stateless.map import Map
from workbench.operators.stateless.select import Select
from workbench.operators.stateless.with_columns import WithColumns
from workbench.origin import Origin
from workbench.plan.logical import Input, Node
from workbench.plan.partitioner import Partitioner


def filtered(
    end: Input,
    conditions: Sequence[str | Expression | Callable[..., bool | None]],
    columns: ColumnName | Sequence[ColumnName] | None,
    compiled: bool,
    on_error: OnError,
    origin: Origin | None,
) -> Node:
    """See `Stream.filter`."""
    if not conditions:
        raise PlanError("filter needs a condition, for example filter('dep_delay > 15')", origin=origin)
    true_or_false(compiled, "compiled")
    first, *more = conditions
    if not more and callable(first) and not isinstance(first, Expression):
        taken = None if columns is None else column_names(columns, "columns")
        function = CalledFunction("filter", first, taken, compiled, on_error, origin)
        return _calling(FilterFunction(function), function, end, origin)
    if columns is not None:
        raise PlanError(
            f"columns is {as_given(columns)}, but it applies only to functions, and an expression names its own "
            "columns: leave out columns",
            origin=origin,
        )
    if on_error != "fail":
        raise PlanError(
            "no record fails an expression, and a record without a result is dropped: leave out on_error",
            origin=origin,
        )
    if compiled:
        raise PlanError(
            "filter compiles functions of columns; expressions are always compiled: leave out compiled=True",
            origin=origin,
        )
    whole = expression(_no_function(first, origin), origin)
    for condition in more:
        whole &= expression(_no_function(condition, origin), origin)
    return operator_node(Filter(whole, origin), (end,), origin)


def _no_function(condition: str | Expression | Callable[..., bool | None], origin: Origin | None) -> str | Expression:
    if isinstance(condition, Expression) or not callable(condition):
        return condition
    raise PlanError(
        f"filter takes several expressions or one function, and {as_given(condition)} is a function beside other "
        "conditions: call filter again for it",
        origin=origin,
    )


def selected(
    end: Input, columns: Sequence[ColumnName], named: Mapping[str, str | Expression], origin: Origin | None
) -> Node:
    """See `Stream.select`."""
    chosen: list[tuple[str, Expression]] = []
    for column in columns:
        if isinstance(column, Expression):
            chosen.append((column.name, column))
        else:
            refuse_function(column, "select")
            check_column(column, end.schema, origin)
            chosen.append((column, col(column)))
    chosen += [(name, expression(value, origin)) for name, value in named.items()]
    if is_changelog(end.schema) and all(name != KIND for name, _ in chosen):
        chosen.append((KIND, col(KIND)))
    return operator_node(Select(tuple(chosen), origin), (end,), origin)


def without(end: Input, columns: Sequence[str], origin: Origin | None) -> Node:
    """See `Stream.drop`."""
    for name in columns:
        check_column(name, end.schema, origin)
    left = [name for name in end.schema.names if name not in columns]
    if not left:
        raise PlanError("drop would leave no columns: keep at least one", origin=origin)
    return selected(end, left, {}, origin)


def renamed(end: Input, names: Mapping[ColumnName, str] | Mapping[str, str], origin: Origin | None) -> Node:
    """See `Stream.rename`."""
    if not isinstance(names, Mapping):
        raise PlanError(f"rename is {as_given(names)}: map old names to new ones, {{'old': 'new'}}", origin=origin)
    new = dict(zip(column_names(tuple(names), "rename"), names.values(), strict=True))
    for name in new:
        check_column(name, end.schema, origin)
    chosen = tuple((new.get(name, name), col(name)) for name in end.schema.names)
    return operator_node(Select(chosen, origin), (end,), origin)


def with_equal_kinds(ends: Sequence[Input], origin: Origin | None) -> tuple[Input, ...]:
    """The inputs of a union: if one is a changelog, the others say as well that they add rows."""
    if not any(is_changelog(end.schema) for end in ends):
        return tuple(ends)
    added = WithColumns(((KIND, lit(INSERT).cast("tinyint")),), origin)
    made = [
        end if is_changelog(end.schema) else Input(operator_node(added, (end,), origin, adds_kinds=True))
        for end in ends
    ]
    order = [name for name in made[0].schema.names if name != KIND]
    return tuple(Input(selected(end, order, {}, origin)) if end.schema.names[-1] != KIND else end for end in made)


def mapped(
    kind: type[Map],
    end: Input,
    function: Callable[..., Any],
    schema: SchemaLike | None,
    columns: ColumnName | Sequence[ColumnName] | None,
    keep: ColumnName | Sequence[ColumnName],
    compiled: bool,
    on_error: OnError,
    origin: Origin | None,
) -> Node:
    """See `Stream.map` and `Stream.flat_map`."""
    taken = None if columns is None else column_names(columns, "columns")
    kept = column_names(keep, "keep")
    spec = kind(function, schema, taken, kept, true_or_false(compiled, "compiled"), origin, on_error)
    return _calling(spec, spec.called, end, origin)


def custom_partitioner(
    target: str | Expression | Callable[[pa.RecordBatch], Any], schema: pa.Schema, origin: Origin | None
) -> Partitioner:
    """See `Stream.partition_by`."""
    partitioner = Partitioner(expression(target, origin) if isinstance(target, str) else target, origin)
    with located(origin):
        partitioner.compiled(schema)
    return partitioner


def _calling(spec: Map | FilterFunction, called: CalledFunction, end: Input, origin: Origin | None) -> Node:
    if not called.compiled:
        return operator_node(spec, (end,), origin)
    with compiling(called.name):
        return operator_node(spec, (end,), origin)
