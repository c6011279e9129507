"""Computed columns: the common part of `select` and `with_columns`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from operator import methodcaller
from typing import ClassVar, Self

import pyarrow as pa

from workbench.elements import Records
from workbench.errors import ExpressionError
from workbench.expressions import Compiled, Expression, compile_expression
from workbench.operators.contract.base import Operator, Output
from workbench.origin import Origin

NamedExpressions = tuple[tuple[str, Expression], ...]
"""Output columns in order: name and expression."""

Column = Callable[[pa.RecordBatch], pa.Array]
"""Computes one output column from a batch, with as many rows."""


class ProjectionLogic(Operator):
    """Builds each output batch column by column; event times stay with their rows."""

    def __init__(self, schema: pa.Schema, columns: Sequence[Column]) -> None:
        self._schema = schema
        self._columns = tuple(columns)
        places = [column.column for column in columns if isinstance(column, Compiled) and column.column is not None]
        self._places = places if len(places) == len(columns) else None  # set where nothing is computed

    def process(self, records: Records, port: int, out: Output) -> None:
        batch = records.batch
        if self._places is not None:
            chosen = batch.select(self._places)
            if chosen.schema.equals(self._schema, check_metadata=True):
                out.emit(Records(chosen, records.timestamps))
                return
            self._places = None
        arrays = [column(batch) for column in self._columns]
        out.emit(Records(pa.RecordBatch.from_arrays(arrays, schema=self._schema), records.timestamps))

    def parent_of(self, row: int) -> int | None:
        return row


@dataclass(frozen=True, eq=False)
class Projection(ABC):
    """An operator whose output columns are input columns or computed by expressions; subclasses say which.

    Args:
        columns: pairs of name and expression.
        origin: the user's line, for errors.
        kept: the columns that are read downstream, None for all; the planner leaves the others out.
    """

    columns: NamedExpressions
    origin: Origin | None = field(default=None, repr=False)
    kept: tuple[str, ...] | None = field(default=None, repr=False)
    kind: ClassVar[str]
    takes_changes: ClassVar[bool] = True

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        return pa.schema([item for item, _ in self._project(inputs[0])])

    def describe(self) -> str:
        return describe_columns(self.columns)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        columns = self._project(inputs[0])
        return ProjectionLogic(pa.schema([item for item, _ in columns]), [column for _, column in columns])

    def narrowed(self, used: tuple[str, ...]) -> Self:
        """The same without the unused columns."""
        return replace(self, kept=used)

    @abstractmethod
    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str]:
        """The input columns that the used ones are computed from."""

    @abstractmethod
    def _project(self, schema: pa.Schema) -> list[tuple[pa.Field, Column]]:
        """The kept columns in order, computed from an input of this schema."""


def computed_columns(
    columns: NamedExpressions, schema: pa.Schema, operator: str, origin: Origin | None
) -> dict[str, tuple[pa.Field, Column]]:
    """The compiled columns by name, in the order given.

    Raises:
        ExpressionError: no columns, two of the same name, or an expression that does not fit `schema`.
    """
    if not columns:
        raise ExpressionError(f"{operator} needs at least one column", origin=origin)
    result: dict[str, tuple[pa.Field, Column]] = {}
    for name, expression in columns:
        if name in result:
            raise ExpressionError(
                f"{operator} names the column {name!r} twice: give one of them another name", origin=origin
            )
        compiled = compile_expression(expression, schema, origin)
        known = None if compiled.column is None else schema.field(compiled.column).metadata
        result[name] = (pa.field(name, compiled.type, metadata=known), compiled)
    return result


def input_column(index: int) -> Column:
    """The input column at `index`, unchanged."""
    column: Column = methodcaller("column", index)
    return column


def kept_columns(columns: NamedExpressions, kept: Collection[str] | None) -> NamedExpressions:
    """The columns whose names are in `kept`, or all for None."""
    return columns if kept is None else tuple(item for item in columns if item[0] in kept)


def columns_read(columns: NamedExpressions) -> frozenset[str]:
    """The input columns that the expressions read."""
    return frozenset(name for _, expression in columns for name in expression.columns)


def describe_columns(columns: NamedExpressions) -> str:
    """``origin, dep_delay > 15 AS late``."""
    return ", ".join(
        expression.sql if expression.columns == (name,) and expression.name == name else expression.alias(name).sql
        for name, expression in columns
    )
