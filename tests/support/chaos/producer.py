"""The producer of a run: feeds its rows in their order, each of them once, whatever happens to the server meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from .rows import AT_ONCE

_PAUSE_S = 0.02


class Producer:
    """A thread that feeds rows up to a limit that is moved on.

    Args:
        feed: adds the rows of these numbers; returns when the server has them.
        busy: held while it does; whoever fails the server holds it, so no row is fed twice or by half.
        begin: the number of the first row.
    """

    def __init__(self, feed: Callable[[range], None], busy: AbstractContextManager[Any], begin: int) -> None:
        self._feed, self._busy = feed, busy
        self._changed = threading.Condition()
        self._limit = self.fed = begin
        self._over = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def allow(self, limit: int) -> None:
        """Let rows up to this number be fed."""
        with self._changed:
            self._limit = max(self._limit, limit)
            self._changed.notify_all()

    def reach(self, row: int) -> None:
        """Let rows be fed up to this number, and wait until they are.

        Raises:
            RuntimeError: they could not be fed.
        """
        self.allow(row)
        with self._changed:
            while self.fed < row and self._error is None:
                self._changed.wait(1)
        if self._error is not None:
            raise RuntimeError(f"the producer ended at row {self.fed}") from self._error

    def close(self) -> None:
        """End it."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join(60)

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    while self.fed >= self._limit and not self._over:
                        self._changed.wait()
                    if self._over:
                        return
                    numbers = range(self.fed, min(self.fed + AT_ONCE, self._limit))
                with self._busy:
                    self._feed(numbers)
                with self._changed:
                    self.fed = numbers.stop
                    self._changed.notify_all()
                    self._changed.wait(_PAUSE_S)
        except BaseException as error:  # noqa: BLE001  raised by `reach`
            with self._changed:
                self._error = error
                self._changed.notify_all()
