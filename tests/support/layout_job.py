"""A job of six vertices in three columns, to look at."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import workbench as wb


def start_job(name: str = "layout") -> wb.types.Job:
    """Two sources of flights, each aggregated and written; it runs until somebody cancels it."""
    rows = 2_000_000
    random = np.random.default_rng(7)
    departed = np.arange(rows) * 2_000_000 + random.integers(-40, 40, rows) * 1_000_000 + 1_372_636_800_000_000
    origins = pa.array(["JFK", "LGA", "EWR"]).take(pa.array(random.integers(0, 3, rows)))
    delays = np.round(random.gamma(1.4, 12.0, rows) - 6)
    table = pa.table({"departed": pa.array(departed, pa.timestamp("us", "UTC")), "origin": origins, "delay": delays})
    left, right = (
        wb.Stream.from_table(table, event_time="departed", out_of_orderness="2min", rate=2_000).uid(uid)
        for uid in ("departures", "arrivals")
    )
    windows = left.key_by("origin").window(wb.tumbling("1h")).aggregate(flights=wb.count(), mean=wb.mean("delay"))
    counts = right.filter("delay > 5").key_by("origin").aggregate(late=wb.count())
    pipeline = windows.uid("hourly").rebalance().sink_to(wb.TableSink("delays"))
    both = pipeline + counts.uid("late").rebalance().sink_to(wb.DiscardSink())
    return both.run(name, parallelism=2, checkpoint_interval="1s")
