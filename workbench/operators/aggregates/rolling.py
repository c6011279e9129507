"""The rolling of integer batches: the part of the kernel call that is the same for every batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.state.key_table import Folds


@dataclass(frozen=True, slots=True)
class Fold:
    """One folded number per group.

    Attributes:
        operation, place: the operation, and its cell.
        column: of the values; None if it reads none.
        seen: whether the number after each row is needed.
    """

    operation: int
    place: int
    column: str | None
    seen: bool


class RolledColumn(NamedTuple):
    """How an aggregate after each row follows from the folds.

    Attributes:
        value: the row of the output with its values.
        divisor: the row with the numbers that they are divided by, for a mean; else None.
        time: the type of the result if it is a time; else None.
    """

    value: int
    divisor: int | None
    time: pa.DataType | None


class RollPlan:
    """The arguments of the rolling kernels for a fixed set of folds over columns of int64.

    Args:
        folds: in order; those of one column share its address.
        columns: that must have no nulls.
        rolled: the aggregates, from the output's row of each cell that is seen.

    Attributes:
        columns: the aggregates.
    """

    __slots__ = ("_addresses", "_fixed", "_folds_of", "_seen", "columns")

    def __init__(
        self,
        folds: Sequence[Fold],
        columns: Sequence[str],
        rolled: Callable[[Mapping[int, int]], Iterable[RolledColumn]],
    ) -> None:
        self._folds_of = [(name, [k for k, fold in enumerate(folds) if fold.column == name]) for name in columns]
        self._addresses = np.zeros(len(folds), np.int64)
        shown = np.full(len(folds), -1, np.int64)
        rows = {fold.place: row for row, fold in enumerate(fold for fold in folds if fold.seen)}
        self._seen = len(rows)
        self.columns = tuple(rolled(rows))
        for k, fold in enumerate(folds):
            shown[k] = rows[fold.place] if fold.seen else -1
        operations = np.array([fold.operation for fold in folds], np.int64)
        places = np.array([fold.place for fold in folds], np.int64)
        self._fixed: Folds = (operations, places, self._addresses, shown)

    def take(self, batch: pa.RecordBatch) -> Folds | None:
        """The kernel's arguments for a batch, valid as long as the batch lives; None where a value is null."""
        for name, folds in self._folds_of:
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
        return np.empty((self._seen, rows), np.int64)
