"""W3 with a database (E6): ads are joined to their campaigns, and a table has each window's views so far."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from weakref import finalize

import numpy as np

import workbench as wb
from workbench.elements import Int64s
from workbench.lab.bench.works.ad_events import CAMPAIGN_OF, WINDOW, AdEvents, are_expected, counts_of
from workbench.lab.bench.works.work import Work

TABLE = "views"


class Campaigns(Work):
    """As `Windows`, but joined with a table of campaigns and written to an SQLite file: once a second the counts so
    far, and every window that is over.

    Args:
        rate: events per second; None for full speed.
    """

    workload = "W3"
    fires_at_end = True

    def __init__(self, rate: float | None = None) -> None:
        self._events = AdEvents()
        self._rate = rate
        self.emitted = self._events.emitted
        folder = tempfile.mkdtemp(prefix="workbench-bench-")
        finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.path = Path(folder) / "campaigns.db"

    def config(self) -> dict[str, object]:
        return {"sink": "sqlite"}

    def pipeline(self, limit: int | None) -> wb.types.Pipeline:
        sink = wb.SqlSink(f"sqlite:///{self.path}", TABLE, upsert_key=["campaign", "window_start"])
        return (
            self._events.views(limit, self._rate)
            .join(CAMPAIGN_OF, on="ad")
            .key_by("campaign")
            .window(wb.tumbling(WINDOW), trigger=wb.triggers.early("1s"))
            .aggregate(views=wb.count())
            .sink_to(sink)
        )

    def counts(self) -> Int64s:
        """Shape (windows, CAMPAIGNS): the present content of the table, as another program reads it."""
        query = f"SELECT CAST(strftime('%s', window_start) AS INTEGER), campaign, views FROM {TABLE}"
        with closing(sqlite3.connect(self.path)) as database:
            found: Int64s = np.array(database.execute(query).fetchall(), np.int64).reshape(-1, 3)
        return counts_of(found[:, 0] * 1_000, found[:, 1], found[:, 2])

    def exact(self) -> bool:
        return are_expected(self.counts(), self.emitted)
