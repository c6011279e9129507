"""A disk that tells how far a file is, so that it can fail in the middle of one."""

from __future__ import annotations

from io import FileIO
from typing import Any

from workbench.connectors.disk import Disk
from workbench.drivers.probes import Probe


class ProbedDisk(Disk):
    """Writes as any disk does, and tells `probe` when half of a piece is written, before a flush and before a rename.

    Args:
        probe: is told; what it raises happens there.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def write(self, file: FileIO, path: str, data: Any) -> None:
        content = memoryview(data)
        half = len(content) // 2
        super().write(file, path, content[:half])
        self._probe.reached("mid-file", path, half)
        super().write(file, path, content[half:])

    def sync(self, file: FileIO, path: str) -> None:
        self._probe.reached("fsync", path, 0)
        super().sync(file, path)

    def rename(self, source: str, target: str) -> None:
        self._probe.reached("rename", target, 0)
        super().rename(source, target)
