"""The rows of a batch that a condition selects, in one of three forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.elements import Mask
from workbench.expressions.tree.node import Coded, Rows


@dataclass(frozen=True, slots=True)
class Codes:
    """The rows whose dictionary code is accepted.

    Attributes:
        column: dictionary-encoded, no row is null.
        accepted: shape (values of the dictionary,), 1 if the rows of a code are selected.
    """

    column: pa.DictionaryArray
    accepted: npt.NDArray[np.uint8]


Choice: TypeAlias = pa.BooleanArray | Codes | Rows
"""A mask, in which null counts as false; dictionary codes; or the numbers of the rows, in order."""


def accepted_codes(condition: Coded) -> Coded:
    """By code, 1 where the condition is true: shape (codes,), uint8."""

    def evaluate(dictionary: pa.Array) -> npt.NDArray[np.uint8]:
        values = condition.evaluate(dictionary)
        if isinstance(values, pa.Scalar):
            return np.full(len(dictionary), values.as_py() is True, np.uint8)
        mask: Mask = values.fill_null(False).to_numpy(zero_copy_only=False)
        return mask.view(np.uint8)

    return Coded(condition.column, evaluate)
