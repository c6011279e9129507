"""The ad events of the Yahoo benchmark as a source that records what it emitted, and the expected results."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench import col
from workbench.elements import Int64s
from workbench.lab.bench.works.blocks import (
    ADS,
    BASE_MS,
    BLOCK,
    BLOCK_MS,
    CAMPAIGNS,
    DELAY_MS,
    TYPES,
    WINDOW_MS,
    Emitted,
    continued,
    events,
)

CAMPAIGN_OF = pa.table({"ad": np.arange(ADS), "campaign": np.arange(ADS) // (ADS // CAMPAIGNS)})
"""The campaign of each ad."""
DELAY, WINDOW = f"{DELAY_MS}ms", f"{WINDOW_MS}ms"
"""How late an event may be, and the length of a window."""
_SCHEMA = pa.schema([("ad", pa.int64()), ("type", pa.dictionary(pa.int8(), pa.string())), ("time", pa.int64())])


class AdEvents:
    """The block of ad events, repeated; with every repetition event time advances by ten seconds.

    Attributes:
        emitted: the events that the source has emitted.
    """

    def __init__(self) -> None:
        block = events()
        self.emitted = Emitted()
        self._ads = pa.array(continued(block.ads))
        codes = pa.array(continued(block.types), pa.int8())
        self._types = pa.DictionaryArray.from_arrays(codes, pa.array(TYPES))
        self._times_us: Int64s = continued(block.times_ms, BLOCK_MS) * 1_000

    def batch(self, first: int, count: int) -> pa.RecordBatch:
        """The events [first, first + count), from at most two repetitions: ad, type, and time in microseconds."""
        repetition, start = divmod(first, BLOCK)
        times = self._times_us[start : start + count] + repetition * BLOCK_MS * 1_000
        columns = [self._ads.slice(start, count), self._types.slice(start, count), pa.array(times)]
        return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    def views(self, limit: int | None, rate: float | None = None) -> wb.Stream:
        """The views among `limit` events, or among events without end, at a rate per second."""

        def rows(first: int, count: int) -> pa.RecordBatch:
            self.emitted.add(first, count)
            return self.batch(first, count)

        source = wb.Stream.from_generator(
            rows, _SCHEMA, event_time="time", out_of_orderness=DELAY, limit=limit, rate=rate
        )
        return source.filter(col("type") == "view")


def counts_of(starts_ms: Int64s, campaigns: Int64s, views: Int64s) -> Int64s:
    """Shape (windows, CAMPAIGNS): results, one for each window and campaign, as a table.

    Args:
        starts_ms, campaigns, views: of each result.
    """
    window = (starts_ms - BASE_MS) // WINDOW_MS
    counts: Int64s = np.zeros((int(window.max(initial=0)) + 1, CAMPAIGNS), np.int64)
    counts[window, campaigns] = views
    return counts


def expected_views(emitted: Emitted) -> Int64s:
    """Shape (windows, CAMPAIGNS): views per window, counted from the one that begins at BASE_MS, and campaign."""
    block = events()
    campaign = block.ads // (ADS // CAMPAIGNS)
    window = (block.times_ms - BASE_MS) // WINDOW_MS
    view = block.types == TYPES.index("view")
    parts = emitted.repetitions()
    spread = int(window.max()) + 1
    last = max((repetition + alike for repetition, alike, _, _ in parts), default=0)
    counts: Int64s = np.zeros((last + spread, CAMPAIGNS), np.int64)
    for repetition, alike, begin, end in parts:
        rows = slice(begin, end)
        of_block: Int64s = np.zeros((spread, CAMPAIGNS), np.int64)
        np.add.at(of_block, (window[rows], campaign[rows]), view[rows])
        for at in range(repetition, repetition + alike):
            counts[at : at + spread] += of_block
    return counts


def are_expected(counts: Int64s, emitted: Emitted) -> bool:
    """Whether counts, shape (windows, CAMPAIGNS), are those of the emitted events; windows without views may be missing
    at the end."""
    expected = expected_views(emitted)
    windows = max(len(expected), len(counts))
    return np.array_equal(_padded(expected, windows), _padded(counts, windows))


def _padded(counts: Int64s, windows: int) -> Int64s:
    return np.pad(counts, ((0, windows - len(counts)), (0, 0)))
