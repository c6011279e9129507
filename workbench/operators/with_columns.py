"""Add computed columns to each record, or replace columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from workbench.operators.base import Operator
from workbench.operators.projection import (
    Column,
    NamedExpressions,
    ProjectionLogic,
    computed_columns,
    describe_columns,
    input_column,
)
from workbench.origin import Origin


@dataclass(frozen=True, eq=False)
class WithColumns:
    """Adds columns at the end, in the order given; a name that exists is replaced where it stands.

    Every expression sees the input record, never another expression's result. Event times do not change, even when the
    column that they came from is replaced.

    Args:
        columns: pairs of name and expression.
        origin: the user's line, for errors.

    Example:
        >>> WithColumns((("late", expr("dep_delay > 15")),)).describe()
        'dep_delay > 15 AS late'
    """

    columns: NamedExpressions
    origin: Origin | None = field(default=None, repr=False)
    kind: ClassVar[str] = "with_columns"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        return self._project(inputs[0])[0]

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return describe_columns(self.columns)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return ProjectionLogic(*self._project(inputs[0]))

    def _project(self, schema: pa.Schema) -> tuple[pa.Schema, list[Column]]:
        columns = {item.name: (item, input_column(index)) for index, item in enumerate(schema)}
        columns |= computed_columns(self.columns, schema, self.kind, self.origin)
        return pa.schema([item for item, _ in columns.values()]), [column for _, column in columns.values()]
