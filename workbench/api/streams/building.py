"""The common part of the fluent objects: turning arguments into nodes, with the user's line in every error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar, cast

import pyarrow as pa

from workbench.api.streams.changelogs import changelog_sink_node, check_names, check_takes_changes, in_order
from workbench.arguments import as_given
from workbench.connectors.contract.base import Sink
from workbench.errors import ExpressionError, PlanError, WorkbenchError, unknown
from workbench.expressions import Expression, expr, lit
from workbench.operators.aggregates.window_functions import AnyAggregation, HolisticAggregation, for_schema
from workbench.operators.changelogs.row_kinds import is_changelog
from workbench.operators.contract.base import HasSideOutputs, OperatorSpec
from workbench.operators.stateless.with_columns import WithColumns
from workbench.origin import Origin
from workbench.plan.logical import Input, Node

Made = TypeVar("Made", bound=AnyAggregation)


def operator_node(
    spec: OperatorSpec, inputs: tuple[Input, ...], origin: Origin | None, *, adds_kinds: bool = False
) -> Node:
    """The node of an operator; its errors have the user's line.

    Args:
        spec: the operator.
        inputs: its inputs.
        origin: the user's line.
        adds_kinds: whether it is our own, and makes a changelog of records that are only added.
    """
    schemas = [item.schema for item in inputs]
    with located(origin):
        if any(map(is_changelog, schemas)):
            check_takes_changes(spec)
            inputs = tuple(in_order(item) if is_changelog(item.schema) else item for item in inputs)
        side = dict(spec.side_schemas(schemas)) if isinstance(spec, HasSideOutputs) else {}
        made = spec.output_schema(schemas)
        if not adds_kinds:
            check_names(made, schemas, spec)
        return Node(spec, inputs, made, side, None, origin)


def sink_node(sink: Sink, end: Input, origin: Origin | None) -> Node:
    """See `Stream.sink_to`."""
    if not isinstance(sink, Sink):
        raise PlanError(
            f"sink_to got {as_given(sink)}, which is not a sink: pass one, such as wb.TableSink('delays')",
            origin=origin,
        )
    with located(origin):
        if is_changelog(end.schema):
            return changelog_sink_node(sink, end, origin)
        sink.check(end.schema)
    return Node(sink, (end,), end.schema, {}, None, origin)


@contextmanager
def located(origin: Origin | None) -> Iterator[None]:
    """Add the user's line to errors raised in this context, unless they have one."""
    try:
        yield
    except WorkbenchError as error:
        raise (error if error.origin is not None else type(error)(error.message, origin=origin)) from None


def check_column(name: str, schema: pa.Schema, origin: Origin | None) -> None:
    """Reject the name of a column that does not exist, and suggest the nearest one."""
    if name not in schema.names:
        raise ExpressionError(unknown("column", name, schema.names), origin=origin)


def expression(value: str | Expression | float | bool | None, origin: Origin | None) -> Expression:
    """Convert what a user wrote to an expression: SQL text, a ``col(...)`` tree or a plain value."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        with located(origin):
            return expr(value)
    return lit(value)


def named_aggregates(
    end: Input, aggregates: Mapping[str, Made], kinds: tuple[type[Made], ...], origin: Origin | None
) -> tuple[Input, tuple[tuple[str, Made], ...]]:
    """The aggregates by output column, and the input with the columns that are computed for them.

    Raises:
        PlanError: none, or something that is not an aggregate.
        ExpressionError: an expression that does not fit the columns.
    """
    if not aggregates:
        raise PlanError(
            "aggregate needs at least one aggregate, for example aggregate(flights=wb.count())", origin=origin
        )
    for name, value in aggregates.items():
        if not isinstance(value, kinds):
            raise PlanError(
                f"the aggregate {name!r} is {value!r}: write for example {name}=wb.mean('dep_delay')", origin=origin
            )
    named: list[tuple[str, Made]] = []
    computed: dict[str, Expression] = {}
    for name, value in aggregates.items():
        if value.computed is None:
            named.append((name, value))
            continue
        column = value.computed.sql
        while column in end.schema.names:
            column = f"${column}"
        computed[column] = value.computed
        named.append((name, replace(value, column=column)))
    if computed:
        end = Input(operator_node(WithColumns(tuple(computed.items()), origin), (end,), origin))
    if HolisticAggregation in kinds:
        fitting = [(name, cast("Made", for_schema(value, end.schema))) for name, value in named]
        return end, tuple(fitting)
    return end, tuple(named)


def computed_for_aggregates(end: Input, before: Input) -> tuple[str, ...]:
    """The columns that `named_aggregates` added to an input."""
    return tuple(name for name in end.schema.names if name not in before.schema.names)
