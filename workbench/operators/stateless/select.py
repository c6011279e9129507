"""Reduce each record to selected or computed columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from workbench.operators.stateless.projection import Column, Projection, columns_read, computed_columns, kept_columns


@dataclass(frozen=True, eq=False)
class Select(Projection):
    """Emits records of exactly the given columns, in the given order; event times stay with their records.

    Args:
        columns: pairs of name and expression.
        origin: the user's line, for errors.
        kept: the columns that are read downstream, None for all; the planner leaves the others out.

    Example:
        >>> Select((("origin", col("origin")), ("hours", col("minutes") / 60))).describe()
        'origin, minutes / 60 AS hours'
    """

    kind: ClassVar[str] = "select"

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str]:
        """The columns that the expressions of the used columns read."""
        return columns_read(kept_columns(self.columns, used))

    def _project(self, schema: pa.Schema) -> list[tuple[pa.Field, Column]]:
        return list(computed_columns(kept_columns(self.columns, self.kept), schema, self.kind, self.origin).values())
