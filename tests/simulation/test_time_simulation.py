"""Simulated jobs (random schedules, crashes, rescaling) over every source and way to tell event time: nothing is lost,
nothing comes twice, and no record becomes late."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.replay.log import write_log
from workbench.connectors.tables.table_sink import TableSink
from workbench.lab import simulate
from workbench.lab.pipelines.inputs import STEP_US, Row
from workbench.lab.pipelines.topologies import TOPOLOGIES, Trial, _by_window, _equal, _windowed

SIZE = 70
SCHEMA = pa.schema([("n", pa.int64()), ("key", pa.string()), ("t", pa.int64()), ("v", pa.int64())])


def drawn(chance: Random, disorder: int, first: int = 0) -> list[Row]:
    return [
        Row(n, chance.choice("abcd"), n * STEP_US - chance.randint(0, disorder), chance.randrange(-9, 10))
        for n in range(first, first + chance.choice((0, 1, 20, 50)))
    ]


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table([[getattr(row, field.name) for row in rows] for field in SCHEMA], schema=SCHEMA)


def source(chance: Random, folder: Path, table: pa.Table, **event_time: Any) -> wb.Stream:
    """The rows from memory, in batches of one, or from a file, in larger ones."""
    if chance.random() < 0.5:
        return wb.Stream.from_table(table, rate=chance.choice((None, 1e4)), **event_time)
    path = folder / f"{table.num_columns}.parquet"
    pq.write_table(table, path, row_group_size=chance.choice((7, 100)))
    return wb.Stream.from_files(path, table.schema, **event_time)


def trial(stream: wb.Stream, rows: list[Row]) -> Trial:
    windows = _windowed(stream.key_by("key"), SIZE)
    return Trial(windows.sink_to(TableSink("out")), _equal("out", _by_window(rows, SIZE)))


def files(chance: Random, folder: Path) -> Trial:
    """Several files; subtasks share them."""
    disorder = chance.choice((0, 40))
    rows = drawn(chance, disorder)
    place = folder / "files"
    place.mkdir(exist_ok=True)
    cuts = [0, *sorted(chance.choices(range(len(rows) + 1), k=3)), len(rows)]
    parquet = chance.random() < 0.5
    for number in range(4):
        part = table_of(rows[cuts[number] : cuts[number + 1]])
        if parquet:
            pq.write_table(part, place / f"{number}.parquet", row_group_size=6)
        else:
            lines = [json.dumps(row) + "\n" for row in part.to_pylist()]
            (place / f"{number}.jsonl").write_text("".join(lines))
    return trial(wb.Stream.from_files(place, SCHEMA, event_time="t", out_of_orderness=f"{disorder}us"), rows)


def hybrid(chance: Random, folder: Path) -> Trial:
    """A table or a replayed history, and a table that goes on where it ends."""
    bound = "40us"
    past = drawn(chance, 40)
    present = drawn(chance, 40, first=len(past))
    history = wb.Stream.from_table(table_of(past), event_time="t", out_of_orderness=bound)
    if chance.random() < 0.5:
        stamp = pa.timestamp("us", "UTC")
        made = table_of(past).set_column(2, "t", table_of(past)["t"].cast(stamp))
        arrived = made.append_column("landed", pa.array([row.n * STEP_US for row in past], pa.int64()).cast(stamp))
        log = write_log(
            arrived,
            folder / "past.log",
            event_time="t",
            arrival_time="landed",
            channels=chance.choice((1, 2, 3)),
            row_group_rows=8,
            clock=VirtualClock(),
        )
        history = wb.Stream.replay(log, speed=chance.choice(("max", 0.1)), out_of_orderness=bound)
        columns = [*table_of(present).columns, pa.array([row.n for row in present], pa.int64())]
        live_table = pa.table(
            [column.cast(field.type) for column, field in zip(columns, log.schema, strict=True)], log.schema.names
        )
    else:
        live_table = table_of(present)
    live = wb.Stream.from_table(live_table, event_time="t", out_of_orderness=bound, rate=chance.choice((None, 2e4)))
    return trial(wb.Stream.hybrid(history, live), [*past, *present])


def punctuated(chance: Random, folder: Path) -> Trial:
    """Some records carry a watermark: that nothing before it comes behind them."""
    rows = drawn(chance, 60)
    marks: list[int | None] = []
    lowest_after = 10**9
    for row in reversed(rows):
        assert row.t is not None
        marks.append(lowest_after - 1 if chance.random() < 0.5 else None)
        lowest_after = min(lowest_after, row.t)
    table = table_of(rows).append_column("mark", pa.array(marks[::-1], pa.int64()))
    if chance.random() < 0.5:
        return trial(source(chance, folder, table, event_time="t", watermarks=wb.watermarks.punctuated("mark")), rows)
    stream = source(chance, folder, table).filter("n >= 0")
    return trial(stream.assign_timestamps("t", watermarks=wb.watermarks.punctuated("mark")), rows)


def extracted(chance: Random, folder: Path) -> Trial:
    """Event time is told anew behind a filter."""
    disorder = chance.choice((0, 40))
    rows = drawn(chance, disorder)
    stream = source(chance, folder, table_of(rows), event_time="n").filter("n >= 0")
    return trial(stream.assign_timestamps("t", out_of_orderness=f"{disorder}us"), rows)


def aligned(chance: Random, folder: Path) -> Trial:
    """Two sources, of which the faster one waits."""
    streams, rows = [], []
    for _ in range(2):
        own = drawn(chance, 40)
        rows += own
        streams.append(
            wb.Stream.from_table(
                table_of(own),
                event_time="t",
                out_of_orderness="40us",
                rate=chance.choice((None, 1e4, 1e5)),
                align="both",
                max_drift=chance.choice(("0us", "50us")),
            )
        )
    return trial(streams[0].union(streams[1]), rows)


class Alarms(wb.functions.ProcessFunction):
    """Each record sets a timer, which tells how many records of its key came before it fires."""

    seen = wb.state.ValueState(pa.int64(), default=0)

    def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
        assert ctx.timestamp is not None
        state.seen += 1
        ctx.register_event_timer(ctx.timestamp + SIZE)

    def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> dict[str, Any]:
        return {"key": ctx.key, "time": time, "seen": state.seen}


def timers(chance: Random, folder: Path) -> Trial:
    """Each record carries a watermark, so it is known which records come before a timer fires."""
    rows = drawn(chance, 60)
    told = chance.choice(({"event_time": "t", "watermarks": wb.watermarks.punctuated("true")}, {}))
    stream = source(chance, folder, table_of(rows), **told).with_parallelism(1)
    if not told:
        stream = stream.assign_timestamps("t", watermarks=wb.watermarks.punctuated("true")).with_parallelism(1)
    if chance.random() < 0.5:
        stream = stream.rebalance().filter("n >= 0").with_parallelism(1)
    alarms = stream.key_by("key").process(Alarms(), {"key": pa.string(), "time": pa.int64(), "seen": pa.int64()})
    return Trial(
        alarms.sink_to(TableSink("out")),
        _equal("out", Counter(alarms_of(rows))),
        parallelisms=(chance.choice((1, 2)),),
        on_time=False,
    )


def alarms_of(rows: list[Row]) -> Iterator[tuple[str | None, int, int]]:
    """What `Alarms` tell, one record after the other."""
    seen: Counter[str | None] = Counter()
    waiting: set[tuple[int, str | None]] = set()
    latest = 0
    for row in [*rows, None]:
        if row is not None:
            assert row.t is not None
            seen[row.key] += 1
            waiting.add((row.t + SIZE, row.key))
            latest = max(latest, row.t)
        for time, key in sorted(waiting):
            if row is None or time <= latest:
                waiting.remove((time, key))
                yield key, time, seen[key]


TRIALS: dict[str, Callable[[Random, Path], Trial]] = {
    "files": files,
    "hybrid": hybrid,
    "punctuated": punctuated,
    "extracted": extracted,
    "aligned": aligned,
    "timers": timers,
}


@pytest.mark.parametrize("name", TRIALS)
def test_every_promise_is_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOPOLOGIES, name, TRIALS[name])
    for seed in range(25):
        result = simulate(seed, pipelines=[name])
        assert result.ok, result
