"""W3, windows (the Yahoo benchmark): views of ads, counted per campaign in event-time windows of ten seconds."""

from __future__ import annotations

from threading import Lock

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.elements import Int64s
from workbench.lab.bench.works.ad_events import WINDOW, AdEvents, are_expected
from workbench.lab.bench.works.blocks import ADS, BASE_MS, CAMPAIGNS, WINDOW_MS
from workbench.lab.bench.works.work import Work


class Windows(Work):
    """A source of ad events, a filter, the ad's campaign, a count per campaign and window."""

    workload = "W3"
    fires_at_end = True

    def __init__(self) -> None:
        self._events = AdEvents()
        self.emitted = self._events.emitted
        self._counts: Int64s = np.zeros((1, CAMPAIGNS), np.int64)
        self._lock = Lock()

    def pipeline(self, limit: int | None) -> wb.types.Pipeline:
        return (
            self._events.views(limit)
            .select(campaign=f"ad DIV {ADS // CAMPAIGNS}")
            .key_by("campaign")
            .window(wb.tumbling(WINDOW))
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

    def exact(self) -> bool:
        return are_expected(self._counts, self.emitted)
