"""Which positions of a source can still be restored: its server need not keep what comes before them, and what would be
something else if it was read again may be passed on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pyarrow as pa

from workbench.connectors.contract.base import SourceReader
from workbench.operators.contract.base import Snapshot
from workbench.runtime.barriers.snapshots import SnapshotTaken


class KeptPositions:
    """Reports to a reader the oldest position of the checkpoints that are kept, and the savepoints beside them.

    Args:
        reader: of the source.
        uid: of the source.
    """

    __slots__ = ("_asked", "_complete", "_reader", "_savepoints", "_taken", "_uid")

    def __init__(self, reader: SourceReader, uid: str) -> None:
        self._reader, self._uid = reader, uid
        self._taken: deque[tuple[int, Snapshot]] = deque()
        self._complete: deque[Snapshot] = deque()
        self._savepoints: set[int] = set()
        self._asked = False

    @staticmethod
    def concern(reader: SourceReader) -> bool:
        """Whether a reader wants to know them."""
        return type(reader).complete is not SourceReader.complete

    def noting(self, report: Callable[[SnapshotTaken], None]) -> Callable[[SnapshotTaken], None]:
        """What reports a snapshot, and notes it before."""

        def note(taken: SnapshotTaken) -> None:
            self.taken(taken)
            report(taken)

        return note

    def taken(self, taken: SnapshotTaken) -> None:
        """A snapshot was taken for a checkpoint, which may still fail."""
        if taken.barrier.savepoint:
            self._savepoints.add(taken.barrier.checkpoint_id)
            self._reader.keep(taken.barrier.checkpoint_id)
        else:
            state = taken.states.get(self._uid, {})
            small = {name: value for name, value in state.items() if not isinstance(value, pa.Table)}
            self._taken.append((taken.barrier.checkpoint_id, small))

    @property
    def asks(self) -> bool:
        """Whether the reader needs a checkpoint that nobody was asked for yet; it is asked for with this."""
        if self._asked or not self._reader.wants_checkpoint:
            return False
        self._asked = True
        return True

    def aborted(self, checkpoint_id: int) -> None:
        """A checkpoint has failed."""
        self._asked = False
        if checkpoint_id in self._savepoints:
            self._savepoints.discard(checkpoint_id)
            self._reader.give_up(checkpoint_id)

    def completed(self, checkpoint_id: int, kept: int) -> None:
        """A checkpoint is complete; those before it that were not are given up.

        Args:
            checkpoint_id: of the checkpoint.
            kept: how many checkpoints are kept.
        """
        self._asked = False
        self._savepoints.discard(checkpoint_id)
        while self._taken and self._taken[0][0] <= checkpoint_id:
            number, snapshot = self._taken.popleft()
            if number == checkpoint_id:
                self._complete.append(snapshot)
                self._reader.durable(snapshot)
        while len(self._complete) > kept:
            self._complete.popleft()
        if self._complete and len(self._complete) == kept:
            self._reader.complete(self._complete[0])
