"""Values written as a name with arguments, such as ``fixed-delay:attempts=5,delay=200ms``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.errors import SettingError, unknown


def called(value: object, makers: Mapping[str, Callable[..., Any] | None], what: str, example: str) -> Any:
    """Call the function of this name with these arguments, which are passed as text.

    Args:
        value: its text is read.
        makers: the functions, by name; None stands for a name without a function, and makes None.
        what: describes the names, for errors.
        example: such a text, for errors.

    Raises:
        SettingError: no such name or argument, or an invalid value.

    Example:
        >>> called("pair:a=1", {"pair": lambda a, b="2": (a, b)}, "maker", "pair:a=1,b=2")
        ('1', '2')
    """
    name, _, rest = str(value).partition(":")
    name = name.strip()
    if name not in makers:
        raise SettingError(unknown(what, name, makers))
    make = makers[name]
    known = () if make is None else arguments_of(make)
    arguments: dict[str, str] = {}
    for part in rest.split(","):
        if not part.strip():
            continue
        argument, equals, text = part.partition("=")
        if not equals:
            raise SettingError(f"{part!r} is not an argument of {name}: write for example {example!r}")
        argument, text = argument.strip().replace("-", "_"), text.strip()
        if argument not in known:
            raise SettingError(unknown(f"argument of {name}", argument, known))
        if argument in arguments:
            raise SettingError(f"{argument} of {name} is both {arguments[argument]!r} and {text!r}: write it once")
        arguments[argument] = text
    return None if make is None else make(**arguments)


def arguments_of(make: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's arguments.

    Example:
        >>> arguments_of(lambda interval, *, late: None)
        ('interval',)
    """
    code = make.__code__
    return tuple(code.co_varnames[: code.co_argcount])
