"""The last dead letters of a job, whether or not a sink takes them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
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
    """

    number: int
    epoch: int
    letters: pa.RecordBatch


class LetterLog:
    """Keeps the last dead letters of each task; one that is replayed after a failure is there once.

    The thread of a task replaces what it has kept, so that others read it without a lock.

    Example:
        >>> log = LetterLog()
        >>> log.table().num_rows
        0
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[_Batch, ...]] = {}
        self._bases: dict[str, int] = {}
        self._base = 0
        self._numbers = count()

    def listener(self, task: str, last_id: Callable[[], int]) -> Callable[[Records], None]:
        """A function that keeps dead letters of a task; `last_id` returns its last checkpoint in this attempt."""

        def keep(records: Records) -> None:
            epoch = max(self._bases.get(task, self._base), last_id())
            letters = records.batch.slice(max(0, len(records) - KEPT_MAX))
            pieces = (*self._kept.get(task, ()), _Batch(next(self._numbers), epoch, letters))
            rows, size, first = 0, 0, len(pieces)
            while first and (not rows or (rows < KEPT_MAX and size < KEPT_BYTES_MAX)):
                first -= 1
                rows += pieces[first].letters.num_rows
                size += pieces[first].letters.nbytes
            self._kept[task] = pieces[first:]

        return keep

    def go_back(self, checkpoint_id: int, tasks: Collection[str] | None = None) -> None:
        """Forget what comes behind a checkpoint, which is read again; called while these tasks do not run.

        Args:
            checkpoint_id: the checkpoint; 0: everything is read again.
            tasks: names; None: all.
        """
        for task in list(self._kept) if tasks is None else tasks:
            self._kept[task] = tuple(each for each in self._kept.get(task, ()) if each.epoch < checkpoint_id)
            self._bases[task] = checkpoint_id
        if tasks is None:
            self._base = checkpoint_id
            self._bases.clear()

    def table(self) -> pa.Table:
        """The dead letters, oldest first: at most `KEPT_MAX` of each task."""
        found = [each for pieces in list(self._kept.values()) for each in _last(pieces)]
        return pa.Table.from_batches([each.letters for each in sorted(found, key=attrgetter("number"))], SCHEMA)


def _last(pieces: tuple[_Batch, ...]) -> list[_Batch]:
    """Pieces without the first letters of the first, if they are too many together."""
    over = sum(each.letters.num_rows for each in pieces) - KEPT_MAX
    if over <= 0:
        return list(pieces)
    first = pieces[0]
    return [_Batch(first.number, first.epoch, first.letters.slice(over)), *pieces[1:]]
