"""What stands at a path, where "nothing" is told from "nobody may look"."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Literal

Kind = Literal["file", "folder", "other"]


def kind_of(path: str | Path) -> Kind | None:
    """What is there, links followed; None: nothing.

    From Python 3.14 on, the methods of `pathlib` take what may not be looked at for something that is not there.

    Raises:
        OSError: it cannot be found out, for example because a folder on the way may not be entered.

    Example:
        >>> kind_of("."), kind_of("./no such file")
        ('folder', None)
    """
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"
