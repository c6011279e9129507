"""How far event time was before a job was restored, for the keys that came from a subtask that was further.

In a checkpoint the subtasks of one operator need not stand at the same watermark: an unaligned barrier overtakes the
watermarks that are on their way. Where keys of several of them come together in one subtask, it goes on from the
lowest. But what was late for a key stays late: a window that has fired and is forgotten must not open again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from workbench.durations import NO_TIME
from workbench.elements import Int64s, Records
from workbench.operators.base import Json, OperatorContext, Snapshot
from workbench.operators.pieces import value_in
from workbench.state import key_groups_of, subtask_of_group

_Ranges = tuple[tuple[int, int, int], ...]


class PastWatermarks:
    """The watermarks of one subtask's key groups at the checkpoint that it was restored from.

    Example:
        >>> former = [PastWatermarks(OperatorContext(subtask=n, parallelism=2)) for n in range(2)]
        >>> snapshots = [{"watermarks": one.snapshot(10 + n)} for n, one in enumerate(former)]
        >>> together = PastWatermarks(OperatorContext())
        >>> together.restore(snapshots)
        10
        >>> batch = pa.record_batch({"k": [5, 6, 7, 8]})
        >>> [(part.batch.to_pydict(), mark) for part, mark in together.parts(Records(batch), ["k"], 10)]
        [({'k': [6, 8]}, 10), ({'k': [5, 7]}, 11)]
    """

    __slots__ = ("_by_group", "_furthest_us", "_own")

    def __init__(self, context: OperatorContext) -> None:
        owners = subtask_of_group(context.parallelism, context.max_parallelism)
        self._own = np.flatnonzero(owners == context.subtask)
        self._by_group: Int64s = np.full(len(owners), NO_TIME)
        self._furthest_us = NO_TIME

    def snapshot(self, watermark_us: int) -> Json:
        """For each range of key groups its first, the one behind its last, and how far event time is there."""
        if watermark_us >= self._furthest_us:  # event time is as far everywhere
            return [[int(self._own[0]), int(self._own[-1]) + 1, watermark_us]]
        marks = np.maximum(self._by_group[self._own], watermark_us)
        begins = [0, *(np.flatnonzero(marks[1:] != marks[:-1]) + 1).tolist()]
        ends = [*begins[1:], len(marks)]
        group = int(self._own[0])
        return [[group + begin, group + end, int(marks[begin])] for begin, end in zip(begins, ends, strict=True)]

    def restore(self, snapshots: Sequence[Snapshot]) -> int:
        """Take the ranges (``watermarks``) of all former subtasks; the watermark from which to go on.

        Raises:
            ValueError: they are no ranges of key groups.
        """
        self._by_group[:] = NO_TIME
        for snapshot in snapshots:
            for first, end, mark in value_in(snapshot, "watermarks", _Ranges):
                if not 0 <= first <= end <= len(self._by_group):
                    raise ValueError(f"watermarks has the key groups {first} to {end} of {len(self._by_group)}")
                self._by_group[first:end] = mark
        own = self._by_group[self._own]
        self._furthest_us = int(own.max())
        return int(own.min())

    def parts(self, records: Records, keys: Sequence[str], watermark_us: int) -> list[tuple[Records, int]]:
        """The records, split by how far event time has been for their keys; in one piece once that is no further."""
        if watermark_us >= self._furthest_us:
            return [(records, watermark_us)]
        table = pa.Table.from_batches([records.batch])
        marks = np.maximum(self._by_group[key_groups_of(table, keys, len(self._by_group))], watermark_us)
        return [(_where(records, marks == mark), int(mark)) for mark in np.unique(marks)]


def _where(records: Records, chosen: np.ndarray) -> Records:
    times = records.timestamps
    return Records(records.batch.filter(pa.array(chosen)), None if times is None else times[chosen])
