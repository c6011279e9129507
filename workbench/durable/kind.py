"""The kind of file at a path; a path that may not be inspected is an error, not a missing file."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Literal

Kind = Literal["file", "folder", "other"]


def kind_of(path: str | Path) -> Kind | None:
    """The kind of file at a path, following links; None: nothing exists there.

    From Python 3.14 on, the methods of `pathlib` report a path without permission as missing.

    Raises:
        OSError: it cannot be determined, for example because a parent folder may not be entered.

    Example:
        >>> kind_of("."), kind_of("./no such file")
        ('folder', None)
    """
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"
