"""Snapshots as a checkpoint stores and restores them."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.operators.contract.base import Snapshot
from workbench.runtime.storage.encoding import decode, encode


class Stored:
    """The snapshots of all subtasks. They are encoded on first use, as a checkpoint's background writer does it while
    the subtasks work on, so a snapshot that shares data with its subtask is found.

    Args:
        snapshots: of all subtasks.

    Example:
        >>> Stored([{"positions": {"0": 7}}]).restored()
        [{'positions': {'0': 7}}]
    """

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._snapshots = snapshots
        self._encoded: list[bytes] | None = None

    def write(self) -> None:
        """Encode them, unless they are."""
        if self._encoded is None:
            self._encoded = [encode({"uid": snapshot}).join() for snapshot in self._snapshots]

    def restored(self) -> list[Snapshot]:
        """New objects for each restore."""
        self.write()
        assert self._encoded is not None
        return [decode(data, "a snapshot")["uid"] for data in self._encoded]
