"""Keeps the rows that partial matches have bound, and the neighbouring rows that terms may read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.operators.matching.programs import NO_PROGRAM, IntRows, Program
from workbench.operators.matching.waiting_rows import Timed

_NONE = np.empty(0, np.int64)


class KeptRows:
    """Rows by number. New rows are added at the end; numbers change only when rows are dropped.

    Args:
        schema: of the rows.
        program: computes the values of each row that conditions need.

    Attributes:
        codes, times: shape (n,).
        values: shape (n, columns + 1), see ``Program.values``.
        before, after: shape (n,), the number of the key's previous and next row, or -1.
    """

    __slots__ = ("_batches", "_program", "_schema", "_table", "after", "before", "codes", "times", "values")

    def __init__(self, schema: pa.Schema, program: Program = NO_PROGRAM) -> None:
        self._schema = schema
        self._program = program
        self.values: IntRows = np.empty((0, len(program.columns) + 1), np.int64)
        self._batches: list[pa.RecordBatch] = []
        self._table: pa.Table | None = None
        self.codes = self.times = self.before = self.after = _NONE

    def __len__(self) -> int:
        return len(self.codes)

    def add(self, rows: Timed, previous: Int64s) -> None:
        """Add rows that are sorted by code and, within a code, by their order.

        Args:
            rows: n rows.
            previous: shape (n,), for the first row of each key the number of its previous row, or -1.
        """
        base, n = len(self), len(rows)
        numbers = np.arange(base, base + n)
        follows = np.zeros(n, np.bool_)
        follows[1:] = rows.codes[1:] == rows.codes[:-1]
        before = np.where(follows, numbers - 1, previous)
        after = np.full(n, -1, np.int64)
        after[:-1][follows[1:]] = numbers[1:][follows[1:]]
        self.codes = np.concatenate([self.codes, rows.codes])
        self.times = np.concatenate([self.times, rows.times])
        self.before = np.concatenate([self.before, before])
        self.after = np.concatenate([self.after, after])
        known = before >= 0
        self.after[before[known]] = numbers[known]
        if self._program.columns:
            self.values = np.concatenate([self.values, self._program.values(rows.batch)])
        self._batches.append(rows.batch)
        self._table = None
        while len(self._batches) > 1 and self._batches[-2].num_rows < 2 * self._batches[-1].num_rows:
            last = self._batches.pop()
            self._batches[-1] = pa.concat_batches([self._batches[-1], last])

    def take(self, rows: Int64s) -> pa.RecordBatch:
        """The rows of these numbers."""
        indices = pa.array(rows)
        if len(self._batches) == 1:
            return self._batches[0].take(indices)
        if self._table is None:
            self._table = pa.Table.from_batches(self._batches, self._schema)
        taken = self._table.take(indices).combine_chunks()
        return taken.to_batches()[0] if len(rows) else pa.RecordBatch.from_pylist([], schema=self._schema)

    def shifted(self, rows: Int64s, shift: int) -> Int64s:
        """The numbers of the rows at a distance after (or, below 0, before) these in their keys; -1: there is none."""
        links = self.after if shift > 0 else self.before
        for _ in range(abs(shift)):
            rows = np.where(rows < 0, -1, links[np.maximum(rows, 0)])
        return rows

    def retain(self, used: Int64s) -> Int64s:
        """Drop all rows but these.

        Args:
            used: shape (n,), 1 for each row that stays.

        Returns:
            Shape (n,): the new number of each row, -1 if it was dropped.
        """
        chosen = np.flatnonzero(used)
        mapping = np.full(len(self), -1, np.int64)
        mapping[chosen] = np.arange(len(chosen))
        batch = self.take(chosen)
        self._batches, self._table = [batch] if len(chosen) else [], None
        self.codes, self.times = self.codes[chosen], self.times[chosen]
        if self._program.columns:
            self.values = self._program.packed(self.values[chosen])
        for name in ("before", "after"):
            links = getattr(self, name)[chosen]
            setattr(self, name, np.where(links < 0, -1, mapping[np.maximum(links, 0)]))
        return mapping
