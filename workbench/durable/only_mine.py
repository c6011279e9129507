"""Whether other users of this machine can change a file: code is loaded only from files that they cannot change."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from workbench.errors import CheckpointError

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_REACHED_BY_OTHERS = 0o077


def check_only_mine(file: Path) -> None:
    """Reject a file that another user could have written, by its owner and mode and those of all folders above it.

    A folder with the sticky bit, such as ``/tmp``, is accepted, because others cannot replace what is not theirs in it.

    Raises:
        CheckpointError: names what others can write.
    """
    place = Path(os.path.realpath(file))
    state = os.lstat(place)
    if not stat.S_ISREG(state.st_mode):
        raise _unsafe(file, place, "is not a file")
    within = os.lstat(place.parent)  # whoever cannot enter its folder cannot write a file, whatever its own mode
    _check(file, place, state, can_be_reached=bool(within.st_mode & _REACHED_BY_OTHERS))
    for folder in place.parents:
        _check(file, folder, os.lstat(folder), can_be_reached=True)


def _check(file: Path, place: Path, state: os.stat_result, *, can_be_reached: bool) -> None:
    if state.st_uid not in (os.geteuid(), 0):
        raise _unsafe(file, place, f"belongs to the user {state.st_uid}")
    sticky = stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX
    if can_be_reached and state.st_mode & _BY_OTHERS and not sticky and not _only_by_own_group(state):
        raise _unsafe(file, place, f"can be written by other users ({stat.filemode(state.st_mode)})")


def _only_by_own_group(state: os.stat_result) -> bool:
    """Whether only a group can write, of which its owner is the only member, as many systems set up for each user."""
    if state.st_mode & stat.S_IWOTH:
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(state.st_uid), grp.getgrgid(state.st_gid)
    except KeyError:
        return False
    return user.pw_gid == state.st_gid and user.pw_name == group.gr_name and set(group.gr_mem) <= {user.pw_name}


def _unsafe(file: Path, place: Path, why: str) -> CheckpointError:
    what = "it" if place == file else str(place)
    return CheckpointError(
        f"{file} holds code and is not read, because {what} {why}: set TMPDIR, or Spark's spark.local.dir, to a folder "
        "that only you can write"
    )
