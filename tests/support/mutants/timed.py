"""A pipeline with timers: what a tumbling window would count, made of state and timers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench.lab.pipelines.comparing import equal
from workbench.lab.pipelines.inputs import source
from workbench.lab.pipelines.topologies import Trial

SIZE_US = 100


class Counts(wb.functions.ProcessFunction):
    """Counts by key and stretch of time."""

    counts = wb.state.MapState(pa.int64(), pa.int64())

    def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> Any:
        if ctx.timestamp is not None:
            start = ctx.timestamp - ctx.timestamp % SIZE_US
            state.counts[start] = state.counts.get(start, 0) + 1
            ctx.register_event_timer(start + SIZE_US - 1)

    def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> Any:
        start = time - SIZE_US + 1
        yield {"key": ctx.key, "start": start, "n": state.counts.pop(start)}


def timed(chance: Random, folder: Path) -> Trial:
    """Draws the trial."""
    stream, rows = source(chance)
    schema = {"key": pa.string(), "start": pa.int64(), "n": pa.int64()}
    made = stream.key_by("key").process(Counts(), schema)
    windows = Counter((row.key, row.t - row.t % SIZE_US) for row in rows if row.t is not None)
    expected = Counter((key, start, n) for (key, start), n in windows.items())
    return Trial(made.sink_to(wb.TableSink("counts")), equal("counts", expected))
