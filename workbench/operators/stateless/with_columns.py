"""Add computed columns to each record, or replace columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from workbench.operators.stateless.projection import (
    Column,
    Projection,
    columns_read,
    computed_columns,
    input_column,
    kept_columns,
)


@dataclass(frozen=True, eq=False)
class WithColumns(Projection):
    """Adds columns at the end, in the given order; an existing column is replaced in place.

    Every expression reads the input record, never another expression's result. Event times do not change, even when the
    column that they came from is replaced.

    Args:
        columns: pairs of name and expression.
        origin: the user's line, for errors.
        kept: the columns that are read downstream, None for all; the planner leaves the others out.

    Example:
        >>> WithColumns((("late", expr("dep_delay > 15")),)).describe()
        'dep_delay > 15 AS late'
    """

    kind: ClassVar[str] = "with_columns"

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str]:
        """The used columns that it passes on, and what the expressions of the others read."""
        added = kept_columns(self.columns, used)
        return frozenset(used).difference(name for name, _ in added) | columns_read(added)

    def _project(self, schema: pa.Schema) -> list[tuple[pa.Field, Column]]:
        columns = {item.name: (item, input_column(index)) for index, item in enumerate(schema)}
        if added := kept_columns(self.columns, self.kept):
            columns |= computed_columns(added, schema, self.kind, self.origin)
        return [columns[name] for name in (columns if self.kept is None else self.kept)]
