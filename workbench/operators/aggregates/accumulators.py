"""The state of aggregates for many groups: cells in arrays, indexed by a group's slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.compiled import fold_floats, fold_ints, merge_cells, roll_slots, running_floats, running_ints, warm_up
from workbench.compiled.machinery.codes import COUNT, SUM
from workbench.elements import Int64s
from workbench.errors import RecordError
from workbench.operators.aggregates.accumulator_layout import Cell, layout_of
from workbench.operators.aggregates.aggregations import Aggregation, is_time
from workbench.operators.aggregates.rolling import Fold, RolledColumn, RollPlan
from workbench.operators.snapshots.pieces import column_in
from workbench.state.key_table import KeyTable

if TYPE_CHECKING:
    from workbench.compiled.folding.accumulate import Float64s, Valid

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

_ALL_VALID: Valid = np.empty(0, np.uint8)
_INT64, _FLOAT64 = pa.int64(), pa.float64()
_NO_INTS: Int64s = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Values:
    """A column of a batch as numbers: int64 or float64 by type, and which of them are not null."""

    ints: Int64s | None
    floats: Float64s | None
    valid: Valid


class Accumulators:
    """The state of several aggregates for many groups: cells in arrays, indexed by a group's slot.

    Args:
        aggregations: the functions; see ``Aggregation.output_type`` for errors.
        schema: of the batches.

    Example:
        >>> from workbench.operators.aggregates.aggregations import count, sum
        >>> schema = pa.schema({"delay": pa.int64()})
        >>> accumulators = Accumulators([sum("delay"), count()], schema)
        >>> accumulators.grow(2)
        >>> accumulators.update(np.array([0, 1, 0]), pa.record_batch([[5, 7, 9]], schema=schema))
        >>> [column.to_pylist() for column in accumulators.results(np.array([0, 1]))]
        [[14, 7], [2, 1]]
    """

    __slots__ = (
        "_cells",
        "_floats",
        "_ints",
        "_layout",
        "_only_counted",
        "_only_for_null",
        "_roll",
        "_same",
        "_start",
    )

    def __init__(self, aggregations: Sequence[Aggregation], schema: pa.Schema) -> None:
        warm_up(fold_ints, fold_floats, merge_cells)
        cells = self._layout = layout_of(tuple(aggregations), schema)
        self._cells, self._start = cells.cells, cells.start
        self._only_counted, self._only_for_null = cells.only_counted, cells.only_for_null
        self._same = cells.same
        self._roll: RollPlan | None = None
        self._ints: Int64s = np.empty((0, len(self._cells)), np.int64)
        self._floats: Float64s = self._ints.view(np.float64)

    def _separate(self) -> None:
        """A null has arrived: from now on every count is kept separately."""
        for at, kept in self._same.items():
            self._ints[:, at] = self._ints[:, kept]
        self._same = {}
        self._roll = None

    @property
    def capacity(self) -> int:
        """The number of slots that there is room for."""
        return len(self._ints)

    def grow(self, slots: int) -> None:
        """Make room for slots 0 to slots - 1; new ones are empty groups."""
        held = len(self._ints)
        if slots <= held:
            return
        capacity = slots if slots > 2 * held else 2 * held
        cells = np.empty((capacity, len(self._cells)), np.int64)
        cells[:held] = self._ints
        cells[held:] = self._start
        self._ints, self._floats = cells, cells.view(np.float64)

    def clear(self, slots: Int64s) -> None:
        """Make these slots empty groups again."""
        self._ints[slots] = self._start

    def retain(self, slots: Int64s) -> None:
        """Keep only these slots; ``slots[i]`` becomes slot i, and all others are dropped."""
        self._ints = self._ints[slots]
        self._floats = self._ints.view(np.float64)

    def update(
        self,
        slots: Int64s,
        batch: pa.RecordBatch,
        rows_of: Int64s | None = None,
        weights: Int64s | None = None,
    ) -> None:
        """Fold each row of `batch` into its slot.

        Args:
            slots: shape (n,).
            batch: n rows.
            rows_of: by slot, its number of rows in `batch`, if known: then they are not counted again.
            weights: shape (n,), 1 for rows that are added and -1 for those that are taken back, which minima and maxima
                cannot be; None: all are added.

        Raises:
            RecordError: an integer sum exceeds the range of int64.
        """
        for cell, values, at in self._inputs(batch):
            if weights is not None:
                self._weigh(cell, values, at, slots, weights)
            elif rows_of is not None and cell.operation == COUNT and cell.column is None:
                self._ints[: len(rows_of), at] += rows_of
            elif values.floats is not None and cell.float:
                fold_floats(cell.operation, slots, values.floats, values.valid, self._floats, at)
            elif fold_ints(cell.operation, slots, _ints(values), values.valid, self._ints, at):
                raise _overflow(cell)

    def _weigh(self, cell: Cell, values: _Values, at: int, slots: Int64s, weights: Int64s) -> None:
        """Add the values, times their weights, to one cell."""
        if cell.operation == COUNT:
            fold_ints(SUM, slots, weights, values.valid, self._ints, at)
        elif cell.float:
            assert values.floats is not None
            fold_floats(SUM, slots, values.floats * weights, values.valid, self._floats, at)
        elif fold_ints(SUM, slots, _ints(values) * weights, values.valid, self._ints, at):
            raise _overflow(cell)

    def merge(self, other: Accumulators, sources: Int64s, targets: Int64s) -> None:
        """Fold slot ``sources[i]`` of `other`, which has the same aggregates, into slot ``targets[i]``, for each i.

        Raises:
            RecordError: an integer sum exceeds the range of int64.
        """
        if self._same != other._same:
            self._separate()
            other._separate()
        cells = other._ints, other._floats, self._ints, self._floats
        failed = merge_cells(self._layout.operations, self._layout.decimal, sources, targets, *cells)
        if failed >= 0:
            raise _overflow(self._cells[failed])

    def running(self, slots: Int64s, batch: pa.RecordBatch) -> list[pa.Array]:
        """Fold each row of `batch` into its slot, and return each aggregate's value after each row, shape (n,).

        Raises:
            RecordError: an integer sum exceeds the range of int64.
        """
        plan = self._roll_plan()
        folds = None if plan is None else plan.take(batch)
        if plan is not None and folds is not None:
            out = plan.out(len(slots))
            self._check(plan, roll_slots(slots, *folds, self._ints, out))
            return self._rolled(plan, out)
        inputs = self._inputs(batch)
        after: dict[int, Numbers | None] = {}
        for cell, values, at in inputs:
            if at in self._only_for_null and not len(values.valid):  # no row can leave its group without a value
                fold_ints(COUNT, slots, _NO_INTS, _ALL_VALID, self._ints, at)
                after[at] = None
            elif values.floats is not None and cell.float:
                floats = np.empty(len(slots), np.float64)
                running_floats(cell.operation, slots, values.floats, values.valid, self._floats, at, floats)
                after[at] = floats
            else:
                ints = np.empty(len(slots), np.int64)
                if running_ints(cell.operation, slots, _ints(values), values.valid, self._ints, at, ints):
                    raise _overflow(cell)
                after[at] = ints
        for at, kept in self._same.items():
            after[at] = None if at in self._only_for_null else after[kept]
        return self._finish(after.__getitem__)

    def roll(self, table: KeyTable, keys: Int64s, batch: pa.RecordBatch) -> list[pa.Array] | None:
        """The result of ``running`` for slots that are the codes of `keys` in `table`, in one pass that also adds keys.

        Returns None and does nothing where a value is null or not int64.

        Raises:
            RecordError: an integer sum exceeds the range of int64.
        """
        plan = self._roll or self._roll_plan()
        folds = None if plan is None else plan.take(batch)
        if plan is None or folds is None:
            return None
        rows = len(keys)
        out = plan.out(rows)
        row = 0
        while True:
            row, failed = table.roll(keys, row, folds, self._ints, out)
            if failed >= 0:
                self._check(plan, failed)
            if row == rows:
                return self._rolled(plan, out)
            self.grow(self.capacity + 1)

    def _roll_plan(self) -> RollPlan | None:
        """How batches without nulls are rolled; None unless all values are int64."""
        if self._roll is None and self._layout.all_int64:
            folds = []
            for at, cell in enumerate(self._cells):
                if at not in self._same:
                    column = None if cell.operation == COUNT else cell.column
                    seen = at not in self._only_for_null or at in self._same.values()
                    folds.append(Fold(cell.operation, at, column, seen))
            self._roll = RollPlan(folds, list(self._only_counted), self._rolled_columns)
        return self._roll

    def _rolled_columns(self, rows: Mapping[int, int]) -> Iterator[RolledColumn]:
        """How each aggregate follows from the folds, given the row of each cell that is shown."""
        for function, kind, value_at, count_at in self._layout.plan:
            value = rows[self._same.get(value_at, value_at)]
            divisor = None
            if function == "mean":
                assert count_at is not None
                divisor = rows[self._same.get(count_at, count_at)]
            plain = _INT64 if divisor is None else _FLOAT64
            yield RolledColumn(value, divisor, None if kind.equals(plain) else kind)

    def _check(self, plan: RollPlan, failed: int) -> None:
        if failed >= 0:
            raise _overflow(self._cells[plan.place(failed)])

    def _rolled(self, plan: RollPlan, out: Int64s) -> list[pa.Array]:
        """The aggregates after each row; each has at least one value, so that no count has to be checked."""
        results: list[pa.Array] = []
        rows, memory = out.shape[1], pa.py_buffer(out)
        for value, divisor, time in plan.columns:
            if divisor is None:
                column = pa.Array.from_buffers(_INT64, rows, [None, memory], 0, value * rows)
            else:
                column = pa.array(out[value] / out[divisor])
            results.append(column if time is None else _as_time(column, time))
        return results

    def results(self, slots: Int64s) -> list[pa.Array]:
        """Each aggregate's value for these slots, shape (len(slots),)."""
        return self._finish(lambda at: self._numbers(slots, at))

    def _numbers(self, slots: Int64s, at: int) -> Numbers:
        """A copy of one cell for these slots."""
        numbers: Numbers = (self._floats if self._cells[at].float else self._ints)[slots, self._same.get(at, at)]
        return numbers

    def _inputs(self, batch: pa.RecordBatch) -> list[tuple[Cell, _Values, int]]:
        """Cell, values and position of everything that is to be folded."""
        columns: dict[str | None, _Values] = {None: _Values(None, None, _ALL_VALID)}
        for name, only_counted in self._only_counted.items():
            columns[name] = _read(name, batch.column(name), only_counted)
            if self._same and len(columns[name].valid):
                self._separate()
        return [(cell, columns[cell.column], at) for at, cell in enumerate(self._cells) if at not in self._same]

    def _finish(self, numbers: Callable[[int], Numbers | None]) -> list[pa.Array]:
        """The aggregates' values from those of the cells; None for a count means that it is nowhere zero."""
        results: list[pa.Array] = []
        for function, kind, value_at, count_at in self._layout.plan:
            values = numbers(value_at)
            assert values is not None
            counts = None if count_at is None else numbers(count_at)
            mask = None
            if counts is not None:
                mask = counts == 0
                if function == "mean":
                    values = values / np.maximum(counts, 1)
            column = pa.array(values, mask=mask if mask is not None and mask.any() else None)
            results.append(_as_time(column, kind) if is_time(kind) else column)
        return results

    def state_fields(self) -> list[pa.Field]:
        """The fields of ``state_columns``."""
        return list(self._layout.fields)

    def state_columns(self, slots: Int64s) -> list[pa.Array]:
        """A copy of the state of these slots, one column per cell."""
        return [pa.array(self._numbers(slots, at)) for at in range(len(self._cells))]

    def first_state_columns(self, slots: int) -> list[pa.Array]:
        """The result of ``state_columns`` for slots 0 to slots - 1, several times as fast; equal cells are one
        array."""
        columns: dict[int, pa.Array] = {}
        for at, cell in enumerate(self._cells):
            if at not in self._same:
                columns[at] = pa.array((self._floats if cell.float else self._ints)[:slots, at].copy())
        return [columns[self._same.get(at, at)] for at in range(len(self._cells))]

    def load(self, slots: Int64s, table: pa.Table) -> None:
        """Load state from ``state_columns`` into these slots; columns are found by name.

        Raises:
            ValueError: a column is of another type, or has a null.
        """
        fields = self._layout.fields
        counts = [table.column(fields[at].name) for at in (*self._same, *self._same.values())]
        if any(not column.equals(counts[0]) for column in counts):
            self._separate()
        for at, field in enumerate(fields):
            target = self._floats if self._cells[at].float else self._ints
            target[slots, at] = column_in(table, field.name, field.type)


def _as_time(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column.cast(pa.int32()).view(kind) if pa.types.is_date32(kind) else column.view(kind)


def _read(name: str | None, column: pa.Array, only_counted: bool) -> _Values:
    valid = column.is_valid().cast(pa.uint8()).to_numpy() if column.null_count else _ALL_VALID
    if only_counted:
        return _Values(None, None, valid)
    kind = column.type
    if pa.types.is_floating(kind):
        return _Values(None, _numbers(column, pa.float64()), valid)
    if pa.types.is_date32(kind):
        column = column.view(pa.int32())
    elif is_time(kind):
        column = column.view(pa.int64())
    elif pa.types.is_uint64(kind) and (pc.max(column).as_py() or 0) > 2**63 - 1:
        raise RecordError(
            f"column {name!r} holds {pc.max(column)}, beyond int64: cast it to float64 before aggregating"
        )
    return _Values(_numbers(column, pa.int64()), None, valid)


def _numbers(column: pa.Array, kind: pa.DataType) -> npt.NDArray[Any]:
    """The values of a numeric column as `kind`, 0 where null; a view where possible."""
    if column.type != kind:
        column = column.cast(kind)
    values: npt.NDArray[Any] = (column.fill_null(0) if column.null_count else column).to_numpy()
    return values


def _ints(values: _Values) -> Int64s:
    return _NO_INTS if values.ints is None else values.ints


def _overflow(cell: Cell) -> RecordError:
    return RecordError(f"{cell.name} exceeded the range of int64: cast the column to float64 before aggregating")
