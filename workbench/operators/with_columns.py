"""Add computed columns to each record, or replace columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from workbench.operators.base import Operator
from workbench.operators.projection import (
    Column,
    NamedExpressions,
    ProjectionLogic,
    columns_read,
    computed_columns,
    describe_columns,
    input_column,
    kept_columns,
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
        kept: the columns that something reads, None for all; the planner leaves the others out.

    Example:
        >>> WithColumns((("late", expr("dep_delay > 15")),)).describe()
        'dep_delay > 15 AS late'
    """

    columns: NamedExpressions
    origin: Origin | None = field(default=None, repr=False)
    kept: tuple[str, ...] | None = field(default=None, repr=False)
    kind: ClassVar[str] = "with_columns"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        return self._project(inputs[0])[0]

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return describe_columns(self.columns)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return ProjectionLogic(*self._project(inputs[0]))

    def narrowed(self, used: tuple[str, ...]) -> WithColumns:
        """The same without the columns that are not used, added or not."""
        return replace(self, kept=used)

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str]:
        """The used columns that it passes on, and what the expressions of the others read."""
        added = kept_columns(self.columns, used)
        return frozenset(used).difference(name for name, _ in added) | columns_read(added)

    def _project(self, schema: pa.Schema) -> tuple[pa.Schema, list[Column]]:
        columns = {item.name: (item, input_column(index)) for index, item in enumerate(schema)}
        if added := kept_columns(self.columns, self.kept):
            columns |= computed_columns(added, schema, self.kind, self.origin)
        names = columns if self.kept is None else self.kept
        return pa.schema([columns[name][0] for name in names]), [columns[name][1] for name in names]
