"""Folders in which one file is not what it was: gone, swapped, empty, a link that leads out, a pipe that nobody
writes to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

from . import octets


def changed(chance: Random, folder: Path, outside: Path) -> str:
    """Do something to one file of a folder; what was done.

    Args:
        chance: draws it.
        folder: to change.
        outside: a folder with files that nothing may touch.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        return "nothing is left to change"
    path, other = chance.choice(files), chance.choice(files)
    name = path.relative_to(folder)
    match chance.randrange(10):
        case 0:
            path.unlink()
            return f"{name} is gone"
        case 1:
            path.write_bytes(b"")
            return f"{name} is empty"
        case 2:
            content = path.read_bytes()
            path.write_bytes(other.read_bytes())
            other.write_bytes(content)
            return f"{name} and {other.relative_to(folder)} are swapped"
        case 3:
            return _in_place_of(
                path, name, outside / path.name if (outside / path.name).exists() else outside / "canary"
            )
        case 4:
            return _in_place_of(path, name, path.rename(path.with_name(f"{path.name}.moved")))
        case 5:
            return _in_place_of(path, name, Path(chance.choice(("/dev/zero", path.name, ".", "/proc/self/mem"))))
        case 6:
            path.unlink()
            path.mkdir()
            return f"{name} is a folder"
        case 7:
            path.unlink()
            os.mkfifo(path)
            return f"{name} is a pipe"
        case 8 if path.parent != folder:
            return _folder_outside(path.parent, path.parent.relative_to(folder), outside)
        case 9:
            path.write_bytes(path.read_bytes() + other.read_bytes())
            return f"{other.relative_to(folder)} stands behind {name}"
    before = path.read_bytes()
    path.write_bytes(octets.changed(chance, before))
    return f"{name} has other bytes"


def _in_place_of(path: Path, name: Path, target: Path) -> str:
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    return f"{name} is a link to {target}"


def _folder_outside(path: Path, name: Path, outside: Path) -> str:
    """The same files lie outside, and a link is in the folder's place."""
    target = outside / f"folder-{name.name}"
    shutil.rmtree(target, ignore_errors=True)
    shutil.move(path, target)
    path.symlink_to(target)
    return f"{name} is a link to a folder outside"
