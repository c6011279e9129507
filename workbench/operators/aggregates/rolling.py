"""The rolling of integer batches: the part of the kernel call that is the same for every batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.state.key_table import Folds


@dataclass(frozen=True, slots=True)
class Fold:
    """One folded number per group.

    Attributes:
        operation, place: the operation, and its cell.
        column: of the values; None where none are read.
        seen: whether the number after each row is needed.
    """

    operation: int
    place: int
    column: str | None
    seen: bool


class RollPlan:
    """The arguments of the rolling kernels for a fixed set of folds over columns of int64.

    Args:
        folds: in order; those of one column share its address.
        columns: that must have no nulls.
    """

    __slots__ = ("_addresses", "_columns", "_fixed", "_folds_of", "rows")

    def __init__(self, folds: Sequence[Fold], columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._folds_of = [[k for k, fold in enumerate(folds) if fold.column == name] for name in self._columns]
        self._addresses = np.zeros(len(folds), np.int64)
        shown = np.full(len(folds), -1, np.int64)
        self.rows = {fold.place: row for row, fold in enumerate(fold for fold in folds if fold.seen)}
        for k, fold in enumerate(folds):
            shown[k] = self.rows[fold.place] if fold.seen else -1
        operations = np.array([fold.operation for fold in folds], np.int64)
        places = np.array([fold.place for fold in folds], np.int64)
        self._fixed: Folds = (operations, places, self._addresses, shown)

    def take(self, batch: pa.RecordBatch) -> Folds | None:
        """The kernel's arguments for a batch, valid as long as the batch lives; None where a value is null."""
        for name, folds in zip(self._columns, self._folds_of, strict=True):
            column = batch.column(name)
            if column.null_count:
                return None
            if folds:
                address = column.buffers()[1].address + 8 * column.offset
                for k in folds:
                    self._addresses[k] = address
        return self._fixed

    def place(self, fold: int) -> int:
        """The cell of a fold."""
        return int(self._fixed[1][fold])

    def out(self, rows: int) -> Int64s:
        """Shape (seen folds, rows): room for the output."""
        return np.empty((len(self.rows), rows), np.int64)
