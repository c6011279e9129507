"""Computing columns with a user's function of columns: in the interpreter, record by record, or compiled, at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.compiled.machinery.row_loop import Column, RowLoop
from workbench.errors import RecordError
from workbench.operators.functions.record_loop import CHUNK, LoopError, ResultError, columns_loop
from workbench.operators.functions.user_function import FailedRowError, UnfitRowError, UserFunction, on_record
from workbench.raised import kind_of, shown


class BoundFunction(Protocol):
    """A function of columns, made ready for the columns at hand."""

    def __call__(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The declared columns for a batch, of as many rows.

        Raises:
            FailedRowError: the function raises, or gives what does not fit.
        """
        ...


class InterpretedFunction:
    """Calls the function once per record.

    Args:
        user: the function.
        taken: the columns that it takes.
        outputs: the columns that it gives.
    """

    def __init__(self, user: UserFunction, taken: pa.Schema, outputs: pa.Schema) -> None:
        self._user = user
        self._taken = taken
        self._outputs = outputs
        self._given = pa.schema([pa.field(item.name, plain_type(item.type)) for item in outputs])
        self._loop = columns_loop(taken, outputs)

    def __call__(self, batch: pa.RecordBatch) -> list[pa.Array]:
        parts = [self._rows(batch.slice(at, CHUNK), at) for at in range(0, max(1, batch.num_rows), CHUNK)]
        columns = pa.concat_batches(parts).columns
        return declared(self._user, batch.select(self._taken.names), columns, self._outputs)

    def _rows(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        made: list[list[Any]] = [[] for _ in self._outputs]
        try:
            columns = [plain(batch.column(name)).to_pylist() for name in self._taken.names]
            self._loop(self._user.function, columns, made)
        except LoopError as failure:
            where = f"on record {shown(failure.record)}"
            if isinstance(cause := failure.cause, ResultError):
                names = ", ".join(self._outputs.names)
                error = self._user.error(
                    f"returned {shown(cause.result)} ({kind_of(cause.result)}), expected a tuple of "
                    f"{len(self._outputs)} values for the columns {names}, {where}"
                )
                raise FailedRowError(error, first + failure.at) from None
            error = self._user.explained(cause, where, self._outputs, "a value")
            raise FailedRowError(error, first + failure.at) from cause
        try:
            return self._user.batch(made, self._given, lambda at: on_record(batch.select(self._taken.names), at))
        except UnfitRowError as error:
            raise FailedRowError(error, first + error.row) from None


class CompiledFunction:
    """Calls the compiled loop once per batch, on the records without a null among the columns that it takes."""

    def __init__(self, user: UserFunction, taken: pa.Schema, outputs: pa.Schema, loop: RowLoop) -> None:
        self._user = user
        self._taken = taken
        self._outputs = outputs
        self._loop = loop

    def __call__(self, batch: pa.RecordBatch) -> list[pa.Array]:
        taken = batch.select(self._taken.names)
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
        return declared(self._user, taken, [_spread(*pair, known) for pair in made], self._outputs)

    def _culprit(self, arrays: Sequence[Column]) -> int:
        """The first row on which the function raises; it has no memory, so halves can be tried."""
        begin, end = 0, len(arrays[0])
        while end - begin > 1:
            middle = (begin + end) // 2
            with suppress(Exception):  # whatever it raised the first time
                self._loop([array[begin:middle] for array in arrays])
                begin = middle
                continue
            end = middle
        return begin


def plain_type(kind: pa.DataType) -> pa.DataType:
    """What a column is to a function: instants and durations are whole microseconds."""
    return pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) else kind


def plain(column: pa.Array) -> pa.Array:
    """The column as functions get it.

    Raises:
        RecordError: an instant or a duration that has more than 64 bits in microseconds.
    """
    if plain_type(column.type) == column.type:
        return column
    options = pc.CastOptions(_in_microseconds(column.type), allow_time_truncate=True)
    try:
        return pc.cast(column, options=options).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise RecordError(
            f"a value of type {column.type} has more than 64 bits in microseconds, as which functions get it ({error}):"
            " is it of another unit?"
        ) from None


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")


def declared(
    user: UserFunction, batch: pa.RecordBatch, columns: Sequence[pa.Array], outputs: pa.Schema
) -> list[pa.Array]:
    """What a function gave, in the declared types.

    Raises:
        FailedRowError: a value does not fit: a fraction where whole numbers are declared, or a number that is too
            large.
    """
    made = []
    for column, item in zip(columns, outputs, strict=True):
        try:
            made.append(_cast(column, item.type))
        except pa.ArrowInvalid:
            raise _unfit(user, batch, column, item) from None
    return made


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if plain_type(kind) != kind:
        column = column.cast(pa.int64()).cast(_in_microseconds(kind))
    return column.cast(kind)


def _unfit(user: UserFunction, batch: pa.RecordBatch, column: pa.Array, item: pa.Field) -> FailedRowError:
    for at in range(len(column)):
        try:
            _cast(column.slice(at, 1), item.type)
        except pa.ArrowInvalid:
            error = user.error(
                f"returned {shown(column[at].as_py())} for column {item.name!r}, which is declared as {item.type}, "
                f"{on_record(batch, at)}"
            )
            return FailedRowError(error, at)
    raise AssertionError("every value fits")


def _known(columns: Sequence[pa.Array]) -> npt.NDArray[np.bool_] | None:
    """Which rows have no null; None where that is all of them."""
    masks = [column.is_valid().to_numpy(zero_copy_only=False) for column in columns if column.null_count]
    return np.logical_and.reduce(masks) if masks else None


def _spread(values: Column, given: npt.NDArray[np.bool_] | None, known: npt.NDArray[np.bool_] | None) -> pa.Array:
    """The values at the rows that are known, null elsewhere and where none was given."""
    if known is None:
        return pa.array(values, mask=None if given is None else ~given)
    spread = np.zeros(len(known), values.dtype)
    spread[known] = values
    null = ~known
    if given is not None:
        null[known] = ~given
    return pa.array(spread, mask=null)
