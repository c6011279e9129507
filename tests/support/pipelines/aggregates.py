"""Keys and aggregates, rolling aggregates and reduce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import workbench as wb

from .draft import Draft
from .drawn import NUMBERS, SECOND, Drawn, listed
from .expected import AtLast

KEYS = ("int", "str", "bool", "time", "micros", "float")

Aggregates = Mapping[str, tuple[Any, str, str]]
"""By name: the aggregate, the same in DuckDB's words, and its kind; the first counts the records."""


def keys_of(draft: Draft, drawn: Drawn) -> tuple[str, ...]:
    """One key column, or two; none where nothing can be a key."""
    possible = [name for name in drawn.of(*KEYS) if name not in ("window_start", "window_end")]
    few = [name for name in possible if name != "n"]
    return tuple(draft.chance.sample(few or possible, min(len(few or possible), draft.chance.choice((1, 1, 1, 2)))))


def aggregates_of(draft: Draft, drawn: Drawn, *, holistic: bool) -> Aggregates:
    """Some aggregates of all columns."""
    found: list[tuple[Any, str, str]] = []
    for name in drawn.kinds:
        kind = drawn.kinds[name]
        column = name
        found.append((wb.count(column), f"count({column})", "int"))
        if kind in NUMBERS:
            whole = f"sum({column})::BIGINT" if kind == "int" else f"sum({column})"
            found += [(wb.sum(column), whole, kind), (wb.mean(column), f"avg({column})", "mean")]
        if kind in (*NUMBERS, "mean", "time"):
            found += [(wb.min(column), f"min({column})", kind), (wb.max(column), f"max({column})", kind)]
        if holistic and kind in NUMBERS:
            found += [(wb.median(column), f"median({column}::DOUBLE)", "float")] * 6
        if holistic and kind in (*NUMBERS, "str"):
            ranked = f"coalesce(list({column} ORDER BY {column} DESC) FILTER ({column} IS NOT NULL), [])[1:2]"
            found.append((wb.top_k(column, 2), ranked, "list"))
    drawn_ones = draft.chance.sample(found, min(len(found), draft.chance.randint(1, 6)))
    return {draft.fresh("m"): one for one in [(wb.count(), "count(*)", "int"), *drawn_ones]}


def kinds_of(drawn: Drawn, keys: tuple[str, ...], aggregates: Aggregates) -> dict[str, str]:
    """Kinds of the keys and of the aggregates."""
    kinds = {key: drawn.kinds[key] for key in keys}
    return kinds | {name: kind for name, (_, _, kind) in aggregates.items()}


def told(aggregates: Aggregates) -> dict[str, Any]:
    """The aggregates as the public API takes them."""
    return {name: one for name, (one, _, _) in aggregates.items()}


def numbered(table: str) -> str:
    """A table with the order of its rows among those of one ``_n``."""
    return f"(SELECT *, row_number() OVER () AS _i FROM {table})"


def rolling(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """A result for every record: aggregates so far."""
    if not (keys := keys_of(draft, drawn)):
        return None
    aggregates = aggregates_of(draft, drawn, holistic=False)
    kinds = kinds_of(drawn, keys, aggregates)
    stream = drawn.stream.key_by(*keys).aggregate(**told(aggregates))
    over = f"OVER (PARTITION BY {', '.join(keys)} ORDER BY _n, _i ROWS UNBOUNDED PRECEDING)"
    chosen = [f"{duck.removesuffix('::BIGINT')} {over}" for _, duck, _ in aggregates.values()]
    chosen = [
        f"({text})::BIGINT AS {name}" if kinds[name] == "int" else f"{text} AS {name}"
        for text, name in zip(chosen, aggregates, strict=True)
    ]
    query = f"SELECT {', '.join([*keys, *chosen])}, _et, _n FROM {numbered(drawn.table)}"
    made = draft.made(drawn, stream, query, f"rolling {list(aggregates.values())} by {keys}", kinds=kinds)
    return at_last(draft, made, keys, next(iter(aggregates)))


def over_time(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Each record with aggregates of those of its key in some seconds before it."""
    if not drawn.timed or not (keys := keys_of(draft, drawn)) or len(drawn.kinds) > 8:
        return None
    aggregates = aggregates_of(draft, drawn, holistic=False)
    back = draft.chance.choice((0, 3, 15, None))
    stream = drawn.stream.over(keys, "range", None if back is None else f"{back}s", told(aggregates))
    reach = "UNBOUNDED" if back is None else back * SECOND
    over = f"OVER (PARTITION BY {listed(keys)} ORDER BY _et RANGE BETWEEN {reach} PRECEDING AND CURRENT ROW)"
    kinds = drawn.kinds | {name: kind for name, (_, _, kind) in aggregates.items()}
    chosen = [f"{duck.removesuffix('::BIGINT')} {over}" for _, duck, _ in aggregates.values()]
    chosen = [
        f"({text})::BIGINT AS {name}" if kinds[name] == "int" else f"{text} AS {name}"
        for text, name in zip(chosen, aggregates, strict=True)
    ]
    query = f"SELECT {', '.join([*drawn.kinds, *chosen])}, _et, _n FROM {drawn.table} WHERE _et IS NOT NULL"
    note = f"over {back} s: {list(aggregates.values())} by {keys}"
    return [draft.made(drawn, stream, query, note, kinds=kinds, ordered=False)]


def reduced(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """A result for every record: those of its key folded into one."""
    if not (keys := keys_of(draft, drawn)) or not (ints := drawn.of("int")) or {"seen", "low"} & {*keys}:
        return None
    name = draft.chance.choice(ints)

    def folded(held: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        low = min((one["low"] for one in (held, new) if one["low"] is not None), default=None)
        return {**held, "seen": held["seen"] + new["seen"], "low": low}

    plain = drawn.stream.select(*keys, seen="1", low=name)
    stream = plain.key_by(*keys).reduce(folded)
    over = f"OVER (PARTITION BY {', '.join(keys)} ORDER BY _n, _i ROWS UNBOUNDED PRECEDING)"
    query = (
        f"SELECT {', '.join(keys)}, (count(*) {over})::BIGINT AS seen, min({name}) {over} AS low, _et, _n "
        f"FROM {numbered(drawn.table)}"
    )
    kinds = {key: drawn.kinds[key] for key in keys} | {"seen": "int", "low": "int"}
    return at_last(draft, draft.made(drawn, stream, query, f"reduce {name} by {keys}", kinds=kinds), keys, "seen")


def counted_by_process(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """A result for every record: how manieth of its key it is, told by a plain process function."""
    if not (keys := keys_of(draft, drawn)):
        return None
    name, schema = draft.fresh("m"), pa.schema([drawn.stream.schema.field(key) for key in keys])

    def count(record: dict[str, Any], state: Any) -> dict[str, Any]:
        state.n += 1
        return {**{key: record[key] for key in keys}, name: state.n}

    stream = drawn.stream.key_by(*keys).process(
        count,
        schema.append(pa.field(name, pa.int64())),
        state={"n": wb.state.ValueState(pa.int64(), default=0)},
        state_backend=draft.chance.choice(("memory", "disk")),
    )
    query = (
        f"SELECT {listed(keys)}, row_number() OVER (PARTITION BY {listed(keys)} ORDER BY _n, _i) AS {name}, _et, _n "
        f"FROM {numbered(drawn.table)}"
    )
    kinds = {key: drawn.kinds[key] for key in keys} | {name: "int"}
    return at_last(draft, draft.made(drawn, stream, query, f"process: count by {keys}", kinds=kinds), keys, name)


def at_last(draft: Draft, made: Drawn, keys: tuple[str, ...], count: str) -> list[Drawn]:
    """Running results: where records have no order, only the last ones are known."""
    if made.ordered:
        return [made]
    rows = draft.query(f"SELECT {listed(made.kinds)} FROM {made.table}")
    draft.expected.append(AtLast(draft.sink(made.stream, made.table), rows, keys, count, len(rows)))
    return []
