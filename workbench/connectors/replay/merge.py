"""Several channels of a replay log, read as the one sequence in which their records arrived."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.connectors.replay.cursor import Cursor, Rest
from workbench.connectors.replay.manifest import Manifest
from workbench.elements import Int64s

_MERGED_ROWS = 65_536
"""Up to this many records are merged at once."""
_RUN_ROWS = 48
"""From this length on, on average, runs of records of one channel are copied whole, which is faster than by row."""
_RUNS_TRIED = 32
"""So many runs may be shorter before the average counts. Then they are not tried again for so many merges."""
_MERGED_BYTES = 1 << 28
"""Records are copied when they are merged; of larger ones, fewer are merged at once."""
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


@dataclass(frozen=True, slots=True)
class _Merged:
    """Records that follow each other in order of arrival.

    Attributes:
        batch, arrivals: the records, and their arrivals in microseconds.
        numbers: gives the index of the cursor that each record comes from.
        offsets: by cursor, the offset of its first record in `batch`.
    """

    batch: pa.RecordBatch
    arrivals: Int64s
    numbers: Callable[[], npt.NDArray[np.intp]]
    offsets: tuple[int, ...]

    def offset(self, cursor: int, before: int) -> int:
        """The offset in its channel of the next record of a cursor, after the first `before` records of the batch."""
        return self.offsets[cursor] + int(np.count_nonzero(self.numbers()[:before] == cursor))


class Merge:
    """Reads channels of a log in the order in which their records arrived.

    Records with equal arrivals come in the order in which they were written: it follows from the blocks in which a log
    is dealt out to its channels, or is stored in a column. What was appended to a log follows everything before. A
    single channel is read without copies.

    Not shared between threads; close it when done.

    Args:
        cursors: of the channels, in the order of their numbers, with the column of the order if the log has one.
        manifest: of the log.

    Attributes:
        cursors: as given.

    Source: the merge of sorted runs, as in an external sort.
    """

    __slots__ = ("_at", "_block", "_by_row_next", "_cuts", "_merged", "_order", "_turns", "cursors")

    def __init__(self, cursors: Sequence[Cursor], manifest: Manifest) -> None:
        self.cursors = tuple(cursors)
        self._order = manifest.order_column if len(cursors) > 1 else ""
        self._block, self._turns = manifest.block_rows, len(manifest.channels)
        self._cuts = [[*(rows[each.channel] for rows in manifest.appended_after), each.rows] for each in cursors]
        self._merged: _Merged | None = None
        self._at = 0
        self._by_row_next = 0

    @property
    def exhausted(self) -> bool:
        """Whether no record follows."""
        return self._left == 0 and all(cursor.exhausted for cursor in self.cursors)

    @property
    def pending(self) -> int:
        """The number of records that follow."""
        return self._left + sum(cursor.rows - cursor.position for cursor in self.cursors)

    def offsets(self) -> dict[int, int]:
        """By channel, the offset of its next record."""
        merged = self._merged
        if merged is None or not self._left:
            return {cursor.channel: cursor.position for cursor in self.cursors}
        return {cursor.channel: merged.offset(i, self._at) for i, cursor in enumerate(self.cursors)}

    def seek(self, offsets: Sequence[int]) -> None:
        """Move each cursor to an offset in its channel.

        Raises:
            HistoryError: a channel has no such offset.
        """
        self._merged, self._at = None, 0
        for cursor, offset in zip(self.cursors, offsets, strict=True):
            cursor.seek(offset)

    def seek_time(self, arrival_us: int) -> None:
        """Move to the first record whose arrival is at or after `arrival_us`; to the end if there is none."""
        self._merged, self._at = None, 0
        for cursor in self.cursors:
            cursor.seek_time(arrival_us)

    def peek_arrival_us(self) -> int | None:
        """The arrival of the next record; None at the end."""
        merged = self._present()
        return None if merged is None else int(merged.arrivals[self._at])

    def read(self, max_records: int, arrival_limit_us: int) -> pa.RecordBatch | None:
        """Return the next records, at most `max_records`, as a slice without copying, and move past them.

        Args:
            max_records: at least 1.
            arrival_limit_us: only records that arrived at or before this time.

        Returns:
            None when there is no such record.

        Raises:
            HistoryError: a file is missing or damaged, or its arrivals are null or decrease.
        """
        merged = self._present()
        if merged is None:
            return None
        start = self._at
        stop = min(start + max_records, len(merged.arrivals))
        if merged.arrivals[stop - 1] > arrival_limit_us:
            stop = int(np.searchsorted(merged.arrivals[:stop], arrival_limit_us, side="right"))
        if stop <= start:
            return None
        self._at = stop
        return merged.batch.slice(start, stop - start)

    def place_before(self, rows: int, path: str) -> Callable[[int], str]:
        """Describe the place of row i of the last `rows` records that were read."""
        merged, start = self._merged, self._at - rows
        assert merged is not None, "nothing was read"

        def place(row: int) -> str:
            cursor = int(merged.numbers()[start + row])
            return f"{path}, channel {self.cursors[cursor].channel}, offset {merged.offset(cursor, start + row)}"

        return place

    def close(self) -> None:
        """Release the files and the loaded records; the merge can be used again after a seek."""
        for cursor in self.cursors:
            cursor.close()

    @property
    def _left(self) -> int:
        return 0 if self._merged is None else len(self._merged.arrivals) - self._at

    def _present(self) -> _Merged | None:
        """What is merged, with at least one record left; None at the end."""
        if not self._left:
            self._merged, self._at = self._next(), 0
        return self._merged

    def _next(self) -> _Merged | None:
        left = [i for i, cursor in enumerate(self.cursors) if not cursor.exhausted]
        if not left:
            return None
        offsets = tuple(cursor.position for cursor in self.cursors)
        part = min(self._part(i) for i in left)
        ends = {i: self._cuts[i][part] for i in left if self._part(i) == part}
        rests = {i: self.cursors[i].rest(end) for i, end in ends.items()}
        if len(rests) == 1:
            [(only, rest)] = rests.items()
            rows = len(rest.arrivals)
            self.cursors[only].seek(offsets[only] + rows)
            return _Merged(self._shown(rest.batch), rest.arrivals, lambda: np.full(rows, only), offsets)
        rests = _cut(rests)
        firsts = {i: offsets[i] - (self._cuts[i][part - 1] if part else 0) for i in rests}
        ended = {i for i, rest in rests.items() if offsets[i] + len(rest.arrivals) == ends[i]}
        if not self._by_row_next:
            if merged := self._by_run(rests, firsts, ended, offsets):
                return merged
            self._by_row_next = _RUNS_TRIED
        self._by_row_next -= 1
        return self._by_row(rests, firsts, ended, offsets)

    def _by_run(
        self, rests: Mapping[int, Rest], firsts: Mapping[int, int], ended: Set[int], offsets: tuple[int, ...]
    ) -> _Merged | None:
        """Merge whole runs of records of one channel; None if the runs are so short that sorting is faster.

        Args:
            rests: by cursor, its records in memory.
            firsts: by cursor, the number of records before these since the last append.
            ended: the cursors that have no further records.
            offsets: of all cursors.
        """
        runs: list[tuple[int, int, int]] = []
        done = dict.fromkeys(rests, 0)
        heads = {i: self._key(i, rest, firsts[i], 0) for i, rest in rests.items()}
        spare = _RUN_ROWS * _RUNS_TRIED
        while heads:
            i = min(heads, key=heads.__getitem__)
            del heads[i]
            rest, start = rests[i], done[i]
            end = self._end(i, rest, firsts[i], start, min(heads.values())) if heads else len(rest.arrivals)
            runs.append((i, start, end))
            done[i] = end
            spare += end - start - _RUN_ROWS
            if spare < 0:
                return None
            if end < len(rest.arrivals):
                heads[i] = self._key(i, rest, firsts[i], end)
            elif i not in ended:
                break
        for i, rows in done.items():
            self.cursors[i].seek(offsets[i] + rows)
        batch = pa.concat_batches([rests[i].batch.slice(start, end - start) for i, start, end in runs])
        arrivals = np.concatenate([rests[i].arrivals[start:end] for i, start, end in runs])
        return _Merged(
            self._shown(batch),
            arrivals,
            lambda: np.repeat([i for i, _, _ in runs], [end - start for _, start, end in runs]),
            offsets,
        )

    def _by_row(
        self, rests: Mapping[int, Rest], firsts: Mapping[int, int], ended: Set[int], offsets: tuple[int, ...]
    ) -> _Merged:
        """Merge by sorting; arguments as for `_by_run`."""
        last = min((self._key(i, rest, firsts[i], -1) for i, rest in rests.items() if i not in ended), default=None)
        taken: list[tuple[int, Rest, Int64s]] = []
        for i, rest in rests.items():
            rows = len(rest.arrivals) if last is None or i == last[2] else self._end(i, rest, firsts[i], 0, last)
            if rows:
                taken.append((i, rest.first(rows), self._ranks(i, rest, firsts[i], 0, rows)))
                self.cursors[i].seek(offsets[i] + rows)
        arrivals = np.concatenate([rest.arrivals for _, rest, _ in taken])
        order = _in_order(arrivals, np.concatenate([ranks for _, _, ranks in taken]))
        numbers, lengths = [i for i, _, _ in taken], [len(ranks) for _, _, ranks in taken]
        together = pa.concat_batches([rest.batch for _, rest, _ in taken])
        batch = pc.take(together, pa.array(order), boundscheck=False)
        return _Merged(self._shown(batch), arrivals[order], lambda: np.repeat(numbers, lengths)[order], offsets)

    def _part(self, i: int) -> int:
        """The number of the part of the log, between two appends, that a cursor reads."""
        return int(np.searchsorted(self._cuts[i], self.cursors[i].position, side="right"))

    def _key(self, i: int, rest: Rest, first: int, row: int) -> tuple[int, int, int]:
        """The place in the order of a row of a cursor; -1 is its last one in memory."""
        row %= len(rest.arrivals)
        return int(rest.arrivals[row]), int(self._ranks(i, rest, first, row, row + 1)[0]), i

    def _end(self, i: int, rest: Rest, first: int, start: int, key: tuple[int, int, int]) -> int:
        """The first row of a cursor, from `start` on, that comes after the record with this key."""
        arrival_us, rank, other = key
        begin, end = (start + int(np.searchsorted(rest.arrivals[start:], arrival_us, side=s)) for s in _SIDES)
        if begin == end:
            return end
        ranks = self._ranks(i, rest, first, begin, end)
        return begin + int(np.searchsorted(ranks, rank, side="right" if i < other else "left"))

    def _ranks(self, i: int, rest: Rest, first: int, start: int, end: int) -> Int64s:
        """The order of the rows of a cursor from `start` to `end` among records that have the same arrival."""
        if self._order:
            ranks: Int64s = rest.batch.column(self._order).slice(start, end - start).to_numpy()
            return ranks
        rows = np.arange(first + start, first + end)
        others = rows // self._block * (self._turns - 1) + self.cursors[i].channel  # the blocks before, of all others
        return rows + others * self._block

    def _shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.drop_columns([self._order]) if self._order else batch


def _cut(rests: dict[int, Rest]) -> dict[int, Rest]:
    """The first records of each, so that no more are merged at once than memory is for."""
    most = max(1, _MERGED_ROWS // len(rests))
    while True:
        cut = {i: rest.first(most) for i, rest in rests.items()}
        if most == 1 or sum(rest.batch.nbytes for rest in cut.values()) <= _MERGED_BYTES:
            return cut
        most //= 2


def _in_order(arrivals: Int64s, ranks: Int64s) -> npt.NDArray[np.intp]:
    """The order of records by arrival, then by rank. Ranks without a gap need no sort; sorts find the runs that they
    merge."""
    order = np.full(len(ranks), -1)
    first = ranks.min()
    if ranks.max() - first == len(ranks) - 1:
        order[ranks - first] = np.arange(len(ranks))
    if (order < 0).any():  # there are gaps, or equal ranks in a damaged file
        order = np.argsort(ranks, kind="stable")
    ranked = arrivals[order]
    return order if (ranked[1:] >= ranked[:-1]).all() else order[np.argsort(ranked, kind="stable")]
