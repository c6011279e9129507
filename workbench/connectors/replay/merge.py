"""Several channels of a replay log, read as the one sequence in which their records arrived."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.connectors.contract.base import counted
from workbench.connectors.replay.cursor import Cursor, Rest
from workbench.connectors.replay.manifest import Manifest
from workbench.elements import Int64s

_MERGED_ROWS = 65_536
"""Up to this many records are merged at once."""
_RUN_ROWS = 48
"""From this length on, on average, runs of records of one channel are copied whole, which is faster than by row."""
_MERGED_BYTES = 1 << 28
"""Records are copied when they are merged; of larger ones, fewer are merged at once."""


@dataclass(frozen=True, slots=True)
class _Merged:
    """Records that follow each other in order of arrival.

    Attributes:
        batch, arrivals: the records, and their arrivals in microseconds.
        numbers: the index of the cursor that each record comes from; None: all come from `only`.
        only: the index of that cursor.
        offsets: by cursor, the offset of its first record in `batch`.
    """

    batch: pa.RecordBatch
    arrivals: Int64s
    numbers: npt.NDArray[np.intp] | None
    only: int
    offsets: tuple[int, ...]

    def offset(self, cursor: int, before: int) -> int:
        """The offset in its channel of the next record of a cursor, after the first `before` records of the batch."""
        if self.numbers is None:
            return self.offsets[cursor] + (before if cursor == self.only else 0)
        return self.offsets[cursor] + int(np.count_nonzero(self.numbers[:before] == cursor))


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

    __slots__ = ("_at", "_block", "_cuts", "_merged", "_order", "_turns", "cursors")

    def __init__(self, cursors: Sequence[Cursor], manifest: Manifest) -> None:
        self.cursors = tuple(cursors)
        self._order = manifest.order_column if len(cursors) > 1 else ""
        self._block, self._turns = manifest.block_rows, len(manifest.channels)
        self._cuts = [[*(rows[each.channel] for rows in manifest.appended_after), each.rows] for each in cursors]
        self._merged: _Merged | None = None
        self._at = 0

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
        numbers = merged.numbers
        if numbers is None:
            channel = self.cursors[merged.only].channel
            return counted(f"{path}, channel {channel}, offset", merged.offset(merged.only, start))
        channels = [cursor.channel for cursor in self.cursors]

        def place(row: int) -> str:
            cursor = int(numbers[start + row])
            return f"{path}, channel {channels[cursor]}, offset {merged.offset(cursor, start + row)}"

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
            self.cursors[only].seek(offsets[only] + len(rest.arrivals))
            return _Merged(self._shown(rest.batch), rest.arrivals, None, only, offsets)
        rests = _cut(rests)
        ranks = {
            i: self._ranks(i, rest, offsets[i] - (self._cuts[i][part - 1] if part else 0)) for i, rest in rests.items()
        }
        unseen = [i for i, rest in rests.items() if offsets[i] + len(rest.arrivals) < ends[i]]
        last = min(((int(rests[i].arrivals[-1]), int(ranks[i][-1]), i) for i in unseen), default=None)
        taken: list[tuple[int, Rest, Int64s]] = []
        for i, rest in rests.items():
            whole = len(rest.arrivals)
            rows = whole if last is None or i == last[2] else _up_to(rest.arrivals, ranks[i], i, last)
            if rows:
                taken.append((i, rest.first(rows), ranks[i][:rows]))
                self.cursors[i].seek(offsets[i] + rows)
        arrivals = np.concatenate([rest.arrivals for _, rest, _ in taken])
        order = _in_order(arrivals, np.concatenate([rank for _, _, rank in taken]))
        numbers = np.repeat([i for i, _, _ in taken], [len(rank) for _, _, rank in taken])[order]
        batch = _arranged({i: rest.batch for i, rest, _ in taken}, order, numbers)
        return _Merged(self._shown(batch), arrivals[order], numbers, -1, offsets)

    def _part(self, i: int) -> int:
        """The number of the part of the log, between two appends, that a cursor reads."""
        return int(np.searchsorted(self._cuts[i], self.cursors[i].position, side="right"))

    def _ranks(self, i: int, rest: Rest, first: int) -> Int64s:
        """The order of the records that have the same arrival; `first` counts from the last append."""
        if self._order:
            ranks: Int64s = rest.batch.column(self._order).to_numpy()
            return ranks
        rows = np.arange(first, first + len(rest.arrivals))
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


def _up_to(arrivals: Int64s, ranks: Int64s, number: int, last: tuple[int, int, int]) -> int:
    """How many records of cursor `number` come no later than the record `last`: its arrival, rank and cursor."""
    arrival_us, rank, other = last
    start, stop = (int(np.searchsorted(arrivals, arrival_us, side=side)) for side in ("left", "right"))
    return start + int(np.searchsorted(ranks[start:stop], rank, side="right" if number < other else "left"))


def _in_order(arrivals: Int64s, ranks: Int64s) -> npt.NDArray[np.intp]:
    """The order of records by arrival, then by rank. Both sorts find the runs that they merge."""
    order = np.argsort(ranks, kind="stable")
    ranked = arrivals[order]
    return order if (ranked[1:] >= ranked[:-1]).all() else order[np.argsort(ranked, kind="stable")]


def _arranged(
    batches: Mapping[int, pa.RecordBatch], order: npt.NDArray[np.intp], numbers: npt.NDArray[np.intp]
) -> pa.RecordBatch:
    """The records of several batches in an order that keeps that of each batch.

    Args:
        batches: by the number of their cursor.
        order: by place in the result, the place in all batches together.
        numbers: by place in the result, the cursor.
    """
    ends = np.append(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1, len(numbers))
    if len(ends) * _RUN_ROWS > len(numbers):
        return pc.take(pa.concat_batches(list(batches.values())), pa.array(order), boundscheck=False)
    done = dict.fromkeys(batches, 0)
    runs, start = [], 0
    for end in ends.tolist():
        number = int(numbers[start])
        runs.append(batches[number].slice(done[number], end - start))
        done[number] += end - start
        start = end
    return pa.concat_batches(runs)
