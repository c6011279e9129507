"""Keeps the calls to an object that a learner wrote, so that a counterexample can be run again, call by call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Called:
    """An object of a learner's class.

    Args:
        answer: the class.
        arguments: of its constructor.

    Attributes:
        object: the object itself.
        calls: what was done so far, as lines of a program.

    Example:
        >>> numbers = Called(list)
        >>> numbers("append", 7)
        >>> numbers.object, numbers.calls
        ([7], ['it = list()', 'it.append(7)'])
    """

    def __init__(self, answer: Callable[..., Any], *arguments: Any) -> None:
        self.calls = [f"it = {getattr(answer, '__name__', 'answer')}({_told(arguments)})"]
        self.object = answer(*arguments)

    def __call__(self, method: str, *arguments: Any) -> Any:
        """Call a method."""
        self.calls.append(f"it.{method}({_told(arguments)})")
        return getattr(self.object, method)(*arguments)


def _told(arguments: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, arguments))
