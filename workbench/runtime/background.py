"""Work that may take long (encoding, writing, flushing) and so must not happen on the data path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Background(Protocol):
    """Runs pieces of work one after another, and hands each result back on the master's turn."""

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Queue `work`; later, `done` is called with its result, or with the exception that it raised."""
        ...
