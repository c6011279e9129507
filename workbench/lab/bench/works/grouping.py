"""W2, grouping (E2): a running count and sum per key after a hash exchange; an updated row for every record."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
from numba import njit

import workbench as wb
from workbench.connectors.contract.block_reader import Blocks
from workbench.connectors.live.generator_source import GeneratorSource
from workbench.elements import Int64s
from workbench.lab.bench.works.blocks import BLOCK, Emitted, continued, events
from workbench.lab.bench.works.latencies import SAMPLE, Latencies, Percentiles, Stamps
from workbench.lab.bench.works.work import Work

_SPLITS = GeneratorSource.splits
_SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64()), ("stamp", pa.int64())])


class Grouping(Work):
    """A source of keys and values, a running aggregate, a sink that keeps the latest row of each key.

    Every record carries its creation time as its event time, from which the sink computes latencies.

    Args:
        keys: at most a million.
        parallelism: the number of subtasks that share a rate.
        rate: records per second, 0 for full speed.
    """

    workload = "W2"

    def __init__(self, keys: int, parallelism: int, rate: int) -> None:
        block = events()
        self.emitted = Emitted()
        self._keys = keys
        self._rate = rate or None
        self._parallelism = parallelism
        self._columns = [pa.array(continued(column)) for column in (block.keyed(keys), block.values)]
        self._stamps = Stamps(rate / parallelism if rate else None)
        self._latencies = Latencies(1 if rate else SAMPLE)
        self._counts: Int64s = np.zeros(keys, np.int64)
        self._sums: Int64s = np.zeros(keys, np.int64)
        self._put = latest_rows()

    def config(self) -> dict[str, object]:
        return {"keys": self._keys}

    def pipeline(self, limit: int | None) -> wb.types.Pipeline:
        return self.counts(limit).sink_to(self.sink())

    def counts(self, limit: int | None) -> wb.Stream:
        """From the source to the aggregates: key, n, s."""
        key, value = self._columns
        emitted, stamps, parallelism = self.emitted, self._stamps, self._parallelism
        block = Blocks.dealt(_SPLITS, limit, self._rate).block

        def rows(first: int, count: int) -> pa.RecordBatch:
            emitted.add(first, count)
            start = first % BLOCK
            subtask = first // block % _SPLITS % parallelism
            columns = [key.slice(start, count), value.slice(start, count), pa.array(stamps.next(count, subtask))]
            return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

        return (
            wb.Stream.from_generator(rows, _SCHEMA, event_time="stamp", rate=self._rate, limit=limit)
            .select("key", "value")
            .key_by("key")
            .aggregate(n=wb.count(), s=wb.sum("value"))
        )

    def sink(self) -> wb.CallbackSink:
        """Keeps the latest row of each key."""
        return wb.CallbackSink(self._keep, name="keep", event_times=True)

    def _keep(self, batch: pa.RecordBatch, stamps: Int64s) -> None:
        key, count, total = (column.to_numpy() for column in batch.columns)
        self._put(key, count, total, self._counts, self._sums)
        self._latencies.arrived(stamps)

    def start_measuring(self) -> None:
        self._stamps.restart()
        self._latencies.start()

    def exact(self) -> bool:
        counts, sums = self.expected()
        return np.array_equal(self._counts, counts) and np.array_equal(self._sums, sums)

    def expected(self) -> tuple[Int64s, Int64s]:
        """Shape (keys,) each: the count and the sum of each key, from the emitted events."""
        block = events()
        key, times = block.keyed(self._keys), self.emitted.times()
        counts: Int64s = np.zeros(self._keys, np.int64)
        sums: Int64s = np.zeros(self._keys, np.int64)
        np.add.at(counts, key, times)
        np.add.at(sums, key, times * block.values)
        return counts, sums

    def percentiles_ms(self) -> Percentiles:
        return self._latencies.percentiles_ms()


@cache
def latest_rows() -> Callable[[Int64s, Int64s, Int64s, Int64s, Int64s], None]:
    """The sink's processing of a batch, compiled like those of other systems: keep the latest row of each key."""

    def put(key: Int64s, count: Int64s, total: Int64s, counts: Int64s, sums: Int64s) -> None:
        for i in range(len(key)):
            counts[key[i]] = count[i]
            sums[key[i]] = total[i]

    compiled: Callable[[Int64s, Int64s, Int64s, Int64s, Int64s], None] = njit(nogil=True)(put)
    column = np.zeros(1, np.int64)
    column.flags.writeable = False  # like the columns of a batch
    compiled(column, column, column, np.zeros(1, np.int64), np.zeros(1, np.int64))
    return compiled
