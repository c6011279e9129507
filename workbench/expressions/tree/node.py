"""A compiled part of an expression: its type and a closure that computes it for a batch.

What depends on one dictionary-encoded column alone is computed once for each value of the dictionary, and only when a
batch has a different dictionary from the previous one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import ExpressionError
from workbench.expressions.tree.overflowing import whole, with_nulls

Datum = Any
"""An Arrow array with a value per row, or an Arrow scalar that stands for all rows."""

Evaluate = Callable[[Any], Datum]
"""Takes a batch, or the dictionary of a column."""

Rows = npt.NDArray[np.int32]

_NO_ROWS = pa.RecordBatch.from_arrays([], names=[])


class Coded:
    """A computation on one dictionary-encoded column, by code.

    Args:
        column: its position.
        evaluate: maps the dictionary to an array with a value per code, or to a scalar.
    """

    __slots__ = ("_latest", "column", "evaluate")

    def __init__(self, column: int, evaluate: Callable[[pa.Array], Datum]) -> None:
        self.column = column
        self.evaluate = evaluate
        self._latest: tuple[tuple[int, ...], pa.Array, Datum] | None = None

    def values(self, column: pa.DictionaryArray) -> Datum | None:
        """The value of each code of `column`; None if it is not worthwhile (more codes than rows) or rows are null."""
        if column.null_count:
            return None
        dictionary = column.dictionary
        # The memory of a dictionary that is held here is immutable, and no other one can have its addresses.
        identity = (len(dictionary), dictionary.offset, *(b.address if b else 0 for b in dictionary.buffers()))
        latest = self._latest
        if latest is None or latest[0] != identity:
            if len(dictionary) > len(column):
                return None
            latest = self._latest = (identity, dictionary, self.evaluate(dictionary))
        return latest[2]


@dataclass(frozen=True, slots=True)
class Node:
    """A typed computation.

    Attributes:
        type: of the value.
        evaluate: maps a batch to an array of its length, or to a scalar.
        text: SQL of this part, for errors.
        constant: the value if it depends on no column, else None.
        coded: the same by code, if it depends on only one dictionary-encoded column.
        rows: for a condition, maps a batch to the numbers of the rows for which it is true, shape (k,), in order, if
            that is faster than a mask.
        known: maps a batch to whether the value is not null, if that is faster than the value.
        exact: the decimal that a literal is written as, whose `constant` may be the nearest double.
    """

    type: pa.DataType
    evaluate: Evaluate
    text: str
    constant: pa.Scalar | None = None
    coded: Coded | None = None
    rows: Callable[[pa.RecordBatch], Rows] | None = None
    known: Evaluate | None = None
    exact: pa.Scalar | None = None


class Once:
    """Computes a value that occurs more than once in an expression, once for each batch.

    Args:
        evaluate: computes it.

    Attributes:
        is_shared: whether it occurs more than once; if not, nothing is cached.
    """

    __slots__ = ("_evaluate", "_latest", "is_shared")

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._latest: tuple[weakref.ref[Any], Datum] | None = None
        self.is_shared = False

    def __call__(self, batch: Any) -> Datum:
        if not self.is_shared:
            return self._evaluate(batch)
        latest = self._latest  # subtasks share compiled expressions: read once, replaced as a whole
        if latest is None or latest[0]() is not batch:
            latest = self._latest = weakref.ref(batch, self._forget), self._evaluate(batch)
        return latest[1]

    def _forget(self, batch: weakref.ref[Any]) -> None:
        if self._latest is not None and self._latest[0] is batch:
            self._latest = None


class SomeRows:
    """Some rows of a batch, of which only the columns that are read are copied; nodes take it for a batch.

    Args:
        batch: all rows.
        chosen: a boolean for each, without nulls.

    Example:
        >>> batch = pa.RecordBatch.from_pydict({"n": [1, 2, 3]})
        >>> SomeRows(batch, pa.array([True, False, True])).column(0).to_pylist()
        [1, 3]
    """

    def __init__(self, batch: pa.RecordBatch, chosen: pa.BooleanArray) -> None:
        self._batch, self._chosen = batch, chosen
        self.num_rows = chosen.true_count

    def column(self, at: int) -> pa.Array:
        """The values of a column in these rows."""
        return self._batch.column(at).filter(self._chosen)


def constant(value: pa.Scalar, text: str) -> Node:
    """A value that is the same for every row."""
    return Node(value.type, lambda batch: value, text, value)


def null_of(type_: pa.DataType, text: str = "NULL") -> Node:
    """The null of a type."""
    return constant(pa.scalar(None, type_), text)


def apply(kernel: str, operands: Sequence[Node], type_: pa.DataType, text: str, options: Any = None) -> Node:
    """An Arrow kernel over operands of the required types; folded if all are constant."""
    return call(_kernel(kernel, options), operands, type_, text)


def apply_or_null(kernel: str, operands: Sequence[Node], type_: pa.DataType, text: str, options: Any = None) -> Node:
    """Like `apply`, for a kernel that rejects some values: those rows become null."""
    return call(_null_on_error(kernel, _kernel(kernel, options), type_), operands, type_, text)


def call(function: Callable[..., Datum], operands: Sequence[Node], type_: pa.DataType, text: str) -> Node:
    """A function of the operands' values; folded if all are constant."""
    evaluate = _evaluate(function, [operand.evaluate for operand in operands])
    if all(operand.constant is not None for operand in operands):
        return constant(evaluate(_NO_ROWS), text)
    coded = _together(function, operands)
    return Node(type_, evaluate if coded is None else _by_code(coded, evaluate), text, coded=coded)


def _together(function: Callable[..., Datum], operands: Sequence[Node]) -> Coded | None:
    """The function by code, if all operands that vary depend on the same dictionary-encoded column."""
    parts: list[Evaluate] = []
    columns: set[int] = set()
    for operand in operands:
        if operand.constant is not None:
            parts.append(operand.evaluate)
        elif operand.coded is not None:
            parts.append(operand.coded.evaluate)
            columns.add(operand.coded.column)
        else:
            return None
    return Coded(columns.pop(), _evaluate(function, parts)) if len(columns) == 1 else None


def _by_code(coded: Coded, otherwise: Evaluate) -> Evaluate:
    def evaluate(batch: pa.RecordBatch) -> Datum:
        column = batch.column(coded.column)
        values = coded.values(column)
        if values is None:
            return otherwise(batch)
        return values.take(column.indices) if isinstance(values, pa.Array) else values

    return evaluate


def _evaluate(function: Callable[..., Datum], parts: Sequence[Evaluate]) -> Evaluate:
    if len(parts) == 1:
        (only,) = parts

        def evaluate(batch: pa.RecordBatch) -> Datum:
            return function(only(batch))

    elif len(parts) == 2:
        first, second = parts

        def evaluate(batch: pa.RecordBatch) -> Datum:
            return function(first(batch), second(batch))

    else:

        def evaluate(batch: pa.RecordBatch) -> Datum:
            return function(*[part(batch) for part in parts])

    return evaluate


def _kernel(name: str, options: Any) -> Callable[..., Datum]:
    call = pc.get_function(name).call

    def run(*values: Datum) -> Datum:
        try:
            return call(values) if options is None else call(values, options)
        except pa.ArrowMemoryError as error:
            raise ExpressionError(
                f"{name} of {len(values[0])} rows takes more memory than is available ({error}): compute shorter values"
            ) from error

    return run


_STEADY = 100
"""Batches without an overflow after one with it, until the kernel that raises is used again: its exception takes
longer, the more rows overflow."""


def _null_on_error(kernel: str, function: Callable[..., Datum], type_: pa.DataType) -> Callable[..., Datum]:
    """`function`, but null where it raises; a batch whose failing rows no other way finds is halved until they are
    isolated."""
    exact = whole(kernel, type_)
    careful = 0  # the number of batches for which rows are expected to fail

    def nulled(values: Sequence[Datum]) -> Datum | None:
        nonlocal careful
        found = None if exact is None else exact(*values)
        if found is None:
            found = with_nulls(kernel, type_, values)
        if found is not None:
            careful = _STEADY if found.null_count else careful - 1
        return found

    def attempt(*values: Datum) -> Datum:
        if careful > 0 and (found := nulled(values)) is not None:
            return found
        try:
            return function(*values)
        except pa.ArrowInvalid:
            rows = max((len(value) for value in values if isinstance(value, pa.Array)), default=None)
            if rows is None:
                return pa.scalar(None, type_)
            if rows == 1:
                return pa.nulls(1, type_)
            if (found := nulled(values)) is not None:
                return found
            middle = rows // 2
            halves = (_slice(values, 0, middle), _slice(values, middle, rows - middle))
            return pa.concat_arrays([attempt(*half) for half in halves])

    return attempt


def _slice(values: Sequence[Datum], offset: int, length: int) -> list[Datum]:
    return [value.slice(offset, length) if isinstance(value, pa.Array) else value for value in values]
