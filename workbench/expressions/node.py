"""A compiled part of an expression: its type and a closure that computes it for a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Datum = Any
"""An Arrow array with a value per row, or an Arrow scalar that stands for all rows."""

Evaluate = Callable[[pa.RecordBatch], Datum]

_NO_ROWS = pa.RecordBatch.from_arrays([], names=[])


@dataclass(frozen=True, slots=True)
class Node:
    """A typed computation.

    Attributes:
        type: of the value.
        evaluate: takes a batch to an array of its length, or to a scalar.
        text: SQL of this part, for errors.
        constant: the value when it depends on no column, else None.
        encoded: for a dictionary-encoded column, takes a batch to it as it is stored; `evaluate` decodes it.
    """

    type: pa.DataType
    evaluate: Evaluate
    text: str
    constant: pa.Scalar | None = None
    encoded: Evaluate | None = None


def constant(value: pa.Scalar, text: str) -> Node:
    """A value that is the same for every row."""
    return Node(value.type, lambda batch: value, text, value)


def null_of(type_: pa.DataType, text: str = "NULL") -> Node:
    """The null of a type."""
    return constant(pa.scalar(None, type_), text)


def apply(kernel: str, operands: Sequence[Node], type_: pa.DataType, text: str, options: Any = None) -> Node:
    """An Arrow kernel over operands that already have the types that it needs; folded when all are constant."""
    return call(_kernel(kernel, options), operands, type_, text)


def apply_or_null(kernel: str, operands: Sequence[Node], type_: pa.DataType, text: str, options: Any = None) -> Node:
    """Like `apply`, for a kernel that refuses some values: those rows become null."""
    return call(_null_on_error(_kernel(kernel, options), type_), operands, type_, text)


def call(function: Callable[..., Datum], operands: Sequence[Node], type_: pa.DataType, text: str) -> Node:
    """A function of the operands' values; folded when all are constant."""
    evaluate = _evaluate(function, [operand.evaluate for operand in operands])
    if all(operand.constant is not None for operand in operands):
        return constant(evaluate(_NO_ROWS), text)
    varying = [at for at, operand in enumerate(operands) if operand.constant is None]
    encoded = operands[varying[0]].encoded
    if len(varying) == 1 and encoded is not None:
        values = [operand.constant for operand in operands]
        evaluate = _on_dictionary(function, values, varying[0], encoded, evaluate)
    return Node(type_, evaluate, text)


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


def _on_dictionary(
    function: Callable[..., Datum], values: Sequence[Datum], at: int, encoded: Evaluate, otherwise: Evaluate
) -> Evaluate:
    """Computes the function once for each value of a dictionary instead of once for each row.

    Args:
        function: its operand number `at` is the column, the others are constants.
        values: the constants.
        at: the place of the column.
        encoded: takes a batch to the dictionary-encoded column.
        otherwise: computes it on the decoded column, for one with nulls or with more values than rows.
    """

    def evaluate(batch: pa.RecordBatch) -> Datum:
        column = encoded(batch)
        dictionary = column.dictionary
        if column.indices.null_count or len(dictionary) > len(column):
            return otherwise(batch)
        result = function(*values[:at], dictionary, *values[at + 1 :])
        return result.take(column.indices) if isinstance(result, pa.Array) else result

    return evaluate


def _kernel(name: str, options: Any) -> Callable[..., Datum]:
    run = pc.get_function(name).call
    if options is None:
        return lambda *values: run(values)
    return lambda *values: run(values, options)


def _null_on_error(function: Callable[..., Datum], type_: pa.DataType) -> Callable[..., Datum]:
    """`function`, but null where it raises: a batch that fails is halved until the failing rows stand alone."""

    def attempt(*values: Datum) -> Datum:
        try:
            return function(*values)
        except pa.ArrowInvalid:
            rows = max((len(value) for value in values if isinstance(value, pa.Array)), default=None)
            if rows is None:
                return pa.scalar(None, type_)
            if rows == 1:
                return pa.nulls(1, type_)
            middle = rows // 2
            halves = (_slice(values, 0, middle), _slice(values, middle, rows - middle))
            return pa.concat_arrays([attempt(*half) for half in halves])

    return attempt


def _slice(values: Sequence[Datum], offset: int, length: int) -> list[Datum]:
    return [value.slice(offset, length) if isinstance(value, pa.Array) else value for value in values]
