"""I13: everything that looks like a complete checkpoint has all of its files, even after a power failure."""

from __future__ import annotations

import re
from pathlib import Path

from workbench.errors import CheckpointError
from workbench.runtime.storage.files import LocalFiles
from workbench.runtime.storage.reading import CheckpointReader

_CHECKPOINT = re.compile(r"chk-[0-9]+")


def lacking(directory: Path) -> list[str]:
    """The files that complete checkpoints and savepoints in a checkpoint directory lack, one sentence each.

    The content of files is not checked here: a restore verifies their checksums.

    Example:
        >>> lacking(Path("nothing"))
        []
    """
    files = LocalFiles(directory)
    reader = CheckpointReader(files)
    savepoints = [f"savepoints/{name}" for name in files.folders("savepoints")]
    problems = []
    for place in (*filter(_CHECKPOINT.fullmatch, files.folders()), *savepoints):
        if not reader.is_complete(place):
            continue
        try:
            manifest = reader.manifest(place)
        except CheckpointError as error:
            problems.append(f"I13: {place} has a manifest that cannot be read: {error}")
            continue
        sizes = {f"{place}/{file.file}": file.size for file in manifest.files}
        sizes |= {part.path: part.size for file in manifest.files for part in file.parts}
        for path in sorted(sizes.keys() | manifest.needs):
            found = directory / path
            if not found.is_file() or found.stat().st_size != sizes.get(path, found.stat().st_size):
                problems.append(f"I13: {place} has a manifest, and {path} is missing or differs from what was written")
    return problems
