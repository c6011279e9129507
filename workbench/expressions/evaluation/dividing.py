"""Division of a column of whole numbers by a constant, in one kernel call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from workbench.compiled import divide_by, warm_up
from workbench.compiled.machinery.codes import DIVISOR_MAX
from workbench.expressions.tree.node import Datum, Node


def constant_divisor(node: Node) -> int | None:
    """The value of a constant bigint by which `by_constant` can divide, else None."""
    if node.constant is None or node.type != pa.int64() or not node.constant.is_valid:
        return None
    value = int(node.constant.as_py())
    return value if 1 <= value <= DIVISOR_MAX else None


def by_constant(divisor: int, *, remainder: bool, otherwise: Callable[[Datum], Datum]) -> Callable[[Datum], Datum]:
    """A function from bigints to their quotients, towards zero, or to their remainders.

    Args:
        divisor: from 1 to DIVISOR_MAX.
        remainder: which of the two.
        otherwise: the general function, for scalars and for batches with very large numbers.
    """
    warm_up(divide_by)

    def run(value: Datum) -> Datum:
        if isinstance(value, pa.Scalar) or not len(value) or (value.null_count and value.offset):
            return otherwise(value)
        count = len(value)
        validity, numbers = value.buffers()
        out = np.empty(count, np.int64)
        if not divide_by(np.frombuffer(numbers, np.int64, count, 8 * value.offset), divisor, int(remainder), out):
            return otherwise(value)
        buffers = [validity if value.null_count else None, pa.py_buffer(out)]
        return pa.Array.from_buffers(pa.int64(), count, buffers, value.null_count)

    return run
