"""The last dead letters of a job, whether or not a sink takes them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import count
from operator import attrgetter

import pyarrow as pa

from workbench.elements import Records
from workbench.operators.functions.dead_letters import SCHEMA

KEPT_MAX = 1_000
"""The number of dead letters that are kept of each task."""
KEPT_BYTES_MAX = 4 << 20
"""Their bytes; the last batch is kept even if it has more."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Dead letters that came together.

    Attributes:
        number: grows over all tasks.
        epoch: the last checkpoint before them.
        size: in bytes.
    """

    number: int
    epoch: int
    letters: pa.RecordBatch
    size: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a task, oldest first; with the sums of its rows and of its bytes."""

    batches: tuple[_Batch, ...] = ()
    rows: int = 0
    size: int = 0

    def with_batch(self, batch: _Batch) -> _Kept:
        """Add the newest, and forget the oldest without which the others are still enough."""
        rows, size = self.rows + batch.letters.num_rows, self.size + batch.size
        batches = (*self.batches, batch)
        first = 0
        while first < len(batches) - 1 and (
            rows - batches[first].letters.num_rows >= KEPT_MAX or size - batches[first].size >= KEPT_BYTES_MAX
        ):
            rows, size = rows - batches[first].letters.num_rows, size - batches[first].size
            first += 1
        return _Kept(batches[first:], rows, size)

    def before(self, epoch: int) -> _Kept:
        """Those before a checkpoint."""
        batches = tuple(each for each in self.batches if each.epoch < epoch)
        return _Kept(batches, sum(each.letters.num_rows for each in batches), sum(each.size for each in batches))


class LetterLog:
    """Keeps the last dead letters of each task; one that is replayed after a failure is there once.

    The thread of a task replaces what it has kept, so that others read it without a lock.

    Example:
        >>> log = LetterLog()
        >>> log.table().num_rows
        0
    """

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._bases: dict[str, int] = {}
        self._base = 0
        self._numbers = count()

    def listener(self, task: str, last_id: Callable[[], int]) -> Callable[[Records], None]:
        """A function that keeps dead letters of a task; `last_id` returns its last checkpoint in this attempt."""

        def keep(records: Records) -> None:
            epoch = max(self._bases.get(task, self._base), last_id())
            letters = records.batch.slice(max(0, len(records) - KEPT_MAX))
            batch = _Batch(next(self._numbers), epoch, letters, letters.nbytes)
            self._kept[task] = self._kept.get(task, _Kept()).with_batch(batch)

        return keep

    def go_back(self, checkpoint_id: int, tasks: Collection[str] | None = None) -> None:
        """Forget what comes behind a checkpoint, which is read again; called while these tasks do not run.

        Args:
            checkpoint_id: the checkpoint; 0: everything is read again.
            tasks: names; None: all.
        """
        for task in list(self._kept) if tasks is None else tasks:
            self._kept[task] = self._kept.get(task, _Kept()).before(checkpoint_id)
            self._bases[task] = checkpoint_id
        if tasks is None:
            self._base = checkpoint_id
            self._bases.clear()

    def table(self) -> pa.Table:
        """The dead letters, oldest first: at most `KEPT_MAX` of each task."""
        found = [each for kept in list(self._kept.values()) for each in _last(kept)]
        return pa.Table.from_batches([each.letters for each in sorted(found, key=attrgetter("number"))], SCHEMA)


def _last(kept: _Kept) -> list[_Batch]:
    """The batches without the first letters of the first, if they are too many together."""
    over = kept.rows - KEPT_MAX
    if over <= 0:
        return list(kept.batches)
    first, *others = kept.batches
    return [replace(first, letters=first.letters.slice(over)), *others]
