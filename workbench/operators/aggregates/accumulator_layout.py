"""The cells of an operator's aggregates: the numbers that they are computed from, shared where aggregates need the
same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.compiled.machinery.codes import COUNT, MAX, MIN, SUM
from workbench.elements import Int64s
from workbench.operators.aggregates.aggregations import Aggregation, Function

_CELLS: dict[Function, tuple[int, ...]] = {
    "count": (COUNT,),
    "sum": (SUM, COUNT),
    "min": (MIN, COUNT),
    "max": (MAX, COUNT),
    "mean": (SUM, COUNT),
}
_CELL_NAMES = {COUNT: "count", SUM: "sum", MIN: "min", MAX: "max"}
_INT_START = {COUNT: 0, SUM: 0, MIN: 2**63 - 1, MAX: -(2**63)}
_FLOAT_START = {SUM: 0.0, MIN: np.nan, MAX: -np.inf}


@dataclass(frozen=True, slots=True)
class Cell:
    """One number per group; aggregates over the same column share cells."""

    operation: int
    column: str | None
    float: bool

    @property
    def name(self) -> str:
        return f"{_CELL_NAMES[self.operation]}({self.column or ''})"


@dataclass(frozen=True, slots=True)
class Layout:
    """The cells of several aggregates over batches of one schema; immutable.

    Attributes:
        cells: in the order of the first aggregates that need them.
        plan: for each aggregate its function, the type of its result, and the cells of its value and of its count.
        only_counted: by column, whether only its count is needed and not its values.
        only_for_null: cells that only record whether there was a value.
        operations, decimal, start: of each cell: its operation, whether it holds floats, and the bits of an empty
            group.
        same: counts that are equal until a null arrives, and the one that is kept for them.
        all_int64: all columns have int64 values.
        fields: of the cells in a snapshot.
    """

    cells: tuple[Cell, ...]
    plan: tuple[tuple[Function, pa.DataType, int, int | None], ...]
    only_counted: dict[str, bool]
    only_for_null: frozenset[int]
    operations: Int64s
    decimal: npt.NDArray[np.uint8]
    start: Int64s
    same: dict[int, int]
    all_int64: bool
    fields: tuple[pa.Field, ...]


@lru_cache(maxsize=256)
def layout_of(aggregations: tuple[Aggregation, ...], schema: pa.Schema) -> Layout:
    """The layout of these aggregates; cached, because each subtask asks for it, and again after every failure.

    Raises:
        ExpressionError, PlanError: see ``Aggregation.output_type``.
    """
    kinds = [aggregation.output_type(schema) for aggregation in aggregations]
    cells: list[Cell] = []
    cell_at: dict[tuple[int, str | None], int] = {}
    for aggregation in aggregations:
        column = aggregation.column
        decimal = column is not None and pa.types.is_floating(schema.field(column).type)
        for operation in _CELLS[aggregation.function]:
            if (operation, column) not in cell_at:
                cell_at[operation, column] = len(cells)
                cells.append(Cell(operation, column, decimal and operation != COUNT))
    only_counted: dict[str, bool] = {}
    for cell in cells:
        if cell.column is not None:
            only_counted[cell.column] = cell.operation == COUNT and only_counted.get(cell.column, True)
    plan: list[tuple[Function, pa.DataType, int, int | None]] = []
    for aggregation, kind in zip(aggregations, kinds, strict=True):
        places = [cell_at[operation, aggregation.column] for operation in _CELLS[aggregation.function]]
        plan.append((aggregation.function, kind, places[0], places[1] if len(places) > 1 else None))
    counted = {(COUNT, a.column) for a in aggregations if a.function in ("count", "mean")}
    start = np.zeros(len(cells), np.int64)
    for at, cell in enumerate(cells):
        if cell.float:
            start.view(np.float64)[at] = _FLOAT_START[cell.operation]
        else:
            start[at] = _INT_START[cell.operation]
    return Layout(
        tuple(cells),
        tuple(plan),
        only_counted,
        frozenset(at for name, at in cell_at.items() if name[0] == COUNT and name not in counted),
        np.array([cell.operation for cell in cells], np.int64),
        np.array([cell.float for cell in cells], np.uint8),
        start,
        _same_counts(cells),
        all(only or pa.types.is_int64(schema.field(name).type) for name, only in only_counted.items()),
        tuple(pa.field(f"cell:{cell.name}", pa.float64() if cell.float else pa.int64()) for cell in cells),
    )


def _same_counts(cells: list[Cell]) -> dict[int, int]:
    """Maps each count to the first, which alone is kept."""
    counts = [at for at, cell in enumerate(cells) if cell.operation == COUNT]
    counts.sort(key=lambda at: cells[at].column is not None)  # a count of rows first: it never differs
    return dict.fromkeys(counts[1:], counts[0]) if counts else {}
