"""Computing columns with a compiled function of columns, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.compiled.machinery.row_loop import Column, RowLoop
from workbench.elements import Int64s, Mask, Records
from workbench.errors import RecordError
from workbench.operators.contract.base import OperatorContext, Output
from workbench.operators.functions.dead_letters import PoisonRecords
from workbench.operators.functions.user_function import FailedRowError, UserFunction, on_record
from workbench.raised import shown

_NONE: Int64s = np.empty(0, np.int64)


class CompiledCalls:
    """Calls a compiled loop once per batch, on the records without a null among the columns that it takes."""

    def __init__(
        self, user: UserFunction, poison: PoisonRecords, taken: pa.Schema, outputs: pa.Schema, loop: RowLoop
    ) -> None:
        self._user = user
        self._poison = poison
        self._taken = taken
        self._outputs = outputs
        self._loop = loop

    def open(self, context: OperatorContext) -> None:
        """Receive the operator's context, which dead letters need."""
        self._poison.open(context)

    def __call__(self, records: Records) -> tuple[pa.RecordBatch, Int64s | None]:
        """As in `RecordCalls`; where it fails on a record it is called again for parts of the batch."""
        parts = list(self._poison.parts(records, self._computed))
        if len(parts) == 1 and parts[0][1].num_rows == len(records):
            return parts[0][1], None
        empty = pa.RecordBatch.from_pylist([], self._outputs)
        parents = [np.arange(first, first + rows.num_rows) for first, rows in parts]
        return pa.concat_batches([empty, *(rows for _, rows in parts)]), np.concatenate([*parents, _NONE])

    def send(self, out: Output, records: Records) -> None:
        """Emit the dead letters among these records."""
        self._poison.send(out, with_times=records.timestamps is not None)

    def _computed(self, records: Records) -> pa.RecordBatch:
        taken = records.batch.select(self._taken.names)
        columns = [plain(column) for column in taken.columns]
        known = _known(columns)
        if known is not None:
            chosen = pa.array(known)
            columns = [column.filter(chosen) for column in columns]
        arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
        try:
            made = self._loop(arrays)
        except Exception as error:
            at = self._culprit(arrays)
            row = at if known is None else int(np.flatnonzero(known)[at])
            explained = self._user.explained(error, on_record(taken, row), self._outputs, "a value")
            raise FailedRowError(explained, row) from error
        values = [
            self._declared(_spread(*pair, known), item, taken) for pair, item in zip(made, self._outputs, strict=True)
        ]
        return pa.RecordBatch.from_arrays(values, schema=self._outputs)

    def _culprit(self, arrays: Sequence[Column]) -> int:
        """The first row on which the function raises; it is stateless, so halves can be tried."""
        begin, end = 0, len(arrays[0])
        while end - begin > 1:
            middle = (begin + end) // 2
            with suppress(Exception):  # whatever it raised the first time
                self._loop([array[begin:middle] for array in arrays])
                begin = middle
                continue
            end = middle
        return begin

    def _declared(self, column: pa.Array, item: pa.Field, taken: pa.RecordBatch) -> pa.Array:
        """The function's results, in the declared type.

        Raises:
            FailedRowError: a value does not fit: a fraction where integers are declared, or a number that is too large.
        """
        try:
            return _cast(column, item.type)
        except pa.ArrowInvalid:
            at = next(at for at in range(len(column)) if not _can_be(column.slice(at, 1), item.type))
        raise FailedRowError(
            self._user.error(
                f"returned {shown(column[at].as_py())} for column {item.name!r}, which is declared as {item.type}, "
                f"{on_record(taken, at)}"
            ),
            at,
        )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column for a compiled function: instants and durations are whole microseconds."""
    return pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) else kind


def plain(column: pa.Array) -> pa.Array:
    """The column as compiled functions receive it.

    Raises:
        RecordError: an instant or a duration exceeds 64 bits in microseconds.
    """
    if plain_type(column.type) == column.type:
        return column
    options = pc.CastOptions(_in_microseconds(column.type), allow_time_truncate=True)
    try:
        return pc.cast(column, options=options).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise RecordError(
            f"a value of type {column.type} does not fit in 64 bits as microseconds, the unit in which functions "
            f"receive it ({error}): is it in another unit?"
        ) from None


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if plain_type(kind) != kind:
        column = column.cast(pa.int64()).cast(_in_microseconds(kind))
    return column.cast(kind)


def _can_be(column: pa.Array, kind: pa.DataType) -> bool:
    try:
        _cast(column, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _known(columns: Sequence[pa.Array]) -> Mask | None:
    """Which rows have no null; None where no row has one."""
    masks = [column.is_valid().to_numpy(zero_copy_only=False) for column in columns if column.null_count]
    return np.logical_and.reduce(masks) if masks else None


def _spread(values: Column, given: Mask | None, known: Mask | None) -> pa.Array:
    """The values at the rows without nulls; null elsewhere and where the function returned none."""
    if known is None:
        return pa.array(values, mask=None if given is None else ~given)
    spread = np.zeros(len(known), values.dtype)
    spread[known] = values
    null = ~known
    if given is not None:
        null[known] = ~given
    return pa.array(spread, mask=null)
