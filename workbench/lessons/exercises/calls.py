"""Keeps the calls to an object that a learner wrote, so that a counterexample can be run again, call by call."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from workbench.lessons.exercises.exercise import MissingAnswerError, ViolatedError
from workbench.raised import described


class Called:
    """An object of a learner's class.

    Args:
        answer: the class.
        arguments: of its constructor.
        kind: what it should be, such as ``"a ledger"``.
        methods: the methods that it needs, with their arguments, such as ``"balance(account)"``.
        name: of the object in the lines.
        beside: another object that exists at the same time: its calls and those to this one are in one list.

    Raises:
        ViolatedError: it has no such method.

    Attributes:
        object: the object itself.
        calls: the calls so far, as lines of a program.
        name: of the object in them.

    Example:
        >>> numbers = Called(list)
        >>> numbers("append", 7)
        >>> numbers.object, numbers.calls
        ([7], ['it = list()', 'it.append(7)'])
    """

    def __init__(
        self,
        answer: Callable[..., Any],
        *arguments: Any,
        kind: str = "an object",
        methods: Sequence[str] = (),
        name: str = "it",
        beside: Called | None = None,
    ) -> None:
        for method in methods:
            if not hasattr(answer, wanted := method.partition("(")[0]):
                raise ViolatedError(kind, f"the class has no method {wanted!r}; it needs {' and '.join(methods)}")
        self.calls: list[str] = [] if beside is None else beside.calls
        self.calls.append(f"{name} = {getattr(answer, '__name__', 'answer')}({_told(arguments)})")
        self.name = name
        try:
            self.object = answer(*arguments)
        except (Exception, SystemExit) as error:
            raise failing(error, self.calls) from error

    def __call__(self, method: str, *arguments: Any) -> Any:
        """Call a method.

        Raises:
            MissingAnswerError: it is not written yet.
            ViolatedError: it raises an error.
        """
        self.calls.append(f"{self.name}.{method}({_told(arguments)})")
        try:
            found = getattr(self.object, method)(*arguments)
        except (Exception, SystemExit) as error:
            raise failing(error, self.calls) from error
        if found is ...:
            raise MissingAnswerError(f"`{method}` still returns `...`")
        return found


SHARED = " Two objects exist at the same time here, and one finds what the other has kept: what do they share?"
"""For a violation that occurs only beside another object."""


def failing(error: BaseException, calls: Sequence[str] = ()) -> ViolatedError:
    """The violation by an answer that raises an error."""
    line = traceback.extract_tb(error.__traceback__)[-1]
    told = f"it raises an error: {described(error)}, in line {line.lineno}: {line.line}"
    return ViolatedError("a program that works", told, calls=calls)


def _told(arguments: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, arguments))
