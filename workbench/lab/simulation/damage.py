"""Damage to a checkpoint on disk between two processes: it must be noticed, named and refused, and can be mended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.drivers.faults.faults import Fault
from workbench.runtime.storage import DirectoryStorage
from workbench.runtime.storage.manifest import MANIFEST


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that is not what was written.

    Attributes:
        path: of the file.
        content: what was written.
    """

    path: Path
    content: bytes

    def mend(self) -> None:
        """Bring back what was written."""
        self.path.write_bytes(self.content)


def damage(directory: Path, fault: Fault) -> Damage | None:
    """Tear, flip or remove a file of the checkpoint from which the job would go on; None when there is none.

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
