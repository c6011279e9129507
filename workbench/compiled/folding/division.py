"""Dividing whole numbers by one divisor, in vector instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.compiled.machinery.compiled import I64, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.elements import Int64s

_EXACT_BITS = 51


@compiled(INTS_IN, I64, I64, INTS)
def divide_by(values: Int64s, divisor: int, remainder: int, out: Int64s) -> bool:
    """Divide with truncation towards zero, as in SQL: by a floating-point multiplication whose result is then corrected
    by at most one.

    Args:
        values: shape (n,).
        divisor: from 1 to DIVISOR_MAX.
        remainder: 1 for the remainders, which have the sign of the values; 0 for the quotients.
        out: shape (n,), filled.

    Returns:
        False if a value is too large for this; `out` is then unspecified.
    """
    inverse = 1.0 / divisor
    large = np.int64(0)
    for i in range(len(values)):
        sign = values[i] >> 63  # -1 or 0
        size = (values[i] ^ sign) - sign
        large |= size >> _EXACT_BITS
        quotient = np.int64(size * inverse)
        rest = size - quotient * divisor
        above, below = np.int64(rest >= divisor), np.int64(rest < 0)
        if remainder:
            quotient = rest - (above - below) * divisor
        else:
            quotient += above - below
        out[i] = (quotient ^ sign) - sign
    return bool(large == 0)
