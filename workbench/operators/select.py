"""Make each record out of chosen or computed columns only."""

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
    kept_columns,
)
from workbench.origin import Origin


@dataclass(frozen=True, eq=False)
class Select:
    """Records of exactly the columns given, in the order given; event times stay with their records.

    Args:
        columns: pairs of name and expression.
        origin: the user's line, for errors.
        kept: the columns that something reads, None for all; the planner leaves the others out.

    Example:
        >>> Select((("origin", col("origin")), ("hours", col("minutes") / 60))).describe()
        'origin, minutes / 60 AS hours'
    """

    columns: NamedExpressions
    origin: Origin | None = field(default=None, repr=False)
    kept: tuple[str, ...] | None = field(default=None, repr=False)
    kind: ClassVar[str] = "select"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        return self._project(inputs[0])[0]

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return describe_columns(self.columns)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return ProjectionLogic(*self._project(inputs[0]))

    def narrowed(self, used: tuple[str, ...]) -> Select:
        """The same columns without those that are not used."""
        return replace(self, kept=used)

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str]:
        """What the expressions of the used columns read."""
        return columns_read(kept_columns(self.columns, used))

    def _project(self, schema: pa.Schema) -> tuple[pa.Schema, list[Column]]:
        columns = computed_columns(kept_columns(self.columns, self.kept), schema, self.kind, self.origin)
        return pa.schema([item for item, _ in columns.values()]), [column for _, column in columns.values()]
