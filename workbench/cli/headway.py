"""How far a long search is: a bar on a terminal; in a file or a pipe a line after every tenth of it."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import Progress

PARTS = 10


class Headway:
    """Tells it; a context manager.

    Args:
        console: where it is told.
        what: is done, such as ``"simulating"``.
        total: how many pieces there are; None: not known yet, `expect` will say it.
    """

    def __init__(self, console: Console, what: str, total: int | None = None) -> None:
        self._console = console
        self._bar = Progress(console=console, disable=not console.is_terminal, transient=True)
        self._task = self._bar.add_task(what, total=total)
        self._what = what
        self._total = total
        self._done = 0
        self._told = 0
        self._begun_s = time.monotonic()

    def __enter__(self) -> Headway:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._begun_s

    def expect(self, what: str, total: int) -> None:
        """So much is to be done now."""
        self._what, self._total = what, total
        self._bar.update(self._task, description=what, total=total)

    def advance(self, pieces: int = 1) -> None:
        """So many pieces more are done."""
        self._done += pieces
        self._bar.advance(self._task, pieces)
        if self._console.is_terminal or not self._total:
            return
        part = PARTS * self._done // self._total
        if self._told < part < PARTS:  # what comes when all is done says so itself
            self._told = part
            self._console.print(f"{self._what}: {self._done:,} of {self._total:,} after {self.seconds:.0f} s")
