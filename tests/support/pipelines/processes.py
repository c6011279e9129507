"""Process functions with timers, state of every kind in memory or on disk, and side outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

import workbench as wb

from .aggregates import keys_of
from .draft import Draft
from .drawn import SECOND, Drawn, listed
from .expected import Gathered
from .several import END_US


class Seen(wb.functions.ProcessFunction):
    """Some time after each record: how many records of the key were not later than that, and their largest value.

    A result looks only at records with event times up to its own, which have all come when the timer fires.
    """

    counts = wb.state.MapState(pa.int64(), pa.int64())
    values = wb.state.ListState(pa.int64())
    times = wb.state.ListState(pa.int64())

    def __init__(self, value: str, keys: tuple[str, ...], after_us: int) -> None:
        self.value, self.keys, self.after_us = value, keys, after_us

    def process(self, record: dict[str, Any], state: Any, ctx: wb.functions.ProcessContext) -> None:
        if ctx.timestamp is None:
            ctx.output("timeless", record)
            return
        state.counts[ctx.timestamp] = state.counts.get(ctx.timestamp, 0) + 1
        if record[self.value] is not None:
            state.values.append(record[self.value])
            state.times.append(ctx.timestamp)
        ctx.register_event_timer(ctx.timestamp + self.after_us)
        ctx.register_event_timer(ctx.timestamp + self.after_us + 1)
        ctx.delete_event_timer(ctx.timestamp + self.after_us + 1)

    def on_timer(self, time: int, state: Any, ctx: wb.functions.ProcessContext) -> dict[str, Any]:
        key = ctx.key if len(self.keys) > 1 else (ctx.key,)
        known = [value for value, at in zip(state.values, state.times, strict=True) if at <= time]
        seen = sum(count for at, count in state.counts.items() if at <= time)
        return {**dict(zip(self.keys, key, strict=True)), "due": time, "seen": seen, "most": max(known, default=None)}


def timed_process(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Event-time timers."""
    ints = drawn.of("int")
    if not drawn.timed or not ints or not (keys := keys_of(draft, drawn)):
        return None
    value, after_us = draft.chance.choice(ints), draft.chance.choice((1, 5)) * SECOND
    if {"due", "seen", "most"} & {*keys}:
        return None
    backend = draft.chance.choice(("memory", "disk"))
    fields = [drawn.stream.schema.field(key) for key in keys]
    added = [pa.field("due", pa.int64()), pa.field("seen", pa.int64()), pa.field("most", pa.int64())]
    stream = drawn.stream.key_by(*keys).process(
        Seen(value, keys, after_us),
        pa.schema([*fields, *added]),
        side_outputs={"timeless": drawn.stream.schema},
        state_backend=backend,
    )
    by = " AND ".join(f"r.{key} IS NOT DISTINCT FROM t.{key}" for key in keys)
    query = (
        f"SELECT {listed(keys, 't')}, t.due, count(*) AS seen, max(r.{value}) AS most, t.due AS _et, 0::BIGINT AS _n "
        f"FROM (SELECT DISTINCT {listed(keys)}, _et + {after_us} AS due FROM {drawn.table} WHERE _et IS NOT NULL) t "
        f"JOIN (SELECT * FROM {drawn.table} WHERE _et IS NOT NULL) r ON {by} AND r._et <= t.due GROUP BY "
        f"{listed(keys, 't')}, t.due"
    )
    kinds = {key: drawn.kinds[key] for key in keys} | {"due": "int", "seen": "int", "most": "int"}
    note = f"process with timers by {keys}, state in {backend},"
    made = draft.made(drawn, stream, query, note, kinds=kinds, ordered=False)
    timeless = f"SELECT * FROM {drawn.table} WHERE _et IS NULL"
    side = draft.made(drawn, stream.side_output("timeless"), timeless, "timeless", ordered=False)
    return [made, replace(side, timed=False)]


class Held(wb.functions.ProcessFunction):
    """Keeps values until the clock says so, or the input ends."""

    values = wb.state.ListState(pa.int64())
    count = wb.state.AggregatingState(pa.int64(), create=lambda: 0, add=lambda a, _: a + 1, result=lambda a: a)

    def __init__(self, value: str, key: str, for_us: int) -> None:
        self.value, self.key, self.for_us = value, key, for_us

    def process(self, record: dict[str, Any], state: Any, ctx: wb.functions.ProcessContext) -> None:
        state.values.append(record[self.value])
        state.count.add(1)
        ctx.register_processing_timer(ctx.processing_time + self.for_us)
        ctx.register_event_timer(END_US)

    def on_timer(self, time: int, state: Any, ctx: wb.functions.ProcessContext) -> Any:
        if not state.count.get():
            return
        yield {self.key: ctx.key, "values": list(state.values), "count": state.count.get()}
        state.clear()


def held(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Timers of the clock: each value comes out once, nobody knows beside which others."""
    keys, ints = keys_of(draft, drawn)[:1], drawn.of("int")
    if not keys or not ints or {"values", "count"} & {*keys}:
        return None
    value, for_us, backend = (
        draft.chance.choice(ints),
        draft.chance.choice((10, 5_000)),
        draft.chance.choice(("memory", "disk")),
    )
    schema = pa.schema(
        [drawn.stream.schema.field(keys[0]), pa.field("values", pa.list_(pa.int64())), pa.field("count", pa.int64())]
    )
    function = Held(value, keys[0], for_us)
    stream = drawn.stream.key_by(*keys).process(function, schema, state_backend=backend)
    draft.story.append(f"   held for {for_us} us by {keys}, state in {backend}, of {drawn.table}")
    rows = draft.query(f"SELECT {listed(keys)}, {value}::BIGINT FROM {drawn.table}")
    draft.expected.append(Gathered(draft.sink(stream, drawn.table), keys, "values", "count", rows))
    return []
