"""Users' functions compiled: a function of one row's values becomes a loop over whole columns.

The function is compiled for the types of the columns that it takes, and the loop around it is made for these columns,
so that the compiler sees both as one piece of code. Whole numbers arrive as int64 and others as float64, as Python
would have them, so a column's width in memory does not change a result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from linecache import getline
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.core.types import Type
from numba.extending import is_jitted
from numba.np.numpy_support import from_dtype

from workbench.origin import Origin

Column = npt.NDArray[Any]

_SCALARS: dict[str, Type] = {"bool": types.boolean, "int64": types.int64, "float64": types.float64}
_REASON_MAX = 160
_STEP = re.compile(r"^(Failed in nopython mode pipeline.*\n)+")
_RAISED_FROM = re.compile(r"\.* Raised from (.+) \((\d+)\)$")


class NotCompilableError(Exception):
    """A function cannot be compiled for these columns.

    Attributes:
        reason: numba's, in one line.
        origin: the line in the function that is at fault, where numba tells.
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
            For each value an array of shape (n,), and where it is optional one that is False where it is None.
        """
        n = len(columns[0])
        made: list[tuple[Column, Column | None]] = [
            (np.zeros(n, value.dtype), np.ones(n, np.bool_) if value.optional else None) for value in self.values
        ]
        self.loop(*columns, *(array for pair in made for array in pair if array is not None))
        return made


class RowFunction:
    """A user's function that can be compiled; once for each combination of types.

    What the function reads from outside, such as a global number, is part of the machine code: it stays as it was when
    the function was compiled. So nothing of it is cached on disk, nor kept longer than this object.

    Args:
        function: of values; a plain function, or one that numba compiles already.

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
            self._loops[made_for] = self._compiled(made_for)
        return self._loops[made_for]

    def _compiled(self, columns: Sequence[np.dtype[Any]]) -> RowLoop:
        if is_jitted(self._function):
            function: Any = self._function
        elif isinstance(self._function, FunctionType):
            function = njit(nogil=True)(self._function)
        else:
            raise NotCompilableError("it is no plain function", None)
        more = list(signature(self._function).parameters.values())[len(columns) :]
        arguments = (
            *(_SCALARS[_given_as(dtype)] for dtype in columns),
            *(types.Omitted(parameter.default) for parameter in more),
        )
        try:
            function.compile(arguments)
        except Exception as error:
            raise _explained(error) from error
        returned = function.overloads[arguments].signature.return_type
        parts = tuple(returned.types) if isinstance(returned, types.BaseTuple) else (returned,)
        values = tuple(_value(part) for part in parts)
        loop = _loop(function, columns, values, several=isinstance(returned, types.BaseTuple))
        kinds = [types.Array(_element(dtype), 1, "C", readonly=True) for dtype in columns]
        for value in values:
            kinds += [_element(value.dtype)[::1], *([types.boolean[::1]] if value.optional else [])]
        loop.compile(tuple(kinds))
        loop.disable_compile()
        return RowLoop(values, loop)


def _element(dtype: np.dtype[Any]) -> Type:
    element: Type = from_dtype(dtype)
    return element


def _given_as(dtype: np.dtype[Any]) -> str:
    """The name of the type that the function gets of a column, which in the loop's text converts to it."""
    return {"b": "bool", "f": "float64"}.get(dtype.kind, "int64")


def _value(returned: Any) -> Value:
    optional = isinstance(returned, types.Optional)
    kind = types.unliteral(returned.type if optional else returned)
    if isinstance(kind, types.Boolean):
        return Value(np.dtype(np.bool_), optional)
    if isinstance(kind, types.Integer):
        return Value(np.dtype(np.int64 if kind.signed else np.uint64), optional)
    if isinstance(kind, types.Float):
        return Value(np.dtype(np.float64), optional)
    shown = "None" if isinstance(kind, types.NoneType) else str(kind)
    raise NotCompilableError(f"it returns {shown}, and not numbers or booleans", None)


def _loop(function: Any, columns: Sequence[np.dtype[Any]], values: Sequence[Value], *, several: bool) -> Any:
    """The loop around a function, for numba to compile."""
    made = [name for at, value in enumerate(values) for name in (f"o{at}", *([f"ok{at}"] if value.optional else []))]
    given = ", ".join(f"{_given_as(dtype)}(a{at}[i])" for at, dtype in enumerate(columns))
    lines = [
        f"def loop({', '.join([*(f'a{at}' for at in range(len(columns))), *made])}):",
        "    for i in range(len(a0)):",
        f"        row = function({given})",
    ]
    for at, value in enumerate(values):
        one = f"row[{at}]" if several else "row"
        if value.optional:
            lines += [
                f"        value{at} = {one}",
                f"        if value{at} is None:",
                f"            ok{at}[i] = False",
                "        else:",
                f"            o{at}[i] = value{at}",
            ]
        else:
            lines.append(f"        o{at}[i] = {one}")
    names: dict[str, Any] = {"function": function, "int64": types.int64, "float64": types.float64}
    exec(compile("\n".join(lines), "<row loop>", "exec"), names)
    return njit(nogil=True)(names["loop"])


def _explained(error: Exception) -> NotCompilableError:
    text = _STEP.sub("", str(error)).strip()
    raised = _RAISED_FROM.search(text.splitlines()[0]) if text else None
    if raised is not None:
        return NotCompilableError(_shortened(text[: raised.start()]), _origin(raised[1], int(raised[2])))
    place = getattr(error, "loc", None)
    return NotCompilableError(
        _shortened(text) or f"{type(error).__name__} in numba",
        None if place is None else _origin(place.filename, place.line),
    )


def _shortened(text: str) -> str:
    """The first line that says something; where it announces another one, with that."""
    lines = [line.strip().removeprefix(">>> ") for line in text.splitlines() if line.strip()]
    reason = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1]).rstrip(". ")
    return reason if len(reason) <= _REASON_MAX else f"{reason[:_REASON_MAX]}..."


def _origin(file: str, line: int) -> Origin:
    return Origin(file, line, getline(file, line).strip()[:120])
