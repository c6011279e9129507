"""The job under soak, and its expected results: everything about a record follows from its number.

A generator yields records with a key, a number that depends on the key, and event times out of order. They feed windows
by group (a table that grows), running totals by key (a table with the latest row of each), and every hundredth of these
rows, the *milestones* (Parquet files). So keyed state, event time and both kinds of commits are tested.
"""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.elements import Int64s
from workbench.lab.soak.read_rows import ReadRows

KEYS = 1_000
GROUPS = 64
STEP_US = 10
"""Event time from one record to the next, if they are in order."""
DISORDER = 1_000
"""A record's event time is at most that of the record this many positions later."""
WINDOW_ROWS = 200_000
WINDOW_US = WINDOW_ROWS * STEP_US
BASE_US = 1_700_000_000_000_000 // WINDOW_US * WINDOW_US
MILESTONE = 100
WINDOWS, TOTALS, MILESTONES, ARRIVALS = "windows", "totals", "milestones", "arrivals"
OPERATORS = ("records", "windowed", "running", WINDOWS, TOTALS, MILESTONES)
"""The operators that can be stalled or slowed down."""
_ARRIVALS_MAX = 100_000
_PRIME = 2_654_435_761


def keys_of(number: Int64s) -> Int64s:
    """The keys of records, shape (n,): scattered, so that each chunk has all of them."""
    return ((number * _PRIME) >> 7) % KEYS


def places_of(number: Int64s) -> Int64s:
    """The places of records in event time, shape (n,): their numbers, out of order by at most DISORDER."""
    return number + DISORDER - number * 7_919 % DISORDER


class Work:
    """The pipeline, and a record of what it read and when records reached its sink.

    Args:
        rate: records per second.
        folder: for the Parquet files; used by nothing else.

    Attributes:
        read: the records that were read.
        arrivals: when records reached a sink, in seconds of ``time.perf_counter``; the latest ones.
        parts: the folder of the milestones.
    """

    schema: ClassVar[pa.Schema] = pa.schema(
        [(name, pa.int64()) for name in ("number", "key", "group", "value", "time_us")]
    )

    def __init__(self, rate: float, folder: Path) -> None:
        self.read = ReadRows()
        self.arrivals: deque[float] = deque(maxlen=_ARRIVALS_MAX)
        self.parts = folder / MILESTONES
        self._rate = rate

    def pipeline(self) -> wb.types.Pipeline:
        """From the generator to the sinks."""
        source = wb.Stream.from_generator(
            self._records,
            self.schema,
            event_time="time_us",
            out_of_orderness=f"{2 * DISORDER * STEP_US}us",
            rate=self._rate,
        )
        records = source.uid("records")
        windows = records.key_by("group").window(wb.tumbling(f"{WINDOW_US}us"))
        windowed = windows.aggregate(n=wb.count(), s=wb.sum("number")).uid("windowed")
        running = records.key_by("key").aggregate(n=wb.count(), s=wb.sum("value")).uid("running")
        milestones = running.filter(f"n % {MILESTONE} = 0")
        return (
            windowed.sink_to(wb.TableSink(WINDOWS))
            + running.sink_to(wb.TableSink(TOTALS, upsert_key="key"))
            + milestones.sink_to(wb.ParquetSink(self.parts))
            + running.sink_to(wb.CallbackSink(self._arrived, name=ARRIVALS))
        )

    def _records(self, first: int, count: int) -> pa.RecordBatch:
        self.read.add(first, count)
        number = np.arange(first, first + count)
        key = keys_of(number)
        columns = (number, key, key % GROUPS, key + 1, BASE_US + places_of(number) * STEP_US)
        return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=self.schema)

    def _arrived(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self.arrivals.append(time.perf_counter())


def exact_window(window: int) -> Int64s:
    """Shape (2, GROUPS): the number of records of each group in a window, and the sum of their numbers."""
    number = np.arange(max(0, window * WINDOW_ROWS - DISORDER), (window + 1) * WINDOW_ROWS)
    number = number[places_of(number) // WINDOW_ROWS == window]
    group = keys_of(number) % GROUPS
    sums = np.zeros(GROUPS, np.int64)
    np.add.at(sums, group, number)
    return np.stack([np.bincount(group, minlength=GROUPS), sums])


def exact_counts(read: ReadRows) -> Int64s:
    """Shape (KEYS,): the number of records read of each key."""
    counts = np.zeros(KEYS, np.int64)
    for begin, end in read.runs().tolist():
        for first in range(begin, end, 1_000_000):
            counts += np.bincount(keys_of(np.arange(first, min(first + 1_000_000, end))), minlength=KEYS)
    return counts
