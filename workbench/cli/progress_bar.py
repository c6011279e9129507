"""Progress of a long search: a bar in a terminal, or a line after every tenth in a file or pipe."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import Progress

PARTS = 10


class ProgressBar:
    """A progress display; a context manager.

    Args:
        console: where to print.
        what: the label, such as ``"simulating"``.
        total: the number of pieces; None if `expect` will set it.
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

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._begun_s

    def expect(self, what: str, total: int) -> None:
        """Set the label and the number of pieces."""
        self._what, self._total = what, total
        self._bar.update(self._task, description=what, total=total)

    def advance(self, pieces: int = 1) -> None:
        """Report completed pieces."""
        self._done += pieces
        self._bar.advance(self._task, pieces)
        if self._console.is_terminal or not self._total:
            return
        part = PARTS * self._done // self._total
        if self._told < part < PARTS:  # the result that follows makes the last line superfluous
            self._told = part
            self._console.print(f"{self._what}: {self._done:,} of {self._total:,} after {self.seconds:.0f} s")
