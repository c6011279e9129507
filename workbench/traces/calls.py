"""What Python says of a call with the wrong arguments, completed by what the function takes."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from types import FrameType, TracebackType
from typing import Any

_REFUSED = re.compile(
    r"([A-Za-z_][\w.]*)\(\) (?:got an unexpected keyword argument '(\w+)'|missing [0-9]+ required |"
    r"takes .*positional argument|got some positional-only|got multiple values)"
)
_SHOWN_MAX = 600
_PACKAGE = __name__.partition(".")[0]


class _Default:
    def __repr__(self) -> str:
        return "..."


def advice(error: BaseException, trace: TracebackType | None) -> str:
    """How a function of ours is called, and the argument that a misspelt one may mean; empty if the error is another.

    Args:
        error: that a program has raised.
        trace: where.

    Example::

        try:
            wb.DiscardSink(nam="out")
        except TypeError as error:
            print(advice(error, error.__traceback__))  # did you mean 'name'? It is called as DiscardSink(name=...)
    """
    refused = _REFUSED.match(str(error)) if type(error) is TypeError else None
    if refused is None or trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    function = _function(refused[1], trace.tb_frame)
    if function is None:
        return ""
    signature, called = _as_called(refused[1], function)
    named = [name for name, each in signature.parameters.items() if each.kind in _BY_NAME]
    near = get_close_matches(refused[2], named, n=1) if refused[2] else []
    text = f"It is called as {called}{signature}"
    text = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
    return f"did you mean {near[0]!r}? {text}" if near else text


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _function(qualified: str, caller: FrameType) -> Callable[..., Any] | None:
    """Our function with this qualified name. None: the caller knows another one by it, or is one of ours itself, or
    several of ours have the name and none is public."""
    first, *rest = qualified.split(".")
    known = caller.f_locals.get(first, caller.f_globals.get(first))
    if known is not None and not str(getattr(known, "__module__", "")).startswith(f"{_PACKAGE}."):
        return None
    ours = [module for name, module in list(sys.modules.items()) if name.startswith(f"{_PACKAGE}.")]
    for modules in ([sys.modules[_PACKAGE]], ours):  # a public name is kept in the package when it is used first
        owners = {id(found): found for module in modules if (found := vars(module).get(first)) is not None}
        functions = [made for each in owners.values() if callable(made := _inner(each, rest, qualified))]
        if len(functions) == 1:
            is_ours = str(caller.f_globals.get("__name__", "")).partition(".")[0] == _PACKAGE
            wraps = getattr(functions[0], "__code__", None) is caller.f_code
            return functions[0] if wraps or not is_ours else None
    return None


def _inner(owner: Any, path: Sequence[str], qualified: str) -> Any:
    """The attribute of an object at a path, if it has this qualified name."""
    for part in path:
        owner = getattr(owner, part, None)
    return owner if getattr(owner, "__qualname__", "") == qualified else None


def _as_called(qualified: str, function: Callable[..., Any]) -> tuple[inspect.Signature, str]:
    """What a caller writes: the arguments without the object and types, and the name before them."""
    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    plain = [
        each.replace(
            annotation=inspect.Parameter.empty, default=each.default if each.default is each.empty else _Default()
        )
        for each in parameters
    ]
    return inspect.Signature(plain), qualified.removesuffix(".__init__")
