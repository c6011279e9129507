"""The event time reached before a restore, for the keys that came from a subtask that was further ahead.

In a checkpoint the subtasks of one operator may have different watermarks: an unaligned barrier overtakes watermarks
that are in flight. A subtask that receives keys of several former subtasks resumes from the lowest watermark. But what
was late for a key stays late: a window that has fired and was forgotten must not open again. The same holds when a job
resumes with another number of key groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from workbench.durations import NO_TIME
from workbench.elements import Int64s, Records
from workbench.operators.contract.base import Json, OperatorContext, Snapshot
from workbench.operators.snapshots.pieces import value_in
from workbench.state.key_groups import KEY_GROUPS_LEAST, KEY_GROUPS_MOST, key_groups_of, subtask_of_group

_Ranges = tuple[tuple[int, ...], ...]


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

    __slots__ = ("_furthest_us", "_groups", "_marks", "_own")

    def __init__(self, context: OperatorContext) -> None:
        owners = subtask_of_group(context.parallelism, context.max_parallelism)
        self._own = np.flatnonzero(owners == context.subtask)
        self._groups = context.max_parallelism
        self._marks: dict[int, Int64s] = {}  # of each group, by their number; only a rehashed state has several
        self._furthest_us = NO_TIME

    def snapshot(self, watermark_us: int) -> Json:
        """For each range of key groups: its first, its end (exclusive), and the event time reached there.

        If there are not 128 groups, their number follows. Ranges for a former number of groups give the event time
        reached for their keys before.
        """
        own = np.full(len(self._own), watermark_us)
        ranges: list[Json] = []
        if watermark_us < self._furthest_us:  # otherwise event time is equal everywhere
            for groups, marks in self._marks.items():
                if groups == self._groups:
                    own = np.maximum(marks[self._own], watermark_us)
                else:
                    ranges += _ranges(marks, 0, groups)
        return [*_ranges(own, int(self._own[0]), self._groups), *ranges]

    def restore(self, snapshots: Sequence[Snapshot]) -> int:
        """Restore the ranges (``watermarks``) of all former subtasks; returns the watermark from which to resume.

        Raises:
            ValueError: not ranges of key groups.
        """
        self._marks.clear()
        for snapshot in snapshots:
            for saved in value_in(snapshot, "watermarks", _Ranges):
                first, end, mark, groups = saved if len(saved) == 4 else (*saved, KEY_GROUPS_LEAST)
                if not 0 <= first < end <= groups <= KEY_GROUPS_MOST:
                    raise ValueError(f"watermarks has the key groups {first} to {end} of {groups}")
                marks = self._marks.setdefault(groups, np.full(groups, NO_TIME))
                marks[first:end] = np.maximum(marks[first:end], mark)
        mine = [marks[self._own] if groups == self._groups else marks for groups, marks in self._marks.items()]
        self._furthest_us = max(int(marks.max()) for marks in mine)
        return max(int(marks.min()) for marks in mine)

    def parts(self, records: Records, keys: Sequence[str], watermark_us: int) -> list[tuple[Records, int]]:
        """Split the records by the event time reached for their keys; into one piece once the watermark has caught
        up."""
        if watermark_us >= self._furthest_us:
            return [(records, watermark_us)]
        table = pa.Table.from_batches([records.batch])
        marks = np.full(len(records), watermark_us)
        for groups, known in self._marks.items():
            np.maximum(marks, known[key_groups_of(table, keys, groups)], out=marks)
        return [(records.where(marks == mark), int(mark)) for mark in np.unique(marks)]


def _ranges(marks: Int64s, first: int, groups: int) -> list[Json]:
    """The marks of adjacent key groups from `first` on; equal ones form one range."""
    begins = [0, *(np.flatnonzero(marks[1:] != marks[:-1]) + 1).tolist()]
    ends = [*begins[1:], len(marks)]
    number = [] if groups == KEY_GROUPS_LEAST else [groups]  # as earlier versions wrote it
    return [[first + begin, first + end, int(marks[begin]), *number] for begin, end in zip(begins, ends, strict=True)]
