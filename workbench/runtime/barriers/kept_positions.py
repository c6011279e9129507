"""Which positions of a source can still be restored, so that its server need not keep what comes before them."""

from __future__ import annotations

from collections import deque

from workbench.connectors.contract.base import SourceReader
from workbench.operators.contract.base import Snapshot
from workbench.runtime.barriers.snapshots import SnapshotTaken


class KeptPositions:
    """Reports to a reader the oldest position of the checkpoints that are kept, and the savepoints beside them.

    Args:
        reader: of the source.
        uid: of the source.
    """

    __slots__ = ("_complete", "_reader", "_savepoints", "_taken", "_uid")

    def __init__(self, reader: SourceReader, uid: str) -> None:
        self._reader, self._uid = reader, uid
        self._taken: deque[tuple[int, Snapshot]] = deque()
        self._complete: deque[Snapshot] = deque()
        self._savepoints: set[int] = set()

    @staticmethod
    def concern(reader: SourceReader) -> bool:
        """Whether a reader wants to know them."""
        return type(reader).complete is not SourceReader.complete

    def taken(self, taken: SnapshotTaken) -> None:
        """A snapshot was taken for a checkpoint, which may still fail."""
        if taken.barrier.savepoint:
            self._savepoints.add(taken.barrier.checkpoint_id)
            self._reader.keep(taken.barrier.checkpoint_id)
        else:
            self._taken.append((taken.barrier.checkpoint_id, taken.states.get(self._uid, {})))

    def aborted(self, checkpoint_id: int) -> None:
        """A checkpoint has failed."""
        if checkpoint_id in self._savepoints:
            self._savepoints.discard(checkpoint_id)
            self._reader.give_up(checkpoint_id)

    def completed(self, checkpoint_id: int, kept: int) -> None:
        """A checkpoint is complete; those before it that were not are given up.

        Args:
            checkpoint_id: of the checkpoint.
            kept: how many checkpoints are kept.
        """
        self._savepoints.discard(checkpoint_id)
        while self._taken and self._taken[0][0] <= checkpoint_id:
            number, snapshot = self._taken.popleft()
            if number == checkpoint_id:
                self._complete.append(snapshot)
        while len(self._complete) > kept:
            self._complete.popleft()
        if self._complete and len(self._complete) == kept:
            self._reader.complete(self._complete[0])
