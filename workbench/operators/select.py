"""Make each record out of chosen or computed columns only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from workbench.operators.base import Operator
from workbench.operators.projection import NamedExpressions, ProjectionLogic, computed_columns, describe_columns
from workbench.origin import Origin


@dataclass(frozen=True, eq=False)
class Select:
    """Records of exactly the columns given, in the order given; event times stay with their records.

    Args:
        columns: pairs of name and expression.
        origin: the user's line, for errors.

    Example:
        >>> Select((("origin", col("origin")), ("hours", col("minutes") / 60))).describe()
        'origin, minutes / 60 AS hours'
    """

    columns: NamedExpressions
    origin: Origin | None = field(default=None, repr=False)
    kind: ClassVar[str] = "select"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        columns = computed_columns(self.columns, inputs[0], self.kind, self.origin)
        return pa.schema([item for item, _ in columns.values()])

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return describe_columns(self.columns)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        columns = computed_columns(self.columns, inputs[0], self.kind, self.origin)
        return ProjectionLogic(self.output_schema(inputs), [column for _, column in columns.values()])
