"""W3, windows (the Yahoo benchmark): views of ads, counted per campaign in event-time windows of ten seconds."""

from __future__ import annotations

from threading import Lock

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench import col
from workbench.cli.bench.blocks import (
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
from workbench.cli.bench.latencies import Percentiles
from workbench.elements import Int64s

_TYPE = pa.dictionary(pa.int8(), pa.string())
_SCHEMA = pa.schema([("ad", pa.int64()), ("type", _TYPE), ("time", pa.int64())])


class Windows:
    """A source of ad events, a filter, the ad's campaign, a count per campaign and window.

    With every repetition of the block, event time goes on by ten seconds.
    """

    workload = "W3"
    fires_at_end = True

    def __init__(self) -> None:
        block = events()
        self.emitted = Emitted()
        self._ads = pa.array(continued(block.ads))
        codes = pa.array(continued(block.types), pa.int8())
        self._types = pa.DictionaryArray.from_arrays(codes, pa.array(TYPES))
        self._times_us: Int64s = continued(block.times_ms, BLOCK_MS) * 1_000
        self._counts: Int64s = np.zeros((1, CAMPAIGNS), np.int64)
        self._lock = Lock()

    def config(self) -> dict[str, object]:
        return {}

    def pipeline(self, limit: int | None) -> wb.Pipeline:
        ads, types, times_us, emitted = self._ads, self._types, self._times_us, self.emitted

        def rows(first: int, count: int) -> pa.RecordBatch:
            emitted.add(first, count)
            repetition, start = divmod(first, BLOCK)
            times = times_us[start : start + count] + repetition * BLOCK_MS * 1_000
            columns = [ads.slice(start, count), types.slice(start, count), pa.array(times)]
            return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

        return (
            wb.Stream.from_generator(rows, _SCHEMA, event_time="time", out_of_orderness=f"{DELAY_MS}ms", limit=limit)
            .filter(col("type") == "view")
            .select(campaign=f"ad DIV {ADS // CAMPAIGNS}")
            .key_by("campaign")
            .window(wb.tumbling(f"{WINDOW_MS}ms"))
            .aggregate(views=wb.count())
            .sink_to(wb.CallbackSink(self._add, name="add"))
        )

    def _add(self, batch: pa.RecordBatch) -> None:
        campaign = batch.column("campaign").to_numpy()
        start_ms = batch.column("window_start").view(pa.int64()).to_numpy() // 1_000
        window = (start_ms - BASE_MS) // WINDOW_MS
        with self._lock:
            last = int(window.max())
            if last >= len(self._counts):
                more = max(last + 1, 2 * len(self._counts)) - len(self._counts)
                self._counts = np.concatenate([self._counts, np.zeros((more, CAMPAIGNS), np.int64)])
            np.add.at(self._counts, (window, campaign), batch.column("views").to_numpy())

    def start_measuring(self) -> None:
        """Nothing but events is measured."""

    def exact(self) -> bool:
        expected = expected_views(self.emitted)
        got = self._counts
        windows = max(len(expected), len(got))
        return np.array_equal(_padded(expected, windows), _padded(got, windows))

    def percentiles_ms(self) -> Percentiles:
        return None, None, None


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


def _padded(counts: Int64s, windows: int) -> Int64s:
    return np.pad(counts, ((0, windows - len(counts)), (0, 0)))
