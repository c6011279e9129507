"""Simulated jobs (random schedules, crashes, rescaling) with two inputs, lookups and split streams: nothing is lost,
and nothing comes twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pipelines.slow import Slow

import workbench as wb
from workbench.lab import simulate
from workbench.lab.pipelines.topologies import TOPOLOGIES, Outputs, Trial, _equal, _size, _source
from workbench.operators.joins import async_lookup

END = 2**63 - 2  # a timer that fires when the input has ended


def joined(chance: Random, folder: Path) -> Trial:
    """Windows of two streams."""
    left, left_rows = _source(chance)
    right, right_rows = _source(chance)
    size, how = _size(chance), chance.choice(("inner", "left", "outer"))
    result = left.join(right, on="key", window=wb.tumbling(f"{size}us"), how=how).select("n", "n_right")
    timed = [[row for row in rows if row.t is not None] for rows in (left_rows, right_rows)]
    pairs = [
        (a.n, b.n)
        for a in timed[0]
        for b in timed[1]
        if a.key is not None and a.key == b.key and a.t // size == b.t // size
    ]
    if how != "inner":
        pairs += [(a.n, None) for a in timed[0] if a.n not in {n for n, _ in pairs}]
    if how == "outer":
        met = {m for _, m in pairs}
        pairs += [(None, b.n) for b in timed[1] if b.n not in met]
    return Trial(result.sink_to(wb.TableSink("out")), _equal("out", Counter(pairs)))


def near(chance: Random, folder: Path) -> Trial:
    """Records whose event times are near each other."""
    left, left_rows = _source(chance)
    right, right_rows = _source(chance)
    before, after = sorted((chance.randrange(-100, 100), chance.randrange(-100, 100)))
    how = chance.choice(("inner", "left"))
    bounds = (f"{before}us", f"{after}us")
    result = left.join(right, on="key", between=bounds, how=how).select("n", "n_right")
    timed = [[row for row in rows if row.t is not None] for rows in (left_rows, right_rows)]
    pairs = [
        (a.n, b.n)
        for a in timed[0]
        for b in timed[1]
        if a.key is not None and a.key == b.key and before <= b.t - a.t <= after
    ]
    if how == "left":
        met = {n for n, _ in pairs}
        pairs += [(a.n, None) for a in timed[0] if a.n not in met]
    return Trial(result.sink_to(wb.TableSink("out")), _equal("out", Counter(pairs)))


class Totals(wb.functions.CoProcessFunction):
    """The sum of both streams' values for each key, told at the end."""

    total = wb.state.ValueState(pa.int64(), default=0)

    def process1(self, record, state, ctx):
        state.total += record["v"] or 0
        ctx.register_event_timer(END)

    def process2(self, record, state, ctx):
        state.total += 1000 * (record["v"] or 0)
        ctx.register_event_timer(END)

    def on_timer(self, time, state, ctx):
        yield {"key": ctx.key, "total": state.total}


def connected(chance: Random, folder: Path) -> Trial:
    """Keyed state that two streams reach."""
    left, left_rows = _source(chance)
    right, right_rows = _source(chance)
    schema = {"key": pa.string(), "total": pa.int64()}
    result = left.connect(right, on="key").process(Totals(), schema)
    totals: Counter[str | None] = Counter({row.key: 0 for row in [*left_rows, *right_rows]})
    for weight, rows in ((1, left_rows), (1000, right_rows)):
        for row in rows:
            totals[row.key] += weight * (row.v or 0)
    return Trial(result.sink_to(wb.TableSink("out")), _equal("out", Counter(totals.items())))


class Judged(wb.functions.CoProcessFunction):
    """Tells at the end how many records of a key there were, beside what the last rule says of the key."""

    rules = wb.state.BroadcastState(pa.string(), pa.int64())
    count = wb.state.ValueState(pa.int64(), default=0)

    def process1(self, record, state, ctx):
        state.count += 1
        ctx.register_event_timer(END)

    def process2(self, rule, state):
        state.rules[rule["rule"]] = rule["worth"]

    def on_timer(self, time, state, ctx):
        yield {"key": ctx.key, "count": state.count, "worth": ctx.broadcast.rules.get(ctx.key)}


def judged(chance: Random, folder: Path) -> Trial:
    """Broadcast state."""
    stream, rows = _source(chance)
    table = pa.table({"rule": ["a", "b", "c", "a"], "worth": [1, 2, 3, 4], "t": [0, 1, 2, 3]})
    rules = wb.Stream.from_table(table, event_time="t", rate=chance.choice((None, 2_000.0))).with_parallelism(1)
    schema = {"key": pa.string(), "count": pa.int64(), "worth": pa.int64()}
    result = stream.connect(rules.broadcast(), on="key").process(Judged(), schema)
    worth = {"a": 4, "b": 2, "c": 3}
    expected = Counter((key, count, worth.get(key or "")) for key, count in Counter(row.key for row in rows).items())
    return Trial(result.sink_to(wb.TableSink("out")), _equal("out", expected))


def looked_up(chance: Random, folder: Path) -> Trial:
    """Answers that are out while barriers and crashes come."""
    stream, rows = _source(chance)
    found = stream.lookup_async(
        lambda n: {"m": 2 * n},
        key="n",
        schema={"m": pa.int64()},
        concurrency=chance.choice((1, 4)),
        ordered=chance.random() < 0.5,
        timeout="1h",
    )
    counted = found.key_by("key").window(wb.tumbling("100us")).aggregate(n=wb.count(), m=wb.sum("m"))
    windows: dict[tuple[str | None, int], list[int]] = {}
    for row in rows:
        if row.t is not None:
            windows.setdefault((row.key, row.t // 100 * 100), []).append(2 * row.n)
    expected = Counter((key, start, start + 100, len(ms), sum(ms)) for (key, start), ms in windows.items())
    pipeline = counted.sink_to(wb.TableSink("windows")) + found.select("n", "m").sink_to(wb.TableSink("all"))
    everything = Counter((row.n, 2 * row.n) for row in rows)

    def verify(outputs: Outputs) -> list[str]:
        return [*_equal("windows", expected)(outputs), *_equal("all", everything)(outputs)]

    return Trial(pipeline, verify)


def parted(chance: Random, folder: Path) -> Trial:
    """A stream that parts and meets again."""
    stream, rows = _source(chance)
    parts = stream.split({"high": "v > 3", "low": "v < 0"})
    merged = parts["high"].rebalance().union(parts["low"].with_columns(v=wb.col("v") - 100)).select("n", "v")
    pipeline = merged.sink_to(wb.TableSink("merged")) + parts["rest"].select("n", "v").sink_to(wb.TableSink("rest"))
    known = [(row.n, row.v) for row in rows if row.v is not None]
    expected = Counter((n, v if v > 3 else v - 100) for n, v in known if v > 3 or v < 0)
    rest = Counter((row.n, row.v) for row in rows if row.v is None or 0 <= row.v <= 3)

    def verify(outputs: Outputs) -> list[str]:
        return [*_equal("merged", expected)(outputs), *_equal("rest", rest)(outputs)]

    return Trial(pipeline, verify)


TRIALS: dict[str, Callable[[Random, Path], Trial]] = {
    trial.__name__: trial for trial in (joined, near, connected, judged, looked_up, parted)
}


@pytest.mark.parametrize("name", TRIALS)
def test_every_promise_is_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOPOLOGIES, name, TRIALS[name])
    monkeypatch.setattr(async_lookup, "Inline", lambda: Slow(Random(7)))
    results = [simulate(seed, pipelines=[name]) for seed in range(12)]
    assert [str(result) for result in results if not result.ok] == []
    assert sum(result.restarts + result.processes - 1 for result in results) > 0
