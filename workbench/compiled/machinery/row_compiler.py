"""Compiles users' functions, and the loops around them, with numba; see ``row_loop``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from inspect import signature
from linecache import getline
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.types import Type
from numba.extending import is_jitted
from numba.np.numpy_support import from_dtype

from workbench.compiled.machinery.row_loop import NotCompilableError, RowLoop, Value
from workbench.origin import Origin

_SCALARS: dict[str, Type] = {"bool": types.boolean, "int64": types.int64, "float64": types.float64}
_REASON_MAX = 160
_STEP = re.compile(r"^(Failed in nopython mode pipeline.*\n)+")
_RAISED_FROM = re.compile(r"\.* Raised from (.+) \((\d+)\)$")


def compile_rows(user: Callable[..., Any], columns: Sequence[np.dtype[Any]]) -> RowLoop:
    """The loop over columns of these types that calls a user's function.

    Raises:
        NotCompilableError: with numba's reason.

    Example:
        >>> twice = compile_rows(lambda n: n * 2, [np.dtype(np.int64)])
        >>> twice([np.array([3])])[0][0].tolist()
        [6]
    """
    if is_jitted(user):
        function: Any = user
    elif isinstance(user, FunctionType):
        function = njit(nogil=True)(user)
    else:
        raise NotCompilableError("it is not a plain function", None)
    more = list(signature(user).parameters.values())[len(columns) :]
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
    """The name of the type in which the function receives a column, which in the loop's text converts to it."""
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
    raise NotCompilableError(f"it returns {shown} instead of numbers or booleans", None)


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
    exec(compile("\n".join(lines), "<workbench row loop>", "exec"), names)
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
    """The first informative line; if it announces another one, with that one."""
    lines = [line.strip().removeprefix(">>> ") for line in text.splitlines() if line.strip()]
    reason = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1]).rstrip(". ")
    return reason if len(reason) <= _REASON_MAX else f"{reason[:_REASON_MAX]}..."


def _origin(file: str, line: int) -> Origin:
    return Origin(file, line, getline(file, line).strip()[:120])
