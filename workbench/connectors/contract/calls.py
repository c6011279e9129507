"""Calls to one server by several threads at a time: each is repeated while the server is unreachable; and a table of
look-ups that makes such calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from workbench.connectors.contract.attempts import Attempts
from workbench.operators.contract.outage import Outage
from workbench.operators.functions.lookup_table import OpenTable

T = TypeVar("T")


class Calls:
    """Repeats calls as `Attempts` does, each for itself.

    Args:
        server: as in `Outage`.
        errors: the base classes of what a call raises when it fails.
        lost: says what an error means, without secrets, if the server may come back; otherwise empty.

    Attributes:
        job: tells the connections of the calls that the job ends; nothing is repeated with it.

    Example:
        >>> answers = iter([ConnectionError("refused"), 7])
        >>> def ask():
        ...     answer = next(answers)
        ...     if isinstance(answer, Exception):
        ...         raise answer
        ...     return answer
        >>> Calls("db:5432", ConnectionError, str).repeated(ask)
        7
    """

    def __init__(
        self, server: str, errors: type[Exception] | tuple[type[Exception], ...], lost: Callable[[Exception], str]
    ) -> None:
        self.job = Attempts(0.0)
        self._server, self._errors, self._lost = server, errors, lost
        self._lock = threading.Lock()
        self._failing: list[Attempts] = []
        self._hurries = False

    @property
    def outage(self) -> Outage | None:
        """The oldest one of a call that waits or has failed for good; None: the server has answered all."""
        with self._lock:
            found = [each.outage for each in self._failing if each.outage is not None]
        return min(found, key=lambda outage: outage.since_us, default=None)

    def repeated(self, ask: Callable[[], T]) -> T:
        """The answer to a call, which is repeated while its server is unreachable.

        Args:
            ask: makes the call once.
        """
        attempts: Attempts | None = None
        while True:
            try:
                found = ask()
            except self._errors as error:
                fact = self._lost(error)
                if fact and attempts is None:
                    attempts = self._begun()
                if attempts is None or not fact or not attempts.again(fact):
                    raise
            else:
                if attempts is not None:
                    with self._lock:
                        self._failing.remove(attempts)
                return found

    def hurry(self) -> None:
        """Repeat for a short time only, now and later; for another thread, when the job is stopped."""
        self._hurries = True
        with self._lock:
            failing = [*self._failing]
        for each in failing:
            each.hurry()

    def give_up(self) -> None:
        """Repeat nothing; for another thread, when the job ends."""
        self.job.give_up()
        with self._lock:
            failing = [*self._failing]
        for each in failing:
            each.give_up()

    def _begun(self) -> Attempts:
        attempts = Attempts(server=self._server)
        with self._lock:
            self._failing.append(attempts)
        if self._hurries:
            attempts.hurry()
        if self.job.is_over:
            attempts.give_up()
        return attempts


class RemoteRows(OpenTable):
    """Its calls to the server are repeated while the server is unreachable.

    Args:
        calls: makes them.
    """

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    @property
    def outage(self) -> Outage | None:
        return self.calls.outage

    def hurry(self) -> None:
        self.calls.hurry()

    def give_up(self) -> None:
        self.calls.give_up()
