"""I16: when a job has ended, no thread, file or port of it is left."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_OPEN = Path("/proc/self/fd")


@dataclass(frozen=True, slots=True)
class Resources:
    """What this process holds at one moment.

    Attributes:
        threads: identities and names of those that live.
        files: numbers and targets of open files, pipes and sockets (a port is a socket); empty where the system does
            not list them.
    """

    threads: frozenset[tuple[int | None, str]]
    files: frozenset[tuple[str, str]]

    @classmethod
    def now(cls) -> Resources:
        """What is held now.

        Example:
            >>> before = Resources.now()
            >>> with open(os.devnull) as file:
            ...     before.left_behind(seconds=0)
            ['I16: the file /dev/null is still open']
            >>> before.left_behind()
            []
        """
        threads = frozenset((thread.ident, thread.name) for thread in threading.enumerate())
        return cls(threads, frozenset(_files()))

    def left_behind(self, seconds: float = 2.0) -> list[str]:
        """What was not there before and is there now, a sentence each; threads have so long to come to their end."""
        end = time.monotonic() + seconds
        while True:
            now = Resources.now()
            threads = sorted(name for _, name in now.threads - self.threads)
            files = sorted(target for _, target in now.files - self.files)
            if not (threads or files) or time.monotonic() >= end:
                break
            time.sleep(0.01)
        return [
            *(f"I16: the thread {name!r} still runs" for name in threads),
            *(f"I16: the file {target} is still open" for target in files),
        ]


def _files() -> list[tuple[str, str]]:
    found = []
    for entry in os.scandir(_OPEN) if _OPEN.is_dir() else ():
        try:
            found.append((entry.name, str(Path(entry.path).readlink())))
        except OSError:  # the listing's own
            continue
    return [(number, target) for number, target in found if not target.startswith("/proc/")]
