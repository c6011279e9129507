"""Savepoints of a job on Spark: copies of its checkpoint directory, taken while no batch runs.

A copy is a checkpoint directory of its own. What the interrupted batch had begun is in it as after a ``kill -9``, and
the run that continues from the copy repeats that batch.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from workbench.durable.disk import PRIVATE_FOLDER, make_folder_durably, open_private, sync_path
from workbench.errors import CheckpointError
from workbench.runtime.storage import check_name
from workbench.spark.engine.directory import LOCK, PLANS

_SAVEPOINTS = "savepoints"
_DRAFT = ".draft"


def savepoint_folder(root: Path, name: str) -> Path:
    """Where a savepoint of this name belongs.

    Args:
        root: the checkpoint directory of the job.
        name: of the savepoint.

    Raises:
        CheckpointError: the name is not valid as a file name, or exists already.

    Example:
        >>> savepoint_folder(Path("checkpoints"), "monday").as_posix()
        'checkpoints/savepoints/monday'
    """
    folder = root / _SAVEPOINTS / check_name(name, "savepoint name")
    if folder.exists():
        raise CheckpointError(f"the savepoint {name!r} exists already, in {str(folder.parent)!r}: choose another name")
    return folder


def savepoint_names(root: Path) -> list[str]:
    """The savepoints of a checkpoint directory, oldest first."""
    folders = [each for each in (root / _SAVEPOINTS).glob("*") if not each.name.startswith(_DRAFT)]
    return [each.name for each in sorted(folders, key=lambda each: each.stat().st_mtime_ns)]


def copy_directory(root: Path, folder: Path) -> None:
    """Copy a checkpoint directory, without its savepoints, to a folder that is complete or not there.

    Raises:
        CheckpointError: it cannot be written.
    """
    draft = folder.with_name(f"{_DRAFT}-{folder.name}")
    try:
        make_folder_durably(folder.parent, private=True)
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(root, draft, ignore=_others(root), copy_function=_copy_durably)
        for path, _, _ in os.walk(draft):
            Path(path).chmod(PRIVATE_FOLDER)  # `copytree` has copied the mode
            sync_path(path)
        os.utime(draft)  # its age, which `copytree` has taken from the directory
        draft.rename(folder)
        sync_path(folder.parent)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise CheckpointError(f"the savepoint {str(folder)!r} cannot be written: {error}") from error


def _others(root: Path) -> Callable[[str, list[str]], set[str]]:
    def ignored(folder: str, names: list[str]) -> set[str]:
        left_out = {_SAVEPOINTS, LOCK, *fnmatch.filter(names, PLANS)}
        return left_out & set(names) if Path(folder) == root else set()

    return ignored


def _copy_durably(source: str, target: str) -> None:
    with suppress(FileNotFoundError):  # Spark removes old files of its state stores at any time
        with open(source, "rb") as old, open(target, "xb", opener=open_private) as new:  # noqa: PTH123  with an opener
            shutil.copyfileobj(old, new)
        sync_path(target)
