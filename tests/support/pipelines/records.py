"""Operators that look at one record at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import workbench as wb

from .draft import Draft
from .drawn import Drawn, listed
from .wording import condition, value


def filtered(draft: Draft, drawn: Drawn) -> list[Drawn]:
    spark, duck = condition(draft, drawn)
    query = f"SELECT * FROM {drawn.table} WHERE {duck}"
    return [draft.made(drawn, drawn.stream.filter(spark), query, f"filter {spark}")]


def with_columns(draft: Draft, drawn: Drawn) -> list[Drawn]:
    added = {}
    for _ in range(draft.chance.randint(1, 2)):
        replaced = [name for name in drawn.kinds if name not in ("window_start", "window_end")]
        name = draft.chance.choice(replaced) if replaced and draft.sometimes(0.3) else draft.fresh("c")
        added[name] = value(draft, drawn)
    stream = drawn.stream.with_columns(**{name: wb.expr(spark) for name, (spark, _, _) in added.items()})
    kinds = drawn.kinds | {name: kind for name, (_, _, kind) in added.items()}
    chosen = [f"{added[name][1]} AS {name}" if name in added else name for name in kinds]
    query = f"SELECT {', '.join(chosen)}, _et, _n FROM {drawn.table}"
    return [draft.made(drawn, stream, query, f"with_columns {added}", kinds=kinds)]


def selected(draft: Draft, drawn: Drawn) -> list[Drawn]:
    kept = draft.chance.sample(list(drawn.kinds), draft.chance.randint(1, len(drawn.kinds)))
    named = {draft.fresh("c"): value(draft, drawn) for _ in range(draft.chance.randint(0, 2))}
    stream = drawn.stream.select(*kept, **{name: spark for name, (spark, _, _) in named.items()})
    kinds = {name: drawn.kinds[name] for name in kept} | {name: kind for name, (_, _, kind) in named.items()}
    computed = [f"{duck} AS {name}" for name, (_, duck, _) in named.items()]
    query = f"SELECT {', '.join([*kept, *computed])}, _et, _n FROM {drawn.table}"
    return [draft.made(drawn, stream, query, f"select {kept} {named}", kinds=kinds)]


def mapped(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    if not (ints := drawn.of("int")):
        return None
    name = draft.chance.choice(ints)

    def doubled(record: dict[str, Any]) -> dict[str, Any]:
        found = record[name]
        return {**record, name: None if found is None else found * 2 + 1}

    query = f"SELECT * REPLACE ({name} * 2 + 1 AS {name}) FROM {drawn.table}"
    return [draft.made(drawn, drawn.stream.map(doubled), query, f"map {name} * 2 + 1")]


def mixed(c_one: Any, c_other: Any) -> Any:
    """What both the interpreter and the machine compute from two numbers; machine code never sees a null."""
    if c_one is None or c_other is None:
        return None
    if c_one > c_other:
        return c_one * 3 - c_other
    return c_other - c_one


def larger(c_one: Any, c_other: Any) -> Any:
    if c_one is None or c_other is None:
        return None
    return c_one > c_other


def column_functions(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Functions of columns, compiled or not."""
    if not (ints := drawn.of("int")):
        return None
    one, other = draft.chance.choice(ints), draft.chance.choice(ints)
    compiled, both = draft.sometimes(0.4), f"{one} IS NOT NULL AND {other} IS NOT NULL"
    pair = drawn.stream.with_columns(c_one=wb.expr(one), c_other=wb.expr(other))
    kinds = drawn.kinds | {"c_one": "int", "c_other": "int"}
    how = "compiled" if compiled else "interpreted"
    if draft.sometimes(0.4):
        stream = pair.filter(larger, columns=["c_one", "c_other"], compiled=compiled).select(*drawn.kinds)
        query = f"SELECT * FROM {drawn.table} WHERE {both} AND {one} > {other}"
        return [draft.made(drawn, stream, query, f"{how} filter {one} > {other}")]
    new = draft.fresh("c")
    keep = [name for name in kinds if name not in ("c_one", "c_other")]
    stream = pair.map(mixed, {new: pa.int64()}, columns=["c_one", "c_other"], keep=keep, compiled=compiled)
    case = f"CASE WHEN {one} > {other} THEN {one} * 3 - {other} ELSE {other} - {one} END"
    query = f"SELECT {listed(keep)}, (CASE WHEN {both} THEN {case} END)::BIGINT AS {new}, _et, _n FROM {drawn.table}"
    kinds = drawn.kinds | {new: "int"}
    return [draft.made(drawn, stream, query, f"{how} map of {one} and {other}", kinds=kinds)]


def map_batches(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    if drawn.kinds.get("t") in ("time", "micros") and drawn.timed and draft.sometimes(0.5):
        return [_known_times(draft, drawn)]
    if not (ints := drawn.of("int")):
        return None
    name = draft.chance.choice(ints)

    def negated(batch: pa.RecordBatch) -> pa.RecordBatch:
        at = batch.schema.get_field_index(name)
        return batch.set_column(at, batch.schema.field(at), pc.negate(batch.column(at)))

    query = f"SELECT * REPLACE (-{name} AS {name}) FROM {drawn.table}"
    return [draft.made(drawn, drawn.stream.map_batches(negated), query, f"map_batches -{name}")]


def _known_times(draft: Draft, drawn: Drawn) -> Drawn:
    def known(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(batch.column("t").is_valid())

    stream = drawn.stream.map_batches(known, event_time="t")
    micros = "t" if drawn.kinds["t"] == "micros" else "epoch_us(t)"
    query = f"SELECT * REPLACE ({micros} AS _et) FROM {drawn.table} WHERE t IS NOT NULL"
    # Where the records' event times are no longer their `t`, a watermark may already be ahead of it.
    return replace(draft.made(drawn, stream, query, "map_batches t IS NOT NULL"), timed=False)


def flat_mapped(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    if not (ints := drawn.of("int")):
        return None
    name = draft.chance.choice(ints)

    def repeated(record: dict[str, Any]) -> Iterable[dict[str, Any]]:
        return [record] * (1 if record[name] is None else abs(record[name]) % 3)

    stream = drawn.stream.flat_map(repeated, drawn.stream.schema)
    query = f"SELECT n.* FROM {drawn.table} n, range(3) r(i) WHERE i < coalesce(abs({name}) % 3, 1)"
    return [draft.made(drawn, stream, query, f"flat_map abs({name}) % 3 times")]


def timestamps(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """New event times from a column, with a bound that nothing exceeds."""
    if not (times := drawn.of("time", "micros")):
        return None
    name = draft.chance.choice(times)
    micros = name if drawn.kinds[name] == "micros" else f"epoch_us({name})"
    stream = drawn.stream.assign_timestamps(name, out_of_orderness="30d")
    query = f"SELECT * REPLACE ({micros} AS _et) FROM {drawn.table}"
    return [replace(draft.made(drawn, stream, query, f"event time {name}"), timed=True)]
