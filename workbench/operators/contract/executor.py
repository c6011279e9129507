"""Where an operator has a function run that may take long, so that no step waits for it.

Operators have no threads: an `Executor` comes in from outside (``OperatorContext.executor``), and they look now and
then whether an answer is there. Without one, `Inline` calls the function at once, as the simulation wants it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from workbench.errors import RecordError, as_error
from workbench.raised import PASSING


class Answer(Protocol):
    """What a call will have come to."""

    def done(self) -> bool:
        """Whether it is over."""
        ...

    def result(self) -> Any:
        """What the function returned, once it is done; raises what the function raised."""
        ...


class Executor(Protocol):
    """Runs functions elsewhere."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Answer:
        """Have a function, which may be a coroutine function, called; returns at once."""
        ...


class Given:
    """An answer that is there already."""

    __slots__ = ("_error", "_result")

    def __init__(self, result: Any = None, error: Exception | None = None) -> None:
        self._result = result
        self._error = error

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


class Inline:
    """Calls functions at once, in the caller's step.

    Example:
        >>> Inline().submit(str.upper, "jfk").result()
        'JFK'
    """

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Answer:
        try:
            result = function(*arguments)
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
            return Given(error=as_error(error))
        if inspect.iscoroutine(result):
            result.close()
            return Given(error=RecordError("a coroutine function needs a driver with an event loop: run the job live"))
        return Given(result)
