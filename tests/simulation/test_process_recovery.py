"""Keyed functions under crashes, restarts, rescaling and tuning: committed rows are those of a plain loop (I6, I7)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Literal

import pyarrow as pa
import pytest

import workbench as wb
from workbench.lab import TOPOLOGIES, simulate
from workbench.lab.pipelines.topologies import Outputs, Trial, _equal, _source
from workbench.state import keyed_states, states_on_disk

SIZE_US = 100


class Counts(wb.functions.ProcessFunction):
    """What a tumbling window would count, made of state and timers; values below zero go to a side output."""

    counts = wb.state.MapState(pa.int64(), pa.int64())
    total = wb.state.ValueState(pa.int64(), default=0)

    def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> Any:
        state.total += 1
        if record["v"] is not None and record["v"] < 0:
            ctx.output("below", {"key": ctx.key, "v": record["v"]})
        if ctx.timestamp is not None:
            start = ctx.timestamp - ctx.timestamp % SIZE_US
            state.counts[start] = state.counts.get(start, 0) + 1
            ctx.register_event_timer(start + SIZE_US - 1)

    def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> Any:
        start = time - SIZE_US + 1
        yield {"key": ctx.key, "start": start, "n": state.counts.pop(start)}


def counted(backend: Literal["memory", "disk"]) -> Any:
    def draw(chance: Random, folder: Path) -> Trial:
        stream, rows = _source(chance)
        made = stream.key_by("key").process(
            Counts(),
            {"key": pa.string(), "start": pa.int64(), "n": pa.int64()},
            side_outputs={"below": {"key": pa.string(), "v": pa.int64()}},
            state_backend=backend,
        )
        pipeline = made.sink_to(wb.TableSink("counts")) + made.side_output("below").sink_to(wb.TableSink("below"))
        windows = Counter((row.key, row.t - row.t % SIZE_US) for row in rows if row.t is not None)
        counts = _equal("counts", Counter((key, start, n) for (key, start), n in windows.items()))
        below = _equal("below", Counter((row.key, row.v) for row in rows if row.v is not None and row.v < 0))
        return Trial(pipeline, lambda outputs: counts(outputs) + below(outputs))

    return draw


def reduced(chance: Random, folder: Path) -> Trial:
    stream, rows = _source(chance)
    sums = stream.select("key", "n").key_by("key").reduce(lambda a, b: {"key": b["key"], "n": a["n"] + b["n"]})

    def verify(outputs: Outputs) -> list[str]:
        # Subtasks of the source mix their records in any order: how many rows a key has and its last sum are fixed.
        found = outputs["sums"]
        got = {
            key: (sum(found[row] for row in found if row[0] == key), max(n for k, n in found if k == key))
            for key, _ in found
        }
        wanted = {row.key: (0, 0) for row in rows}
        for row in rows:
            count, total = wanted[row.key]
            wanted[row.key] = count + 1, total + row.n
        return [] if got == wanted else [f"sums are {got}, not {wanted}"]

    return Trial(sums.sink_to(wb.TableSink("sums")), verify)


@pytest.fixture(autouse=True)
def pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_states, "_FEW", 2)
    monkeypatch.setattr(states_on_disk, "RESIDENT_MAX", 2)
    monkeypatch.setitem(TOPOLOGIES, "counted in memory", counted("memory"))
    monkeypatch.setitem(TOPOLOGIES, "counted on disk", counted("disk"))
    monkeypatch.setitem(TOPOLOGIES, "reduced", reduced)


@pytest.mark.parametrize(("name", "seeds"), [("counted in memory", 30), ("counted on disk", 10), ("reduced", 20)])
def test_state_and_timers_survive_whatever_happens(name: str, seeds: int) -> None:
    results = [simulate(seed, pipelines=[name]) for seed in range(seeds)]
    assert [str(result) for result in results if not result.ok] == []
    assert sum(result.restarts + result.processes - 1 for result in results) > 0
