"""Runs slow actions off the callback thread; their results are shown with the next frame."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import Any

from workbench.errors import sentence_of

MOST = 4
"""Maximum concurrent actions of one view; further ones are rejected."""


class BackgroundActions:
    """The slow actions of one view.

    Attributes:
        begun: called when an action starts; its result must be shown even if the job ended long ago.

    Example:
        >>> background = BackgroundActions()
        >>> background.run("sum", lambda: 1 + 1, lambda result, error: None)
        True
    """

    def __init__(self) -> None:
        self.begun: Callable[[], object] = lambda: None
        self._done: deque[Callable[[], None]] = deque()
        self._running: set[str] = set()

    def run(self, name: str, work: Callable[[], Any], then: Callable[[Any, str | None], None]) -> bool:
        """Start `work` and return True, or return False while one of that name or too many others are running.

        Args:
            then: called by `settle` with the result and None, or with None and the error as a sentence.
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

        Thread(target=go, name=f"dashboard action {name}", daemon=True).start()
        self.begun()
        return True

    @property
    def are_settled(self) -> bool:
        """Whether no action is running and every result has been shown."""
        return not self._running and not self._done

    def is_running(self, name: str) -> bool:
        """Whether an action of that name is running."""
        return name in self._running

    def settle(self) -> None:
        """Show the results of finished actions; called with the view's lock held, even if the job has nothing new."""
        while self._done:
            self._done.popleft()()
