"""From records to records: the nodes of what filters, chooses columns, calls functions and spreads records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from workbench.api.building import check_column, expression, located, operator_node
from workbench.api.preparing import compiling
from workbench.arguments import as_given
from workbench.errors import PlanError, WorkbenchError
from workbench.expressions import Expression, col
from workbench.operators.column_function import ColumnFunction, takes_columns
from workbench.operators.dead_letters import OnError
from workbench.operators.filter import Filter
from workbench.operators.filter_function import FilterFunction
from workbench.operators.map import Map
from workbench.operators.map_columns import MapColumns
from workbench.operators.select import Select
from workbench.operators.user_function import SchemaLike
from workbench.origin import Origin
from workbench.plan.logical import Input, Node
from workbench.plan.partitioner import Partitioner


def filtered(
    end: Input,
    condition: str | Expression | Callable[..., bool | None],
    compiled: bool,
    on_error: OnError,
    origin: Origin | None,
) -> Node:
    """See `Stream.filter`."""
    if callable(condition) and not isinstance(condition, Expression):
        function = ColumnFunction("filter", condition, compiled, origin)
        return _of_columns(FilterFunction(function, on_error=on_error), end, origin)
    if on_error != "fail":
        raise PlanError(
            "no record fails an expression: what has no result is null, and is not kept; leave out on_error",
            origin=origin,
        )
    if compiled:
        raise PlanError(
            "filter compiles functions, such as def late(dep_delay); expressions run compiled as they are: leave "
            "out compiled=True",
            origin=origin,
        )
    return operator_node(Filter(expression(condition, origin), origin), (end,), origin)


def selected(end: Input, columns: Sequence[str], named: Mapping[str, str | Expression], origin: Origin | None) -> Node:
    """See `Stream.select`."""
    for name in columns:
        check_column(name, end.schema, origin)
    chosen = [(name, col(name)) for name in columns]
    chosen += [(name, expression(value, origin)) for name, value in named.items()]
    return operator_node(Select(tuple(chosen), origin), (end,), origin)


def mapped(
    end: Input,
    function: Callable[..., Any],
    schema: SchemaLike | None,
    keep: Sequence[str],
    compiled: bool,
    on_error: OnError,
    origin: Origin | None,
) -> Node:
    """See `Stream.map`."""
    if not (compiled or keep or takes_columns(function, end.schema)):
        return operator_node(Map(function, schema, origin, on_error), (end,), origin)
    of_columns = ColumnFunction("map", function, compiled, origin)
    if not isinstance(keep, Sequence):
        raise PlanError(f"keep is {as_given(keep)}: name the columns to keep, such as ['cab']", origin=origin)
    kept = (keep,) if isinstance(keep, str) else tuple(keep)
    return _of_columns(MapColumns(of_columns, schema, kept, on_error=on_error), end, origin)


def custom_partitioner(
    target: str | Expression | Callable[[pa.RecordBatch], Any], schema: pa.Schema, origin: Origin | None
) -> Partitioner:
    """See `Stream.partition_by`."""
    partitioner = Partitioner(expression(target, origin) if isinstance(target, str) else target, origin)
    try:
        partitioner.compiled(schema)
    except WorkbenchError as error:
        raise located(error, origin) from None
    return partitioner


def _of_columns(spec: MapColumns | FilterFunction, end: Input, origin: Origin | None) -> Node:
    if not spec.function.compiled:
        return operator_node(spec, (end,), origin)
    with compiling(spec.describe()):
        return operator_node(spec, (end,), origin)
