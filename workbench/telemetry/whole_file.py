"""Atomic replacement of files: an interrupted write, or a full disk, leaves the old file in place."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A file to write, which takes the place of `path` when it is whole; what is no file, such as a pipe, is written
    itself.

    Raises:
        OSError: it cannot be written; names `path`.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()  # a link goes on leading there
    draft = target.with_name(f".{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        yield draft
        draft.replace(target)
    except OSError as error:
        if error.filename in (None, str(draft)):  # a full disk is reported without its path
            error.filename = str(path)
        raise
    finally:
        draft.unlink(missing_ok=True)
