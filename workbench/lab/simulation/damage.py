"""Damage to a checkpoint on disk between two processes: it must be detected, named and rejected, and is repairable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.drivers.faults.faults import Fault
from workbench.runtime.storage import DirectoryStorage
from workbench.runtime.storage.manifest import MANIFEST


@dataclass(frozen=True, slots=True)
class Damage:
    """A file with damaged content.

    Attributes:
        path: of the file.
        content: the original content.
    """

    path: Path
    content: bytes

    def mend(self) -> None:
        """Restore the original content."""
        self.path.write_bytes(self.content)


def damage(directory: Path, fault: Fault) -> Damage | None:
    """Truncate, flip or remove a file of the checkpoint from which the job would resume; None if there is none.

    A manifest is not removed: a checkpoint without one never completed.
    """
    storage = DirectoryStorage(directory)
    try:
        latest = storage.latest()
    finally:
        storage.close()
    if latest is None:
        return None
    folder = directory / latest.place
    paths = [*(folder / file.file for file in latest.files), *(directory / path for path in sorted(latest.needs))]
    if fault.kind == "torn":
        paths.append(folder / MANIFEST)
    path = paths[fault.task % len(paths)]
    content = path.read_bytes()
    if fault.kind == "missing":
        path.unlink()
    elif fault.kind == "torn":
        path.write_bytes(content[: len(content) * (fault.task + 1) // 18])
    else:
        place = len(content) * fault.task // 16
        path.write_bytes(content[:place] + bytes([content[place] ^ (1 << fault.task % 8)]) + content[place + 1 :])
    return Damage(path, content)
