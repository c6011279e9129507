"""Calls of a driver that waits, on a thread of their own: a reader never waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Call(Generic[T]):
    """A call that was begun.

    Args:
        act: what is called.
    """

    def __init__(self, act: Callable[[], T]) -> None:
        self._act = act
        self._over = threading.Event()
        self._results: list[T] = []
        self._error: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Whether `result` returns at once."""
        return self._over.is_set()

    def result(self, wait_s: float = 0.0) -> T:
        """What the call returned; raises what it raised.

        Raises:
            TimeoutError: it is not over after this time.
        """
        if not self._over.wait(wait_s):
            raise TimeoutError("the server does not answer")
        if self._error is not None:
            raise self._error
        return self._results[0]

    def make(self) -> None:
        """Make the call; by the thread."""
        try:
            self._results.append(self._act())
        except BaseException as error:  # noqa: BLE001  raised by `result`
            self._error = error
        self._over.set()


class Background:
    """A thread that makes one call after the other, and is left behind if the last one never ends."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()
        self._is_started = False

    def begin(self, act: Callable[[], T]) -> Call[T]:
        """Begin a call."""
        if not self._is_started:
            self._is_started = True
            name = "workbench-postgresql-log-queries"
            threading.Thread(target=_work, args=(self._calls,), name=name, daemon=True).start()
        call = Call(act)
        self._calls.put(call)
        return call

    def close(self) -> None:
        """End the thread after its last call; does not wait for it."""
        self._calls.put(None)


def _work(calls: SimpleQueue[Call[Any] | None]) -> None:
    while (call := calls.get()) is not None:
        call.make()
