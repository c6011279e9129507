"""Slow work (encoding, writing, syncing) that must not happen on the data path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from workbench.errors import as_error
from workbench.raised import PASSING

T = TypeVar("T")


class Background(Protocol):
    """Runs pieces of work one after another, and delivers each result on the master's turn."""

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Queue `work`; `done` is later called with its result, or with the exception that it raised."""


def answered(
    work: Callable[[], T], done: Callable[[T | Exception], None], call: Callable[[Callable[[], None]], None]
) -> Callable[[], None]:
    """Wrap `work` so that its result, or the exception it raised, goes to `done` through `call` (the master's
    inbox)."""

    def piece() -> None:
        result: T | Exception
        try:
            result = work()
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001  the one who asked handles it
            result = as_error(error)
        call(lambda: done(result))

    return piece
