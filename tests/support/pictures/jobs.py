"""The jobs that are shown: their notebook cells, which the pages run as they are."""

from __future__ import annotations

FLIGHTS = """import numpy as np, pyarrow as pa, workbench as wb
rows = 4_000_000
random = np.random.default_rng(7)
departed = np.arange(rows) * 2_000_000 + random.integers(-40, 40, rows) * 1_000_000 + 1_372_636_800_000_000
departed[random.random(rows) < 0.0004] -= 5 * 3_600_000_000
origins = pa.array(["JFK", "LGA", "EWR"]).take(pa.array(random.integers(0, 3, rows)))
table = pa.table({"departed": pa.array(departed, pa.timestamp("us", "UTC")), "origin": origins,
                  "dep_delay": np.round(random.gamma(1.4, 12.0, rows) - 6)})
flights = wb.Stream.from_table(table, event_time="departed", out_of_orderness="2min", rate=30_000)
"""

DELAYS = """delays = (flights
    .filter("dep_delay IS NOT NULL")
    .key_by("origin")
    .window(wb.tumbling("1h"))
    .aggregate(flights=wb.count(), mean_delay=wb.mean("dep_delay"), worst=wb.max("dep_delay")))
job = delays.rebalance().sink_to(wb.TableSink("delays")).run(
    "delays", parallelism=2, checkpoint_interval="1s", checkpoint_dir="checkpoints")
"""

SECOND = """late = flights.filter("dep_delay > 15").key_by("origin").aggregate(late=wb.count())
other = late.sink_to(wb.DiscardSink()).run("late-flights", parallelism=2, checkpoint_interval="2s")
"""
