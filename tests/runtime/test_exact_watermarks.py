"""With a watermark behind each record, no setting changes a result: an operator gets what it would get one record after
the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb
from workbench.durations import MAX_TIME
from workbench.elements import Records
from workbench.operators.contract.base import OperatorContext

SECOND = 1_000_000
TIMEOUTS = ("0ms", "1ms", "100ms", None)
SIZES = (1, 8, 1_000)
Rows = Counter[tuple[Any, ...]]


def drawn(rows: int, *, late: bool) -> pa.Table:
    """Records out of order, each with its watermark: its own time, or one that makes no later record late."""
    chance = Random(rows)
    times = [max(0, n * 2 - chance.choice((0, 0, 0, 1, 5, 30))) * SECOND for n in range(rows)]
    marks, lowest = list(times), 2**60
    for at in reversed(range(rows)):
        if not late:
            marks[at] = lowest - 1
        lowest = min(lowest, times[at])
    columns = {
        "n": pa.array(range(rows)),
        "k": pa.array([chance.choice("abc") for _ in range(rows)]),
        "side": pa.array([chance.choice("lr") for _ in range(rows)]),
        "v": pa.array([chance.randrange(100) for _ in range(rows)]),
        "t": pa.array(times, pa.timestamp("us", "UTC")),
        "mark": pa.array(marks, pa.int64()),
    }
    return pa.table(columns)


class Hot(wb.functions.ProcessFunction):
    """Tells after two minutes how many records of the key have come."""

    seen = wb.state.ValueState(pa.int64(), default=0)

    def process(
        self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext
    ) -> dict[str, Any]:
        assert ctx.timestamp is not None
        state.seen += 1
        ctx.register_event_timer(ctx.timestamp + 20 * SECOND)
        return {"k": record["k"], "at": ctx.watermark, "seen": state.seen}

    def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> dict[str, Any]:
        return {"k": ctx.key, "at": time, "seen": state.seen}


class Soon(wb.triggers.Trigger):
    """Fires five seconds after each record, and at the end of the window."""

    def on_record(self, time_us: int, window: Any, context: Any) -> None:
        context.register_event_timer(min(time_us + 5 * SECOND, window.end - 1))

    def on_event_time(self, time_us: int, window: Any, context: Any) -> wb.triggers.Action:
        return wb.triggers.Action.FIRE


SEEN = {"k": pa.string(), "at": pa.int64(), "seen": pa.int64()}
THEFT = wb.pattern("small", "v < 50").followed_by("large", "v > 60").within("20s")
Build = Callable[[wb.Stream], wb.Stream]


def windowed(window: Any, **rest: Any) -> Build:
    return lambda stream: stream.key_by("k").window(window, **rest).aggregate(n=wb.count(), most=wb.max("v"))


def sided(build: Callable[[wb.Stream, wb.Stream], wb.Stream]) -> Build:
    return lambda stream: build(*(stream.filter(f"side = '{side}'").with_parallelism(1) for side in "lr"))


MERGE: dict[str, Build] = {
    "tumbling": windowed(wb.tumbling("10s")),
    "sliding": windowed(wb.sliding("10s", "5s")),
    "sessions": windowed(wb.session("4s")),
    "over": lambda stream: stream.over(["k"], "rows", 3, {"most": wb.max("v")}),
    "match": lambda stream: stream.key_by("k").match(THEFT, first="small.n", last="large.n"),
}
"""Operators that cannot see how watermarks that make nothing late are merged."""
SEE: dict[str, Build] = {
    "timers": lambda stream: stream.key_by("k").process(Hot(), SEEN),
    "early": windowed(wb.tumbling("30s"), trigger=wb.triggers.early("5s", time="event")),
    "triggered": windowed(wb.tumbling("30s"), trigger=Soon()),
    "forgotten": lambda stream: stream.distinct("k", "v").state_ttl("20s"),
}
"""Operators that can."""
ON_TIME: dict[str, Build] = {
    "between": sided(lambda left, right: left.join(right, on="k", between=("-5s", "5s"), how="left")),
    "latest": sided(lambda left, right: left.join(right, on="k", between="latest")),
    "window-join": sided(lambda left, right: left.join(right, on="k", window=wb.tumbling("10s"), how="outer")),
    "session-join": sided(lambda left, right: left.join(right, on="k", window=wb.session("4s"))),
}
"""Two inputs: it is open which of them comes first, so no record may be late."""
GROUPS = {"merge": (MERGE, True), "see": (SEE, True), "both": (MERGE | SEE, True), "on time": (ON_TIME, False)}


class Output:
    """Collects rows, of the main output and of late records."""

    def __init__(self) -> None:
        self.rows: Rows = Counter()
        self.late: Rows = Counter()

    def emit(self, records: Records) -> None:
        self.rows.update(tuples(records.batch))

    def emit_side(self, tag: str, records: Records) -> None:
        self.late.update(tuples(records.batch))

    def emit_watermark(self, watermark_us: int) -> None:
        pass


def tuples(rows: pa.RecordBatch | pa.Table) -> Iterator[tuple[Any, ...]]:
    return (tuple(row.values()) for row in rows.to_pylist())


def one_by_one(built: wb.Stream, table: pa.Table, *, sides: bool) -> Output:
    """What the last operator makes of one record after the other, each followed by its watermark."""
    node = built._end.node
    spec: Any = node.spec
    operator = spec.create([item.schema for item in node.inputs])
    operator.open(OperatorContext())
    out, reached = Output(), -1
    times = table["t"].cast(pa.int64()).to_numpy()
    for at, row in enumerate(table.to_pylist()):
        port = "lr".index(row["side"]) if sides else 0
        schema = node.inputs[port].schema
        batch = table.slice(at, 1).select(schema.names).to_batches()[0]
        operator.process(Records(batch, np.array([times[at]])), port, out)
        if row["mark"] > reached:
            reached = row["mark"]
            operator.on_watermark(reached, out)
    operator.on_watermark(MAX_TIME, out)
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("group", "parallelism"), [("both", 1), ("merge", 2), ("see", 2), ("on time", 2)])
def test_no_setting_changes_what_comes_of_watermarks_behind_each_record(group: str, parallelism: int) -> None:
    builds, late = GROUPS[group]
    table = drawn(50, late=late)
    source = wb.Stream.from_table(table, event_time="t", watermarks=wb.watermarks.punctuated("mark"))
    source = source.with_parallelism(1)
    built = {name: build(source) for name, build in builds.items()}
    expected: dict[str, Rows] = {}
    pipeline = None
    for name, stream in built.items():
        found = one_by_one(stream, table, sides=not late)
        expected[name] = found.rows
        sinks = stream.sink_to(wb.TableSink(name))
        if name in ("tumbling", "sliding", "sessions"):
            assert found.late, "late records belong to the test"
            expected[f"late-{name}"] = found.late
            sinks += stream.side_output("late").sink_to(wb.TableSink(f"late-{name}"))
        pipeline = sinks if pipeline is None else pipeline + sinks
    assert pipeline is not None
    for timeout, size in product(TIMEOUTS, SIZES):
        job = pipeline.run("exact", parallelism=parallelism, buffer_timeout=timeout, buffer_size=size, replace=True)
        job.wait("60s")
        for name, rows in expected.items():
            assert Counter(tuples(job.table(name))) == rows, (name, timeout, size)
