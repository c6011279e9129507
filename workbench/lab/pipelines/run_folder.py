"""The folder for the files of a simulation, in memory where possible: syncing files there costs nothing."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from uuid import uuid4

_SHARED_MEMORY = Path("/dev/shm")
_PARENT = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
_PROCESSES = uuid4().hex
"""Of this process and of its forks."""
_NUMBERS = count()


def make_run_folder() -> Path:
    """A new folder; `remove_run_folder` removes it.

    Example:
        >>> folder = make_run_folder()
        >>> folder.is_dir()
        True
        >>> remove_run_folder(folder)
        >>> folder.exists()
        False
    """
    folder = f"{_PARENT}/workbench-simulation-{_PROCESSES}-{os.getpid()}-{next(_NUMBERS)}"
    os.mkdir(folder, 0o700)
    return Path(folder)


def remove_run_folder(folder: Path) -> None:
    """Remove it with its content."""
    path = str(folder)
    with suppress(OSError):
        os.rmdir(path)  # most runs write nothing
        return
    with suppress(OSError):
        _remove(path)


def _remove(folder: str) -> None:
    """Like ``shutil.rmtree``, which takes twice as long to defend against links that are added meanwhile: the run's
    folder belongs to its user alone."""
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                os.unlink(entry.path)
    os.rmdir(folder)
