"""Servers that hang for a while: their processes are stopped, and their kernel still accepts connections."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def hanging(server: Any) -> Iterator[None]:
    """Stop all processes of a server, which go on when the block ends."""
    stopped = processes_of(server)
    try:
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in stopped:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def processes_of(server: Any) -> list[int]:
    """The first process, then those that it has started."""
    folder = getattr(server, "folder", None)  # of PostgreSQL
    first = server._process.pid if folder is None else int((folder / "data" / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{first}/task/{first}/children")
    return [first, *map(int, children.read_text().split() if children.exists() else ())]
