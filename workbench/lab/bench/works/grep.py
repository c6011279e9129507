"""W1, grep (E1): lines of text that match a regular expression, counted at the sink."""

from __future__ import annotations

import re
from functools import cache
from threading import Lock

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.elements import Int64s
from workbench.lab.bench.works.blocks import BLOCK, Emitted, continued_text, events
from workbench.lab.bench.works.work import Work

PATTERN = "error [0-9]{3}"
CONDITION = f"line RLIKE '{PATTERN}'"
SCHEMA = pa.schema([("line", pa.string())])


class Grep(Work):
    """A source of strings, a filter, a sink that counts."""

    workload = "W1"

    def __init__(self) -> None:
        self.emitted = Emitted()
        self._lines = continued_text()
        self._found = 0
        self._lock = Lock()

    def pipeline(self, limit: int | None) -> wb.types.Pipeline:
        return self.lines(limit).filter(CONDITION).sink_to(wb.CallbackSink(self._count, name="count"))

    def lines(self, limit: int | None) -> wb.Stream:
        """All lines."""
        lines, emitted = self._lines, self.emitted

        def rows(first: int, count: int) -> pa.RecordBatch:
            emitted.add(first, count)
            return pa.RecordBatch.from_arrays([lines.slice(first % BLOCK, count)], schema=SCHEMA)

        return wb.Stream.from_generator(rows, SCHEMA, limit=limit)

    def start_measuring(self) -> None:
        """Only events are measured."""

    def _count(self, batch: pa.RecordBatch) -> None:
        with self._lock:
            self._found += batch.num_rows

    def exact(self) -> bool:
        return self._found == self.expected()

    def expected(self) -> int:
        """How many of the emitted lines match."""
        return int(self.emitted.times()[matching_rows()].sum())


@cache
def matching_rows() -> Int64s:
    """The matching rows of the block, found by Python's own engine."""
    search = re.compile(PATTERN.encode()).search
    return np.flatnonzero([search(row.tobytes()) is not None for row in events().text])
