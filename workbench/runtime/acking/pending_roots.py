"""The pending roots of one source: the backup from which it replays, and the position to go back to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.elements import Records
from workbench.operators.acking.rotating import RotatingBuckets
from workbench.operators.contract.base import Snapshot


@dataclass(slots=True)
class RootCounts:
    """What has become of the roots of one source subtask, over all attempts.

    Each root is acknowledged, failed (timed out), pending or abandoned with its attempt:
    ``emitted + replayed == acked + failed + pending + abandoned``. What failed is replayed as a new root.

    Attributes:
        emitted: roots of records that were read.
        acked: roots whose tree was processed.
        failed: roots that were not acknowledged in time.
        replayed: roots that were emitted again, with new ids.
        replayed_records: records in them.
        late: roots that were acknowledged after they had failed: these replays were needless.
        abandoned: roots that were pending when their attempt ended.
        pending: roots that are not acknowledged.
        waiting: failed roots that are not replayed yet.
        ages: pending roots by bucket, the youngest first.
    """

    emitted: int = 0
    acked: int = 0
    failed: int = 0
    replayed: int = 0
    replayed_records: int = 0
    late: int = 0
    abandoned: int = 0
    pending: int = 0
    waiting: int = 0
    ages: tuple[int, ...] = ()


class Chunk:
    """What a source read at once.

    Attributes:
        position: state of the source before it.
        before: records that the source had read before.
        open: roots of it that are not acknowledged.
    """

    __slots__ = ("before", "open", "position")

    def __init__(self, position: Snapshot, before: int) -> None:
        self.position = position
        self.before = before
        self.open = 0


class PendingRoots:
    """The roots that one source subtask waits for.

    Args:
        counts: updated with each change.
        timeout_us: after which a root fails, microseconds.

    Example:
        >>> import pyarrow as pa
        >>> roots = PendingRoots(RootCounts(), timeout_us=100)
        >>> chunk = roots.begin({"positions": {"part": 0}}, before=0)
        >>> roots.add(7, Records(pa.record_batch({"n": [1]})), chunk, now_us=0)
        >>> roots.oldest.position
        {'positions': {'part': 0}}
        >>> roots.expire(150)
        >>> records, chunk = roots.next_failed()
        >>> roots.counts.failed, roots.counts.pending, len(records)
        (1, 0, 1)
    """

    __slots__ = ("_chunks", "_failed", "_pending", "counts", "newest", "retime")

    def __init__(self, counts: RootCounts, timeout_us: int) -> None:
        self.counts = counts
        self._pending = RotatingBuckets[tuple[Records, Chunk]](timeout_us)
        self._failed: deque[tuple[Records, Chunk]] = deque()
        self._chunks: deque[Chunk] = deque()
        self.retime, self.newest = self._pending.retime, self._pending.newest

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, root: int) -> bool:
        """Whether this root is pending."""
        return self._pending.get(root) is not None

    @property
    def waiting(self) -> bool:
        """Whether a failed root is to be replayed."""
        return bool(self._failed)

    @property
    def due_us(self) -> int | None:
        """When pending roots may fail next."""
        return self._pending.due_us

    @property
    def oldest(self) -> Chunk | None:
        """The first chunk that is not wholly acknowledged; None: there is none."""
        chunks = self._chunks
        while chunks and not chunks[0].open:
            chunks.popleft()
        return chunks[0] if chunks else None

    def begin(self, position: Snapshot, before: int) -> Chunk:
        """A chunk was read; arguments as for `Chunk`."""
        self.oldest  # noqa: B018  forgets what is acknowledged
        chunk = Chunk(position, before)
        self._chunks.append(chunk)
        return chunk

    def add(self, root: int, records: Records, chunk: Chunk, now_us: int) -> None:
        """A root was emitted for the first time."""
        self.counts.emitted += 1
        chunk.open += 1
        self._wait_for(root, records, chunk, now_us)

    def add_done(self) -> None:
        """A root was emitted of which nothing has left the task."""
        self.counts.emitted += 1
        self.counts.acked += 1

    def next_failed(self) -> tuple[Records, Chunk]:
        """Take the records of the root that failed first."""
        self.counts.waiting -= 1
        return self._failed.popleft()

    def add_again(self, root: int, records: Records, chunk: Chunk, now_us: int) -> None:
        """The records of a failed root were emitted under a new one."""
        self.counts.replayed += 1
        self.counts.replayed_records += len(records)
        self._wait_for(root, records, chunk, now_us)

    def acknowledge(self, roots: Iterable[int]) -> None:
        """The trees of these roots are processed; of those that have failed, the replays were needless."""
        for root in roots:
            entry = self._pending.pop(root)
            if entry is None:
                self.counts.late += 1
                continue
            entry[1].open -= 1
            self.counts.acked += 1
            self.counts.pending -= 1

    def expire(self, now_us: int) -> None:
        """Let the roots fail that have been pending for too long."""
        gone = self._pending.expelled(now_us)
        if gone:
            self._failed.extend(gone.values())
            self.counts.failed += len(gone)
            self.counts.pending -= len(gone)
            self.counts.waiting += len(gone)

    def note_ages(self) -> None:
        """Show the ages of the pending roots in the counts."""
        self.counts.ages = tuple(self._pending.ages)

    def abandon(self) -> None:
        """The attempt has ended: its roots are read again from the position of the checkpoint."""
        self.counts.abandoned += self.counts.pending
        self.counts.pending = self.counts.waiting = 0
        self.counts.ages = ()

    def _wait_for(self, root: int, records: Records, chunk: Chunk, now_us: int) -> None:
        self.counts.pending += 1
        self._pending.put(root, (records, chunk), now_us)
