"""What takes longer than a callback may: it is done on a thread of its own, and its result is shown with a frame."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import Any

from workbench.errors import sentence_of

MOST = 4
"""Errands of one view at the same time; a further one is refused."""


class Errands:
    """The errands of one view.

    Attributes:
        begun: called when one is started; its result has to be shown though the job may have ended long ago.

    Example:
        >>> errands = Errands()
        >>> errands.run("sum", lambda: 1 + 1, lambda result, error: None)
        True
    """

    def __init__(self) -> None:
        self.begun: Callable[[], object] = lambda: None
        self._done: deque[Callable[[], None]] = deque()
        self._running: set[str] = set()

    def run(self, name: str, work: Callable[[], Any], then: Callable[[Any, str | None], None]) -> bool:
        """Start `work`; whether it was: not while another of that name or too many others are under way.

        Args:
            then: called by `settle` with the result and None, or with None and the sentence of what went wrong.
        """
        if name in self._running or len(self._running) >= MOST:
            return False
        self._running.add(name)

        def go() -> None:
            result, problem = None, None
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - whatever it is, the person who asked must hear of it
                problem = sentence_of(error)
            self._done.append(lambda: then(result, problem))
            self._running.discard(name)

        Thread(target=go, name=f"dashboard errand {name}", daemon=True).start()
        self.begun()
        return True

    @property
    def are_settled(self) -> bool:
        """Whether none is under way and every result has been shown."""
        return not self._running and not self._done

    def is_running(self, name: str) -> bool:
        """Whether an errand of that name is under way."""
        return name in self._running

    def settle(self) -> None:
        """Show what has come of the errands that are over; called with the view's lock held, whether or not the job has
        anything new to show.
        """
        while self._done:
            self._done.popleft()()
