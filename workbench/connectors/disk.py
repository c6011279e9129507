"""The three things that writing a file durably asks of a disk, in one place, so that a simulation can let them fail."""

from __future__ import annotations

import os
from contextvars import ContextVar
from io import FileIO
from typing import Any


class Disk:
    """The system's files."""

    def write(self, file: FileIO, path: str, data: Any) -> None:
        """Append bytes (any buffer) to a file that will be `path`."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[file.write(rest) :]  # a system takes two gigabytes at a time

    def sync(self, file: FileIO, path: str) -> None:
        """Make what was written to a file that will be `path` survive a power failure."""
        os.fsync(file.fileno())

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, in whose place nothing may be missing at any moment."""
        os.replace(source, target)


DISK: ContextVar[Disk] = ContextVar("DISK", default=Disk())  # noqa: B039  it has no state
"""The disk in use; a thread that was told nothing has the system's."""
