"""Validates a file whose name comes from external input: it must be a regular file below its folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def size_of_regular(folder: Path, name: str) -> int:
    """The size in bytes of a file below a folder, reached directly or through links.

    Args:
        folder: the folder.
        name: its path below the folder.

    Raises:
        ValueError: links lead out of the folder, or it is not a regular file but a folder, a pipe or a device, which
        may be endless.
        OSError: it does not exist, or cannot be inspected.
    """
    found = (folder / name).stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{name} is not a regular file")
    if not Path(os.path.realpath(folder / name)).is_relative_to(os.path.realpath(folder)):
        raise ValueError(f"{name} is a link that leads out of the folder")
    return found.st_size
