"""Validates the file names in a sink's snapshot: a savepoint can come from an untrusted source.

A snapshot contains file names only, which are joined to the sink's folder. So any name other than the sink's own ones
(``..``, a slash, a NUL, the name of another program's file) could reach any file on this machine, and so could a
symbolic link under such a name.
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
    """Convert what a sink's snapshot contains to the sink's dataclass.

    Args:
        kind: as for `made`.
        value: a snapshot; its tables are ignored.
        name: of the value, for errors.

    Raises:
        CorruptCheckpointError: it has another form; names the part and its value.

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
    """Match a file name from a snapshot against the names that the sink creates.

    Args:
        pattern: of such names; allows no slash, and no consecutive dots.
        name: from the snapshot.
        what: names the file in errors.

    Raises:
        CorruptCheckpointError: any other name.

    Example:
        >>> own_name(re.compile(r"part-([0-9]+)"), "part-7", "a part")[1]
        '7'
    """
    if (found := pattern.fullmatch(name)) is None:
        raise impossible(f"{what} is named {shown(name)}, which is not a name that this sink gives")
    return found


def is_there(path: Path) -> bool:
    """Whether a file that a snapshot names exists; links, folders and devices are rejected.

    Raises:
        CorruptCheckpointError: the path is not a regular file.
        UnreadableCheckpointError: the system cannot tell now.
    """
    try:
        mode = os.lstat(path).st_mode
    except MISSING:
        return False
    except OSError as error:
        raise cannot_be_read("a file that the checkpoint needs", path, error) from error
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise CorruptCheckpointError(f"{path}, which the checkpoint needs, is {kind}: bring the file back, or {_FIX}")
    return True


def check_columns(table: str, had: pa.Schema, has: pa.Schema) -> None:
    """Reject saved rows with other columns than a table has.

    Args:
        table: its name.
        had: the columns of the saved rows.
        has: those of the present rows.

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
    """The error for a snapshot that no sink can have written.

    Example:
        >>> str(impossible("epoch -1 was committed"))
        'in the checkpoint to restore epoch -1 was committed: it was damaged or altered, restore another checkpoint'
    """
    return CorruptCheckpointError(f"in the checkpoint to restore {fact}: it was damaged or altered, {_FIX}")


def shown(value: Any) -> str:
    """An external value for an error message: one line of printable characters, truncated.

    Example:
        >>> shown("a\\n")
        "'a\\\\n'"
    """
    text = ascii(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
