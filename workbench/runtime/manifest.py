"""What a complete checkpoint consists of, and how it is written down."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from workbench.errors import CheckpointError, CorruptCheckpointError

MANIFEST = "manifest.json"
FORMAT = 2
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class StateFile:
    """One task's file in a checkpoint.

    Attributes:
        task: its name.
        file: in the checkpoint's folder.
        size: in bytes.
        checksum: of the bytes (see ``connectors/checksum.py``); empty for a checkpoint in memory.
        needs: further files that the state refers to, paths within the storage.
    """

    task: str
    file: str
    size: int
    checksum: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a complete checkpoint consists of.

    Attributes:
        checkpoint_id: from 1.
        job: the job's name.
        kind: periodic, manual, savepoint or final.
        triggered_us, completed_us: processing times.
        parallelism: of every operator, by uid.
        files: one for each task.
    """

    checkpoint_id: int
    job: str
    kind: str
    triggered_us: int
    completed_us: int
    parallelism: dict[str, int]
    files: tuple[StateFile, ...]
    format: int = FORMAT
    place: str = field(default="", compare=False)
    """Folder of this checkpoint within the storage."""

    @property
    def size_bytes(self) -> int:
        """Bytes in all files."""
        return sum(file.size for file in self.files)

    @property
    def needs(self) -> frozenset[str]:
        """Files outside of its folder without which it cannot be restored, paths within the storage."""
        return frozenset(path for file in self.files for path in file.needs)

    def to_json(self) -> bytes:
        """The manifest's file."""
        content = asdict(self)
        del content["place"]
        return json.dumps(content, indent=1, sort_keys=True).encode()


def read_manifest(path: Path, place: str) -> Manifest:
    """The manifest in a file.

    Raises:
        CorruptCheckpointError: it is missing or cannot be understood.
        CheckpointError: another version wrote it.
    """
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        written = content["format"]
        if written == FORMAT:
            files = tuple(StateFile(**{**file, "needs": tuple(file["needs"])}) for file in content.pop("files"))
            return Manifest(**content, files=files, place=place)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CorruptCheckpointError(
            f"the manifest {path} cannot be read ({error}); "
            "to go on from an earlier checkpoint, delete this one's folder yourself"
        ) from error
    raise CheckpointError(
        f"{path} has format {written}, and this version reads format {FORMAT}: go on with the version that wrote it, or"
        " choose another checkpoint_dir"
    )


def check_name(name: str, what: str) -> str:
    """`name` if it can be a file's name.

    Raises:
        CheckpointError: it has other characters than letters, digits, dot, dash and underscore, or is too long.
    """
    if not _NAME.fullmatch(name):
        raise CheckpointError(f"{what} {name!r} cannot be a file name: use letters, digits, '.', '-' and '_'")
    return name


def folder_of(checkpoint_id: int, savepoint: str | None) -> str:
    """The folder of a checkpoint within the storage."""
    return f"savepoints/{savepoint}" if savepoint else f"chk-{checkpoint_id:08d}"
