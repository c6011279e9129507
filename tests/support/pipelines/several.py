"""Streams that meet and part."""

from __future__ import annotations

import pyarrow as pa

import workbench as wb

from .draft import Draft
from .drawn import Drawn, listed
from .records import filtered
from .sources import source
from .wording import condition


def united(draft: Draft, drawn: Drawn) -> list[Drawn]:
    others = [drawn if draft.sometimes(0.2) else filtered(draft, drawn)[0] for _ in range(draft.chance.randint(1, 2))]
    stream = drawn.stream.union(*(other.stream for other in others))
    tables = [drawn.table, *(other.table for other in others)]
    query = " UNION ALL ".join(f"SELECT {listed(drawn.kinds)}, _et, _n FROM {table}" for table in tables)
    return [draft.made(drawn, stream, query, f"union {tables[1:]}", ordered=False)]


def connected(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Two streams that a function maps, keyed or not."""
    if not (ints := drawn.of("int")):
        return None
    other, name = source(draft), draft.chance.choice(ints)
    on = {name: "a"} if draft.sometimes(0.5) else None
    schema = {"side": pa.int64(), "v": pa.int64()}
    connection = drawn.stream.connect(other.stream, on)
    stream = connection.map(
        lambda record: {"side": 1, "v": record[name]}, lambda record: {"side": 2, "v": record["a"]}, schema
    )
    query = (
        f"SELECT 1::BIGINT AS side, {name}::BIGINT AS v, _et, _n FROM {drawn.table} "
        f"UNION ALL SELECT 2, a, _et, _n FROM {other.table}"
    )
    kinds = {"side": "int", "v": "int"}
    return [draft.made(drawn, stream, query, f"connect {other.table} on {on}", kinds=kinds, ordered=False)]


def parted(draft: Draft, drawn: Drawn) -> list[Drawn]:
    """One stream for each condition, and one for the rest."""
    conditions = [condition(draft, drawn) for _ in range(draft.chance.randint(1, 2))]
    streams = drawn.stream.split({f"way{at}": spark for at, (spark, _) in enumerate(conditions)})
    ways, before = [], "true"
    for at, (spark, duck) in enumerate(conditions):
        query = f"SELECT * FROM {drawn.table} WHERE {before} AND coalesce({duck}, false)"
        ways.append(draft.made(drawn, streams[f"way{at}"], query, f"split {spark}"))
        before += f" AND NOT coalesce({duck}, false)"
    return [*ways, draft.made(drawn, streams["rest"], f"SELECT * FROM {drawn.table} WHERE {before}", "the rest")]


class Totals(wb.functions.CoProcessFunction):
    """Counts both streams' records of a key, and tells when the input has ended."""

    first = wb.state.ValueState(pa.int64(), default=0)
    second = wb.state.ReducingState(pa.int64(), lambda a, b: a + b)

    def process1(self, record, state, ctx):
        state.first += 1
        ctx.register_event_timer(END_US)

    def process2(self, record, state, ctx):
        state.second.add(1)
        ctx.register_event_timer(END_US)

    def on_timer(self, time, state, ctx):
        yield {"key": ctx.key, "first": state.first, "second": state.second.get() or 0}


class Judged(wb.functions.CoProcessFunction):
    """Counts the records of a key, and tells at the end what the rule for it says."""

    rules = wb.state.BroadcastState(pa.int64(), pa.string())
    count = wb.state.ValueState(pa.int64(), default=0)

    def process1(self, record, state, ctx):
        state.count += 1
        ctx.register_event_timer(END_US)

    def process2(self, rule, state):
        state.rules[rule["n"]] = rule["s"]

    def on_timer(self, time, state, ctx):
        rule = ctx.broadcast.rules.get(ctx.key, "none")
        yield {"key": ctx.key, "count": state.count, "rule": rule}


END_US = 2**63 - 2
"""A time that only the end of the input reaches."""


def co_processed(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Keyed state that two streams reach, or broadcast state."""
    if not (ints := drawn.of("int")):
        return None
    other, name = source(draft), draft.chance.choice(ints)
    kind = drawn.stream.schema.field(name).type
    if draft.sometimes(0.5):
        schema = {"key": pa.int64(), "first": pa.int64(), "second": pa.int64()}
        stream = drawn.stream.connect(other.stream, {name: "a"}).process(Totals(), schema)
        query = (
            f"SELECT k AS key, count(*) FILTER (side = 1) AS first, count(*) FILTER (side = 2) AS second, "
            f"NULL::BIGINT AS _et, 0 AS _n FROM (SELECT {name}::BIGINT AS k, 1 AS side FROM {drawn.table} "
            f"UNION ALL SELECT a, 2 FROM {other.table}) GROUP BY k"
        )
        kinds, note = {"key": "int", "first": "int", "second": "int"}, f"totals with {other.table} by {name}"
    else:
        schema = {"key": kind, "count": pa.int64(), "rule": pa.string()}
        stream = drawn.stream.connect(other.stream.broadcast(), on=name).process(Judged(), schema)
        query = (
            f"SELECT l.k AS key, l.c AS count, CASE WHEN r.n IS NULL THEN 'none' ELSE r.s END AS rule, "
            f"NULL::BIGINT AS _et, 0 AS _n FROM (SELECT {name} AS k, count(*) AS c FROM {drawn.table} GROUP BY 1) l "
            f"LEFT JOIN {other.table} r ON l.k = r.n"
        )
        kinds, note = {"key": "int", "count": "int", "rule": "str"}, f"rules of {other.table} by {name}"
    made = draft.made(drawn, stream, query, note, kinds=kinds, ordered=False)
    return [Drawn(made.stream, made.table, kinds, ordered=False, timed=False)]
