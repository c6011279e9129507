"""Keeps the rows that the watermark has not passed yet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s, Mask
from workbench.operators.snapshots.saved_rows import together


@dataclass(frozen=True, slots=True)
class Timed:
    """Rows with the codes of their keys and their event times; all of shape (n,)."""

    batch: pa.RecordBatch
    codes: Int64s
    times: Int64s

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Int64s) -> Timed:
        """These rows, in this order."""
        return Timed(self.batch.take(pa.array(rows)), self.codes[rows], self.times[rows])

    def slice(self, begin: int, end: int) -> Timed:
        """Rows from `begin` to `end`, without copying."""
        return Timed(self.batch.slice(begin, end - begin), self.codes[begin:end], self.times[begin:end])


class WaitingRows:
    """Batches in order of arrival, each sorted by time, so that the due rows are at the beginning of each batch.

    Args:
        schema: of the rows.
    """

    __slots__ = ("_batches", "_schema")

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[Timed] = []

    def __len__(self) -> int:
        return sum(map(len, self._batches))

    def add(self, rows: Timed) -> None:
        """Add rows that have just arrived."""
        if len(rows):
            self._batches.append(_sorted(rows))

    def put_back(self, rows: Timed) -> None:
        """Return rows that were taken to the front of the queue."""
        if len(rows):
            self._batches.insert(0, _sorted(rows))

    def take(self, until_us: int) -> Timed:
        """Take the rows up to a time; within a batch, they are sorted by time and, for equal times, by arrival."""
        due, kept = [], []
        for rows in self._batches:
            end = int(np.searchsorted(rows.times, until_us, side="right"))
            if end:
                due.append(rows.slice(0, end))
            if end < len(rows):
                kept.append(rows.slice(end, len(rows)))
        self._batches = kept
        return self._joined(due)

    def all(self) -> Timed:
        """All rows, batch by batch in order of arrival; rows of a key with equal times are in that order, too."""
        return self._joined(self._batches)

    def count(self, code: int) -> int:
        """How many rows have this code."""
        return sum(int(np.count_nonzero(rows.codes == code)) for rows in self._batches)

    def recode(self, mapping: Int64s) -> None:
        """Code c becomes ``mapping[c]``."""
        self._batches = [Timed(rows.batch, mapping[rows.codes], rows.times) for rows in self._batches]

    def mark_codes(self, used: Mask) -> None:
        """Set ``used[code]`` for the codes of all rows."""
        for rows in self._batches:
            used[rows.codes] = True

    def _joined(self, parts: list[Timed]) -> Timed:
        if len(parts) == 1:
            return parts[0]
        none = np.empty(0, np.int64)
        return Timed(
            together([part.batch for part in parts], self._schema),
            np.concatenate([none, *(part.codes for part in parts)]),
            np.concatenate([none, *(part.times for part in parts)]),
        )


def _sorted(rows: Timed) -> Timed:
    if len(rows) < 2 or not (rows.times[1:] < rows.times[:-1]).any():
        return rows
    return rows.take(np.argsort(rows.times, kind="stable"))
