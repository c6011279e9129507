"""The folder that a simulation may write to, in memory where that is possible: flushing files to it costs nothing."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from uuid import uuid4

_SHARED_MEMORY = Path("/dev/shm")
_PARENT = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())


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
    folder = _PARENT / f"workbench-simulation-{uuid4().hex}"
    folder.mkdir(mode=0o700)
    return folder


def remove_run_folder(folder: Path) -> None:
    """Remove it with all that is in it."""
    try:
        folder.rmdir()  # most runs have left nothing in it
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
