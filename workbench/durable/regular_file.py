"""A file whose name somebody else has written down: it lies below its folder, and it is a file."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def size_of_regular(folder: Path, name: str) -> int:
    """The bytes of a file below a folder, whether links lead to it or not.

    Args:
        folder: that must hold it.
        name: its path below the folder.

    Raises:
        ValueError: links lead out of the folder, or it is no file but a folder, a pipe or a device, whose end may never
            come.
        OSError: it is not there, or the system cannot tell.
    """
    found = (folder / name).stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{name} is no regular file")
    if not Path(os.path.realpath(folder / name)).is_relative_to(os.path.realpath(folder)):
        raise ValueError(f"{name} is a link that leads out of the folder")
    return found.st_size
