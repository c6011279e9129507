"""E6 with Spark itself: ads are joined with their campaigns and counted by ten seconds, in the kernel and on Spark.

The same events for all: a history that is replayed at full speed. With a table of campaigns the pipeline is native on
Spark; with a look-up in a database it is carried, because the calls are the workbench's own.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import workbench as wb
from workbench.connectors.replay.log import write_log
from workbench.elements import Int64s
from workbench.lab.bench.works.ad_events import CAMPAIGN_OF, DELAY, WINDOW, AdEvents, are_expected, counts_of
from workbench.lab.bench.works.blocks import BASE_MS, BLOCK, BLOCK_MS, DELAY_MS, Emitted
from workbench.spark.session import session

EVENTS = 3 * BLOCK
"""Half a minute of event time."""
KERNEL, SPARK = "kernel", "Spark (real)"
LANES = (
    (KERNEL, "snapshots", "join"),
    (KERNEL, "micro-batches:batch_interval=500ms", "join"),
    (SPARK, "spark", "join"),
    (KERNEL, "snapshots", "look-up"),
    (SPARK, "spark", "look-up"),
)
"""Where it runs, with which fault tolerance, and how an ad gets its campaign."""


@dataclass(frozen=True, slots=True)
class Counted:
    """One run.

    Attributes:
        engine: ``kernel`` or ``Spark (real)``.
        architecture: of fault tolerance, as users write it; ``spark``: Spark's own.
        campaigns: ``join`` with a table, or ``look-up`` in an SQLite file, with answers cached.
        tier: on Spark; empty in the kernel.
        round: from 1; the first one of Spark starts Python workers and compiles.
        seconds: from the start to the last row.
        events: that were read.
        exact: whether the counts are those of the events.
    """

    engine: str
    architecture: str
    campaigns: str
    tier: str
    round: int
    seconds: float
    events: int
    exact: bool

    def to_json(self) -> str:
        """One line of JSON."""
        found = asdict(self)
        config = {name: found.pop(name) for name in ("engine", "architecture", "campaigns", "tier", "round")}
        return json.dumps({"peer": "workbench", "workload": "campaigns", "config": config, **found})

    def describe(self) -> str:
        """One line."""
        how = self.campaigns + (f", {self.tier}" if self.tier else f", {self.architecture.partition(':')[0]}")
        right = "all counts right" if self.exact else "WRONG COUNTS"
        return (
            f"{self.engine:13}{how:27} round {self.round}  {self.seconds:7.2f} s  "
            f"{self.events / self.seconds:12,.0f} events/s  {right}"
        )


def lanes(rounds: int, tell: Callable[[str], None], rows: int = EVENTS) -> Iterator[Counted]:
    """Every lane, `rounds` times in turn.

    Args:
        rounds: of each.
        tell: called before what takes longer than moments.
        rows: events.
    """
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as name:
        folder = Path(name)
        tell(f"E6: {rows:,} events as a history")
        _history(folder, rows)
        _database(folder)
        for number in range(1, rounds + 1):
            for engine, architecture, campaigns in LANES:
                yield _run(folder, engine, architecture, campaigns, number, rows)


def _history(folder: Path, rows: int) -> None:
    ads = AdEvents()
    events = pa.Table.from_batches([ads.batch(first, min(BLOCK, rows - first)) for first in range(0, rows, BLOCK)])
    arrived_us = (BASE_MS + DELAY_MS) * 1_000 + np.arange(rows) * BLOCK_MS * 1_000 // BLOCK
    times = [each.cast(pa.timestamp("us", "UTC")) for each in (events["time"], pa.array(arrived_us))]
    table = pa.table(
        {"ad": events["ad"], "type": events["type"].cast(pa.string()), "time": times[0], "arrived": times[1]}
    )
    write_log(table, folder / "ads.log", event_time="time", arrival_time="arrived", channels=2)


def _database(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "campaigns.db")) as database, database:
        database.execute("CREATE TABLE campaigns (ad INTEGER PRIMARY KEY, campaign INTEGER)")
        database.executemany("INSERT INTO campaigns VALUES (?, ?)", zip(*CAMPAIGN_OF.to_pydict().values(), strict=True))


def _pipeline(folder: Path, campaigns: str) -> wb.types.Pipeline:
    views = wb.Stream.replay(folder / "ads.log", out_of_orderness=DELAY).filter("type = 'view'")
    if campaigns == "join":
        joined = views.join(CAMPAIGN_OF, on="ad")
    else:
        table = wb.SqlLookup(f"sqlite:///{folder}/campaigns.db", "campaigns", {"campaign": pa.int64()}, key="ad")
        joined = views.lookup_async(table, key="ad", how="inner", cache="10min")
    counted = joined.key_by("campaign").window(wb.tumbling(WINDOW)).aggregate(views=wb.count())
    return counted.sink_to(wb.TableSink("views"))


def _run(folder: Path, engine: str, architecture: str, campaigns: str, number: int, rows: int) -> Counted:
    pipeline = _pipeline(folder, campaigns)
    settings: dict[str, Any] = {"parallelism": 2}
    tier = ""
    if engine == SPARK:
        settings |= {"engine": "spark", "spark": session("local[2]", quick_start=False)}
        tier = pipeline.explain(engine="spark").tier
    else:
        settings |= {"fault_tolerance": architecture, "checkpoint_interval": None if ":" in architecture else "1s"}
    begin = time.perf_counter()
    job = pipeline.run("bench-campaigns", **settings)
    job.wait()
    seconds = round(time.perf_counter() - begin, 3)
    exact = are_expected(_counts(job.table()), _all(rows))
    return Counted(engine, architecture, campaigns, tier, number, seconds, rows, exact)


def _counts(found: pa.Table) -> Int64s:
    starts_ms = pc.cast(found["window_start"], pa.int64()).to_numpy() // 1_000
    return counts_of(starts_ms, found["campaign"].to_numpy(), found["views"].to_numpy())


def _all(rows: int) -> Emitted:
    emitted = Emitted()
    emitted.add(0, rows)
    return emitted
