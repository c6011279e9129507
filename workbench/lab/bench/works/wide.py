"""W5, a wide job: forty tasks at full speed, over 256 channels, to measure the cost of watching it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.lab.bench.works.ad_events import AdEvents, expected_views
from workbench.lab.bench.works.blocks import ADS, BASE_MS, CAMPAIGNS, WINDOW_MS, Emitted

PARALLELISM = 8
TABLE = "views"


class Wide:
    """Events of ads: read, spread, counted per ad, counted per campaign and window, spread again and committed.

    Five vertices of eight tasks each; every exchange joins all tasks of one with all of the next.
    """

    def __init__(self) -> None:
        self._ads = AdEvents()

    @property
    def emitted(self) -> Emitted:
        """The events that the source has emitted."""
        return self._ads.emitted

    def pipeline(self, limit: int | None = None) -> wb.types.Pipeline:
        """From the source, of `limit` events if not None, to the table."""
        return (
            self._ads.views(limit)
            .rebalance()
            .with_columns(campaign=f"ad DIV {ADS // CAMPAIGNS}")
            .key_by("ad")
            .aggregate(n=wb.count(), campaign=wb.max("campaign"))
            .key_by("campaign")
            .window(wb.tumbling(f"{WINDOW_MS}ms"))
            .aggregate(views=wb.count(), most=wb.max("n"))
            .rebalance()
            .sink_to(wb.TableSink(TABLE))
        )

    def exact(self, rows: pa.Table) -> bool:
        """Whether there are committed windows, each with the expected count for the emitted events."""
        expected = expected_views(self.emitted)
        start_ms = rows.column("window_start").combine_chunks().view(pa.int64()).to_numpy() // 1_000
        window = (start_ms - BASE_MS) // WINDOW_MS
        found = rows.column("views").to_numpy()
        return len(found) > 0 and np.array_equal(found, expected[window, rows.column("campaign").to_numpy()])
