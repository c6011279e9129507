"""Atomic replacement of files: an interrupted write, or a full disk, leaves the old file in place."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.durable.disk import PRIVATE_FILE
from workbench.errors import SettingError, told_by


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A draft to write, which replaces `path` when it is complete; a pipe or device is written directly.

    The draft exists as an empty file from the start, so an unwritable folder is noticed before the work begins.
    Only its owner can read it, whatever the mode of the file that it replaces.

    Raises:
        SettingError: the file system refuses to write it; names `path`.
    """
    target = Path(os.path.realpath(path))  # a link keeps leading there
    draft = target.with_name(f".{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        if target.exists() and not target.is_file():
            yield target
        else:
            draft.touch(mode=PRIVATE_FILE)
            yield draft
            draft.replace(target)
    except OSError as error:
        fix = "free some space, or " if error.errno == errno.ENOSPC else ""
        raise SettingError(
            f"cannot write {str(path)!r}: {told_by(error)}; {fix}name a file in another folder"
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink()
