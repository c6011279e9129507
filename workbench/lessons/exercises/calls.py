"""Keeps the calls to an object that a learner wrote, so that a counterexample can be run again, call by call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.lessons.exercises.exercise import MissingAnswerError, ViolatedError


class Called:
    """An object of a learner's class.

    Args:
        answer: the class.
        arguments: of its constructor.
        kind: what it should be, such as ``"a ledger"``.
        methods: that it needs, with their arguments, such as ``"balance(account)"``.

    Raises:
        ViolatedError: it has no such method.

    Attributes:
        object: the object itself.
        calls: what was done so far, as lines of a program.

    Example:
        >>> numbers = Called(list)
        >>> numbers("append", 7)
        >>> numbers.object, numbers.calls
        ([7], ['it = list()', 'it.append(7)'])
    """

    def __init__(
        self, answer: Callable[..., Any], *arguments: Any, kind: str = "an object", methods: Sequence[str] = ()
    ) -> None:
        for method in methods:
            if not hasattr(answer, name := method.partition("(")[0]):
                raise ViolatedError(kind, f"the class has no method {name!r}; it needs {' and '.join(methods)}")
        self.calls = [f"it = {getattr(answer, '__name__', 'answer')}({_told(arguments)})"]
        self.object = answer(*arguments)

    def __call__(self, method: str, *arguments: Any) -> Any:
        """Call a method.

        Raises:
            MissingAnswerError: it is not written yet.
        """
        self.calls.append(f"it.{method}({_told(arguments)})")
        found = getattr(self.object, method)(*arguments)
        if found is ...:
            raise MissingAnswerError(f"`{method}` still returns `...`")
        return found


def _told(arguments: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, arguments))
