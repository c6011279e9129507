"""Runs functions that may take long, so that no step waits for them.

Operators have no threads: an `Executor` is injected (``OperatorContext.executor``), and they poll for the answer.
Without one, `Inline` calls the function immediately, as the simulation requires.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from workbench.errors import RecordError, as_error
from workbench.raised import PASSING


class Answer(Protocol):
    """The future result of a call."""

    def done(self) -> bool:
        """Whether the call has ended."""

    def result(self) -> Any:
        """The function's result, once it is done; raises what the function raised."""


class Executor(Protocol):
    """Runs functions elsewhere."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Answer:
        """Start a call of a function, which may be a coroutine function; returns at once."""


class Given:
    """A result that is already available."""

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
    """Calls functions immediately, in the caller's step.

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
