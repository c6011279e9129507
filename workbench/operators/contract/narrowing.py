"""Operators that can leave out columns that nothing reads."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, Self, runtime_checkable

import pyarrow as pa

from workbench.operators.contract.base import OperatorSpec


@runtime_checkable
class NarrowsColumns(OperatorSpec, Protocol):
    """A spec from which the planner can derive one with fewer output columns and less work; see ``plan.pruning``."""

    def narrowed(self, used: tuple[str, ...]) -> Self:
        """The same operator with only the output columns `used`: one or more, in their present order."""

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str] | None:
        """The columns that it reads of each input for the output columns `used`; None: all."""


def kept_positions(schema: pa.Schema, kept: Collection[str] | None) -> list[int]:
    """The positions of the columns in `kept`, or of all columns for None."""
    return [at for at, name in enumerate(schema.names) if kept is None or name in kept]


def kept_schema(schema: pa.Schema, kept: Collection[str] | None) -> pa.Schema:
    """The schema with only the columns in `kept`, or unchanged for None."""
    return schema if kept is None else pa.schema([item for item in schema if item.name in kept], schema.metadata)
