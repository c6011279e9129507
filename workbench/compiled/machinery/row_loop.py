"""Compiles users' functions: a function of one row's values becomes a loop over whole columns.

The function is compiled for the types of the columns that it takes, and the loop around it is generated for these
columns, so that the compiler sees both as one piece of code. Integers arrive as int64 and other numbers as float64, as
in Python, so a column's width in memory does not change a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.origin import Origin

Column = npt.NDArray[Any]


class NotCompilableError(Exception):
    """A function cannot be compiled for these columns.

    Attributes:
        reason: numba's, in one line.
        origin: the line in the function that is at fault, if numba reports it.
    """

    def __init__(self, reason: str, origin: Origin | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.origin = origin


@dataclass(frozen=True, slots=True)
class Value:
    """One value that a compiled function returns.

    Attributes:
        dtype: int64, uint64, float64 or bool.
        optional: whether it can be None.
    """

    dtype: np.dtype[Any]
    optional: bool


@dataclass(frozen=True, slots=True)
class RowLoop:
    """A function compiled for columns of certain types.

    Attributes:
        values: what the function returns, one or several for each row.
        loop: numba's, which takes the columns and fills the arrays of the values.
    """

    values: tuple[Value, ...]
    loop: Callable[..., None]

    def __call__(self, columns: Sequence[Column]) -> list[tuple[Column, Column | None]]:
        """Call the function once per row, without the interpreter lock.

        Args:
            columns: shape (n,) each, contiguous, of the types that it was compiled for.

        Returns:
            For each value an array of shape (n,), and if it is optional, a mask that is False where it is None.
        """
        n = len(columns[0])
        made: list[tuple[Column, Column | None]] = [
            (np.zeros(n, value.dtype), np.ones(n, np.bool_) if value.optional else None) for value in self.values
        ]
        self.loop(*columns, *(array for pair in made for array in pair if array is not None))
        return made


class RowFunction:
    """A user's function that can be compiled, once for each combination of types.

    Values that the function reads from outside, such as a global number, become part of the machine code and keep their
    value at compilation. So nothing of it is cached on disk or kept longer than this object.

    Args:
        function: a plain function of values, or one that is already compiled by numba.

    Example:
        >>> loop = RowFunction(lambda n, by=2: n * by).compile([np.dtype(np.int32)])
        >>> loop([np.array([3, 4], np.int32)])[0][0].tolist()
        [6, 8]
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._loops: dict[tuple[np.dtype[Any], ...], RowLoop] = {}

    def compile(self, columns: Sequence[np.dtype[Any]]) -> RowLoop:
        """The loop over columns of these types, in the order of the parameters; others have their defaults.

        Raises:
            NotCompilableError: with numba's reason.
        """
        made_for = tuple(columns)
        if made_for not in self._loops:
            compiler = import_module("workbench.compiled.machinery.row_compiler")  # which imports numba
            self._loops[made_for] = compiler.compile_rows(self._function, made_for)
        return self._loops[made_for]
