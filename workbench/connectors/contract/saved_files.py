"""What a sink's snapshot says of its files, believed only where it can be true: a savepoint may come from a stranger.

A snapshot names files by their names alone, and the sink's folder is put before them. So a name that is anything else
than one of the sink's own (``..``, a slash, a NUL, the name of another program's file) could reach any file of this
machine, and so could a symbolic link under such a name.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from workbench.durable.delayed_encoding import FILES
from workbench.errors import MISSING, CheckpointError, CorruptCheckpointError, cannot_be_read
from workbench.from_json import made

_SHOWN_MAX = 80
_FIX = "restore another checkpoint"
Saved = TypeVar("Saved")


def saved_as(kind: type[Saved], value: object, name: str) -> Saved:
    """What a sink's snapshot says, as the dataclass that the sink keeps.

    Args:
        kind: as for `made`.
        value: a snapshot; the tables in it are left out.
        name: of the value, for errors.

    Raises:
        CorruptCheckpointError: it is something else; says which part of it and what it is.

    Example:
        >>> saved_as(tuple[int, ...], [1, 2], "the epochs")
        (1, 2)
    """
    if isinstance(value, Mapping):
        value = {key: item for key, item in value.items() if key != FILES and not isinstance(item, pa.Table)}
    try:
        return made(kind, value, name)
    except ValueError as error:
        raise CorruptCheckpointError(f"{error}, in the checkpoint to restore: {_FIX}") from None


def own_name(pattern: re.Pattern[str], name: str, what: str) -> re.Match[str]:
    """The parts of a file name that a snapshot tells, which is one that the sink gives.

    Args:
        pattern: of such names; has no slash in it, and no dots in a row.
        name: as the snapshot says.
        what: is called so, for errors.

    Raises:
        CorruptCheckpointError: it is another name.

    Example:
        >>> own_name(re.compile(r"part-([0-9]+)"), "part-7", "a part")[1]
        '7'
    """
    if (found := pattern.fullmatch(name)) is None:
        raise impossible(f"{what} is called {shown(name)}, which is no name that this sink gives")
    return found


def is_there(path: Path) -> bool:
    """Whether a file that a snapshot names exists; a link, a folder or a device under its name is none.

    Raises:
        CorruptCheckpointError: there is something else.
        UnreadableCheckpointError: the system does not tell now.
    """
    try:
        mode = os.lstat(path).st_mode
    except MISSING:
        return False
    except OSError as error:
        raise cannot_be_read("a file that the checkpoint needs", path, error) from error
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "no plain file"
        raise CorruptCheckpointError(f"{path}, which the checkpoint needs, is {kind}: bring the file back, or {_FIX}")
    return True


def check_columns(table: str, had: pa.Schema, has: pa.Schema) -> None:
    """Refuse saved rows of other columns than a table has.

    Args:
        table: its name.
        had: the columns of the saved rows.
        has: those of the rows that come now.

    Raises:
        CheckpointError: they differ.
    """
    if had != has:
        raise CheckpointError(
            f"the table {table!r} had the columns {_columns(had)} and now has {_columns(has)}: give the sink another"
            " name or start afresh"
        )


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def impossible(fact: str) -> CorruptCheckpointError:
    """The error for what no sink writes to a snapshot.

    Example:
        >>> str(impossible("epoch -1 was committed"))
        'in the checkpoint to restore epoch -1 was committed: it was damaged or altered, restore another checkpoint'
    """
    return CorruptCheckpointError(f"in the checkpoint to restore {fact}: it was damaged or altered, {_FIX}")


def shown(value: Any) -> str:
    """A value from outside in an error: in one line of plain characters, and not too long.

    Example:
        >>> shown("a\\n")
        "'a\\\\n'"
    """
    text = ascii(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
