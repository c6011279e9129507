"""W4, functions: a Python function per record, then one with keyed state after a hash exchange; one row out for
each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.elements import Int64s
from workbench.lab.bench.works.blocks import BLOCK, Emitted, continued, events
from workbench.lab.bench.works.grouping import latest_rows
from workbench.lab.bench.works.work import Work

KEYS = 10_000
_SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
_RUNNING = pa.schema([("key", pa.int64()), ("n", pa.int64()), ("s", pa.int64())])
_ZERO = wb.state.ValueState(pa.int64(), default=0)


def add_one(record: dict[str, Any]) -> dict[str, Any]:
    """The first function: the value plus one."""
    record["value"] += 1
    return record


def running(record: dict[str, Any], state: wb.state.State) -> dict[str, Any]:
    """The second: count and sum of its key so far."""
    state.n += 1
    state.s += record["value"]
    return {"key": record["key"], "n": state.n, "s": state.s}


class Function(Work):
    """A source of keys and values, a map, a keyed function, a sink that keeps the latest row of each key."""

    workload = "W4"

    def __init__(self) -> None:
        block = events()
        self.emitted = Emitted()
        self._columns = [pa.array(continued(column)) for column in (block.keys[KEYS], block.values)]
        self._counts: Int64s = np.zeros(KEYS, np.int64)
        self._sums: Int64s = np.zeros(KEYS, np.int64)
        self._put = latest_rows()

    def config(self) -> dict[str, object]:
        return {"keys": KEYS}

    def pipeline(self, limit: int | None) -> wb.types.Pipeline:
        key, value = self._columns
        emitted = self.emitted

        def rows(first: int, count: int) -> pa.RecordBatch:
            emitted.add(first, count)
            start = first % BLOCK
            return pa.RecordBatch.from_arrays([key.slice(start, count), value.slice(start, count)], schema=_SCHEMA)

        return (
            wb.Stream.from_generator(rows, _SCHEMA, limit=limit)
            .map(add_one)
            .key_by("key")
            .process(running, _RUNNING, state={"n": _ZERO, "s": _ZERO})
            .sink_to(wb.CallbackSink(self._keep, name="keep"))
        )

    def _keep(self, batch: pa.RecordBatch) -> None:
        key, count, total = (column.to_numpy() for column in batch.columns)
        self._put(key, count, total, self._counts, self._sums)

    def exact(self) -> bool:
        block = events()
        key, times = block.keys[KEYS], self.emitted.times()
        counts: Int64s = np.zeros(KEYS, np.int64)
        sums: Int64s = np.zeros(KEYS, np.int64)
        np.add.at(counts, key, times)
        np.add.at(sums, key, times * (block.values + 1))
        return np.array_equal(self._counts, counts) and np.array_equal(self._sums, sums)
