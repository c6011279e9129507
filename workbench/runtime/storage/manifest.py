"""The content of a complete checkpoint, and the format of its manifest."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields, replace
from typing import Any

from workbench.arguments import option
from workbench.durable.checksum import checksum
from workbench.errors import CheckpointError, CorruptCheckpointError
from workbench.from_json import made, parsed
from workbench.state.key_groups import KEY_GROUPS_MOST

MANIFEST = "manifest.json"
SHARED = ("tables", "state")
"""The folders of the files that checkpoints share: rows of a sink, and large tables of state."""
SAVEPOINTS = "savepoints"
"""The folder of the savepoints."""
CHECKPOINT = re.compile(r"chk-[0-9]{8,18}")
"""The names of the checkpoints' folders."""
FORMAT = 3
_ID_MAX = 2**62  # so that later ids fit into 64 bits, too
_PATH_MAX = 1_000
_SHOWN = 60
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class StatePart:
    """A file with a large table of a task's state, or with changes to it; several checkpoints share it.

    Attributes:
        path: within the storage.
        size: in bytes.
        checksum: of the bytes (see ``durable/checksum.py``).
    """

    path: str
    size: int
    checksum: str


@dataclass(frozen=True, slots=True)
class StateFile:
    """One task's file in a checkpoint.

    Attributes:
        task: its name.
        file: in the checkpoint's folder.
        size: in bytes.
        checksum: of the bytes (see ``durable/checksum.py``); empty for a checkpoint in memory.
        needs: further files that the state refers to, paths within the storage.
        parts: files with tables of the state that are too large to be written whole each time.
        operators: uids of the operators that have state in it.
        written: bytes that this checkpoint wrote for the task: the file and the parts that are new.
    """

    task: str
    file: str
    size: int
    checksum: str
    needs: tuple[str, ...] = ()
    parts: tuple[StatePart, ...] = ()
    operators: tuple[str, ...] = ()
    written: int = 0

    @property
    def full_size(self) -> int:
        """Bytes that a restore reads."""
        return self.size + sum(part.size for part in self.parts)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a complete checkpoint.

    Attributes:
        checkpoint_id: from 1.
        job: the job's name.
        kind: periodic, manual, savepoint or final.
        triggered_us, completed_us: processing times.
        parallelism: of every operator, by uid.
        files: one for each task.
        kinds: the kind of every operator, by uid; empty in checkpoints of earlier versions.
        max_parallelism: number of key groups; earlier versions always had 128 and do not record it.
    """

    checkpoint_id: int
    job: str
    kind: str
    triggered_us: int
    completed_us: int
    parallelism: dict[str, int]
    files: tuple[StateFile, ...]
    format: int = FORMAT
    kinds: dict[str, str] = field(default_factory=dict)
    max_parallelism: int = 128
    place: str = field(default="", compare=False)
    """Folder of this checkpoint within the storage."""
    ignored: frozenset[str] = field(default=frozenset(), compare=False)
    """Operators whose state is not restored; only in this run, not stored."""

    @property
    def size_bytes(self) -> int:
        """Bytes in all files that a restore reads."""
        return sum(file.full_size for file in self.files)

    @property
    def needs(self) -> frozenset[str]:
        """Files outside of its folder that a restore needs, paths within the storage."""
        paths = {path for file in self.files for path in file.needs}
        return frozenset(paths | {part.path for file in self.files for part in file.parts})

    @property
    def operators(self) -> frozenset[str]:
        """Uids of the operators that have state in it."""
        return frozenset(uid for file in self.files for uid in file.operators)

    def to_json(self) -> bytes:
        """The content of the manifest's file, which begins with the checksum of the rest."""
        content = {name: getattr(self, name) for name in _WRITTEN}
        content["files"] = [{**_fields(file), "parts": [_fields(part) for part in file.parts]} for file in self.files]
        body = _as_json(content).encode().removeprefix(b"{")
        return _head(body) + body


_as_json = json.JSONEncoder(sort_keys=True).encode
_WRITTEN = tuple(each.name for each in fields(Manifest) if each.name not in ("place", "ignored"))


def _fields(item: StateFile | StatePart) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__slots__}


def read_manifest(data: bytes, place: str, path: str) -> Manifest:
    """Read the manifest from a file's bytes; `path` names the file in errors.

    Raises:
        CorruptCheckpointError: the bytes are not a manifest, or differ from what was written.
        CheckpointError: another version wrote it.
    """
    try:
        content: dict[str, Any] = parsed(data)
        written = content["format"]
        if written == FORMAT:
            head = len(_head(b""))
            if data[:head] != _head(data[head:]):
                raise ValueError("it does not match its checksum")
            del content["checksum"]
            return _sensible(replace(made(Manifest, content, "it"), place=place))
        if not isinstance(written, int):
            raise ValueError(f"its format is {str(written)[:_SHOWN]!r}")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise unreadable(path, error) from error
    raise CheckpointError(
        f"{path} has format {written}, and this version reads format {FORMAT}: use the version that wrote it, or "
        f"choose another {option('checkpoint_dir', '')}"
    )


def unreadable(path: str, reason: object) -> CorruptCheckpointError:
    """The error for a manifest that is missing or damaged."""
    return CorruptCheckpointError(
        f"the manifest {path} cannot be read ({reason}); to continue from an earlier checkpoint, delete this one's "
        "folder yourself"
    )


def _sensible(manifest: Manifest) -> Manifest:
    """Validate a manifest: even one with a correct checksum may have been written by hand."""
    if not 0 < manifest.checkpoint_id <= _ID_MAX:
        raise ValueError(f"its checkpoint_id is {manifest.checkpoint_id}")
    if not 1 <= manifest.max_parallelism <= KEY_GROUPS_MOST:
        raise ValueError(f"its max_parallelism is {manifest.max_parallelism}, which is not from 1 to {KEY_GROUPS_MOST}")
    if len({file.task for file in manifest.files}) < len(manifest.files):
        raise ValueError("it has two files of one task")
    names = [file.file for file in manifest.files]
    if len(set(names)) < len(names):
        raise ValueError("two tasks of it have one file")
    for path in names:
        if "/" in path or path == MANIFEST or not _is_path(path):
            raise _stray(path)
    for path in sorted(manifest.needs):
        # The files that a savepoint needs are copied next to the checkpoints, and must not overwrite anything else.
        if path.partition("/")[0] not in SHARED or "/" not in path or not _is_path(path):
            raise _stray(path)
    return manifest


def _is_path(path: str) -> bool:
    return len(path) <= _PATH_MAX and "\0" not in path and {"", ".", ".."}.isdisjoint(path.split("/"))


def _stray(path: str) -> ValueError:
    return ValueError(
        f"it has a file {path[:_SHOWN]!r}, which is outside of the checkpoint directory or has an invalid name"
    )


def _head(body: bytes) -> bytes:
    """The first bytes of a manifest's file."""
    return f'{{"checksum": "{checksum(body)}", '.encode()


def check_name(name: object, what: str) -> str:
    """`name`, if it is valid as a file name.

    Raises:
        CheckpointError: it has other characters than letters, digits, dot, dash and underscore, or is too long.
    """
    if not isinstance(name, str) or not is_name(name):
        raise CheckpointError(
            f"{what} {name!r} cannot be a file name: use at most 100 letters, digits, '.', '-' and '_', "
            "a letter or digit first"
        )
    return name


def is_name(text: str) -> bool:
    """Whether the text is valid as the name of a savepoint or a job."""
    return _NAME.fullmatch(text) is not None


def is_place(folder: str) -> bool:
    """Whether a folder of the storage is that of a checkpoint or savepoint.

    Example:
        >>> is_place("chk-00000007"), is_place("savepoints/before"), is_place("earlier/1/chk-00000007")
        (True, True, False)
    """
    above, _, name = folder.rpartition("/")
    return CHECKPOINT.fullmatch(name) is not None if not above else above == SAVEPOINTS and is_name(name)


def folder_of(checkpoint_id: int, savepoint: str | None) -> str:
    """The folder of a checkpoint within the storage."""
    return f"{SAVEPOINTS}/{savepoint}" if savepoint else f"chk-{checkpoint_id:08d}"
