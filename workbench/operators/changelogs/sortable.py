"""Values as integers in the same order, so that rows can be ranked by several columns of any types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.elements import Int64s
from workbench.errors import PlanError, unknown
from workbench.state.key_columns import is_text, plain, to_ints

_LEAST, _MOST = -(2**63), 2**63 - 1
_SIGN = np.int64(_LEAST)


@dataclass(frozen=True, slots=True)
class Order:
    """One column of ORDER BY.

    Attributes:
        column: its name.
        descending: whether the largest value comes first.
        nulls_first: whether nulls come first; as in Spark they are smaller than any value if this is not said.

    Example:
        >>> Order("price", descending=True).describe()
        'price DESC'
    """

    column: str
    descending: bool = False
    nulls_first: bool | None = None

    def describe(self) -> str:
        """As in SQL."""
        usual = self.nulls_first is None or self.nulls_first != self.descending
        nulls = "" if usual else f" NULLS {'FIRST' if self.nulls_first else 'LAST'}"
        return f"{self.column}{' DESC' if self.descending else ''}{nulls}"


def check_orders(orders: Sequence[Order], schema: pa.Schema) -> None:
    """Reject columns that do not exist or have no order.

    Raises:
        PlanError: names the column.
    """
    for order in orders:
        if order.column not in schema.names:
            raise PlanError(unknown("column", order.column, schema.names))
        kind = schema.field(order.column).type
        if not (is_text(kind) or is_sortable(kind)):
            raise PlanError(
                f"rows cannot be ordered by {order.column!r}, which has type {kind}: numbers, strings, dates and "
                "timestamps have an order"
            )


def is_sortable(kind: pa.DataType) -> bool:
    """Whether values of this type become integers without looking at the other values."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_date, pa.types.is_timestamp)
    return any(test(kind) for test in tests)


def ranks(column: pa.Array, order: Order) -> Int64s:
    """Shape (n,): numbers, the larger the earlier a row comes in this order; comparable within the column only.

    Those of types with ``is_sortable`` are comparable with those of other batches, too. The smallest of all integers
    ranks like the one above it, because a null takes its place.

    Example:
        >>> np.argsort(~ranks(pa.array([2.5, None, float("nan"), -1.0]), Order("x", descending=True)))
        array([2, 0, 3, 1])
    """
    values: Int64s
    if is_text(column.type):
        values = pc.rank(plain(column), tiebreaker="dense").to_numpy().astype(np.int64)
    else:
        values = sortable(column)
    if order.descending is False:
        values = ~values
    if column.null_count:
        first = not order.descending if order.nulls_first is None else order.nulls_first
        null = column.is_null().to_numpy(zero_copy_only=False)
        values = np.where(null, _MOST if first else _LEAST, np.clip(values, _LEAST + 1, _MOST - 1))
    return values


def sortable(column: pa.Array) -> Int64s:
    """Shape (n,): the values as integers in the same order, NaN above all numbers; nulls become any number."""
    if column.null_count:
        column = column.fill_null(_zero(column.type))
    kind, numbers = column.type, to_ints(column)
    if pa.types.is_floating(kind):
        return numbers ^ ((numbers >> 63) & _MOST)
    return numbers ^ _SIGN if pa.types.is_uint64(kind) else numbers


def _zero(kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_date32(kind):
        return pa.scalar(0, pa.int32()).cast(kind)
    return pa.scalar(0, pa.int64()).cast(kind) if pa.types.is_temporal(kind) else pa.scalar(0).cast(kind)
