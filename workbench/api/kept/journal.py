"""The commands that users gave to a stepping job, and when: with them the job can be repeated up to a past step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Given:
    """One command.

    Attributes:
        name, args, kwargs: the method of the job, such as ``tune`` or ``faults.fail``, and its arguments.
        at: number of steps taken before it.
        until: number of steps taken when it returned; None: it has not yet.

    Example:
        >>> print(Given("tune", (), {"buffer_timeout": "5ms"}, at=12))
        step 12: tune(buffer_timeout='5ms')
    """

    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    at: int
    until: int | None = None

    def __str__(self) -> str:
        words = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"step {self.at}: {self.name}({', '.join(words)})"


class Journal:
    """The commands given to one job, in order.

    Args:
        taken: returns the number of steps taken.

    Example:
        >>> journal = Journal(lambda: 3)
        >>> with journal.giving("pause", (), {}):
        ...     pass
        >>> [str(given) for given in journal.commands]
        ['step 3: pause()']
    """

    def __init__(self, taken: Callable[[], int]) -> None:
        self._taken = taken
        self._busy = False
        self.commands: list[Given] = []

    @contextmanager
    def giving(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[None]:
        """Record a command that is given now; commands that it gives in turn are parts of it."""
        if self._busy:
            yield
            return
        self._busy = True
        place = len(self.commands)
        self.commands.append(Given(name, args, kwargs, self._taken()))
        try:
            yield
        finally:
            self._busy = False
            self.commands[place] = replace(self.commands[place], until=self._taken())


def remembered(of: str = "") -> Callable[[_F], _F]:
    """Decorate a method of a job, or of one of its parts, so that it is recorded in the job's journal, if there is one.

    Args:
        of: the part, such as ``"faults"``; empty: the job.

    Example:
        >>> remembered("faults")(wb.types.Job.pause).__name__
        'pause'
    """

    def remember(method: _F) -> _F:
        name = f"{of}.{method.__name__}" if of else method.__name__

        @wraps(method)
        def give(owner: Any, *args: Any, **kwargs: Any) -> Any:
            journal: Journal | None = owner._run.journal
            with nullcontext() if journal is None else journal.giving(name, args, kwargs):
                return method(owner, *args, **kwargs)

        return cast("_F", give)

    return remember
