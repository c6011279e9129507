"""Groups, top rows and joins whose results change with later records; their tables hold the last results."""

from __future__ import annotations

from typing import Any

import workbench as wb

from .aggregates import Aggregates, aggregates_of, keys_of, told
from .draft import Draft
from .drawn import Drawn, listed
from .expected import Exactly

ORDERED = ("int", "float", "mean", "str", "time")


def updated_groups(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Groups without a window, sometimes groups of such groups."""
    keys = keys_of(draft, drawn)
    aggregates = dict(aggregates_of(draft, drawn, holistic=False))
    for name in drawn.of("int", "str", "time"):
        if draft.sometimes(0.3):
            aggregates[draft.fresh("m")] = (wb.count_distinct(name), f"count(DISTINCT {name})", "int")
    stream = drawn.stream.group_by(*keys).aggregate(**told(aggregates))
    if keys and draft.sometimes(0.5):
        return _groups_of_groups(draft, drawn, keys, aggregates, stream)
    made = [f"{duck} AS {name}" for name, (_, duck, _) in aggregates.items()]
    by = f"GROUP BY {listed(keys)}" if keys else ""
    query = f"SELECT {', '.join([*keys, *made])} FROM {drawn.table} {by}"
    if not keys and not draft.value(f"SELECT count(*) FROM {drawn.table}"):
        return None  # DuckDB has a row of no records, and a stream has none yet
    return _end(draft, drawn, stream, query, f"group {list(aggregates.values())} by {keys}")


def _groups_of_groups(
    draft: Draft, drawn: Drawn, keys: tuple[str, ...], aggregates: Aggregates, stream: wb.Stream
) -> list[Drawn]:
    counted = next(iter(aggregates))
    outer = {
        "groups": (wb.count(), "count(*)"),
        "total": (wb.sum(counted), f"sum({counted})::BIGINT"),
        "least": (wb.min(counted), f"min({counted})"),
        "most": (wb.max(counted), f"max({counted})"),
        "different": (wb.count_distinct(counted), f"count(DISTINCT {counted})"),
    }
    outer = {name: one for name, one in outer.items() if name not in keys}
    key = draft.chance.choice(keys)
    inner = f"SELECT {listed(keys)}, count(*) AS {counted} FROM {drawn.table} GROUP BY {listed(keys)}"
    chosen = ", ".join(f"{duck} AS {name}" for name, (_, duck) in outer.items())
    query = f"SELECT {key}, {chosen} FROM ({inner}) GROUP BY {key}"
    again = stream.group_by(key).aggregate(**{name: one for name, (one, _) in outer.items()})
    return _end(draft, drawn, again, query, f"groups by {key} of groups by {keys}")


def top_rows(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """The first records of each key, or the first groups."""
    keys = keys_of(draft, drawn)
    names = [name for name, kind in drawn.kinds.items() if kind in ORDERED]
    if not keys or not names or set(drawn.kinds) - set(names) - set(drawn.of("bool")):
        return None
    draft.chance.shuffle(names)
    limit = draft.chance.choice((1, 1, 2, 5))
    ways = [draft.sometimes(0.5) for _ in names]
    order = ", ".join(f"{n} {'DESC NULLS LAST' if way else 'NULLS FIRST'}" for n, way in zip(names, ways, strict=True))
    rank = "place" if draft.sometimes(0.5) else None
    columns = [*drawn.kinds, *drawn.of("bool")]
    stream, table = drawn.stream, f"(SELECT * FROM {drawn.table})"
    if draft.sometimes(0.5):
        columns = list(dict.fromkeys(columns))
        stream, table = stream.distinct(*columns), f"(SELECT DISTINCT {listed(columns)} FROM {drawn.table})"
    top = stream.key_by(*keys).top_n(limit, *names, descending=ways, rank=rank)
    chosen = f"{listed(drawn.kinds)}{', place' if rank else ''}"
    numbered = f"SELECT *, row_number() OVER (PARTITION BY {listed(keys)} ORDER BY {order}) AS place FROM {table}"
    return _end(
        draft, drawn, top, f"SELECT {chosen} FROM ({numbered}) WHERE place <= {limit}", f"top {limit} by {order}"
    )


def distinct_values(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """The different values of some columns; of records or of groups."""
    if not (keys := keys_of(draft, drawn)):
        return None
    if draft.sometimes(0.5):
        groups = drawn.stream.group_by(*keys).aggregate(many=wb.count())
        query = f"SELECT DISTINCT many FROM (SELECT count(*) AS many FROM {drawn.table} GROUP BY {listed(keys)})"
        return _end(draft, drawn, groups.distinct("many"), query, f"distinct sizes of groups by {keys}")
    query = f"SELECT DISTINCT {listed(keys)} FROM {drawn.table}"
    return _end(draft, drawn, drawn.stream.distinct(*keys), query, f"distinct {keys}")


def joined(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Groups, or different values, joined with some others of the same stream."""
    keys = keys_of(draft, drawn)
    ints = drawn.of("int", "str")
    if not keys or not ints or len(drawn.kinds) > 8:
        return None
    key = draft.chance.choice(ints)
    how = draft.chance.choice(("inner", "left", "outer", "semi", "anti"))
    left = drawn.stream.group_by(*keys).aggregate(many=wb.count(), most=wb.max(key))
    one = f"SELECT {listed(keys)}, count(*) AS many, max({key}) AS most FROM {drawn.table} GROUP BY {listed(keys)}"
    other = drawn.stream.group_by(key).aggregate(few=wb.count()).select(value=key, few="few")
    two = f"SELECT {key} AS value, count(*) AS few FROM {drawn.table} GROUP BY {key}"
    if draft.sometimes(0.4):
        other, two = (
            drawn.stream.select(value=key, few="1L"),
            f"SELECT {key} AS value, 1::BIGINT AS few FROM {drawn.table}",
        )
    chosen = f"{listed(keys, 'l')}, many, most"
    if how in ("semi", "anti"):
        query = f"SELECT {chosen} FROM ({one}) AS l {how} JOIN ({two}) AS r ON l.most = r.value"
    else:
        chosen = chosen.replace("most", "coalesce(most, value) AS most") if how == "outer" else chosen
        side = {"inner": "JOIN", "left": "LEFT JOIN", "outer": "FULL JOIN"}[how]
        query = f"SELECT {chosen}, few FROM ({one}) AS l {side} ({two}) AS r ON l.most = r.value"
    made = left.join(other, {"most": "value"}, how=how)
    return _end(draft, drawn, made, query, f"{how} join of groups by {keys} by their most {key}")


def flagged(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """The table that flags of the records describe, sometimes its groups."""
    keys, numbers = keys_of(draft, drawn), drawn.of("int")
    if not (keys and numbers and drawn.ordered and draft.alone):
        return None
    number = draft.chance.choice(numbers)
    flag = f"CASE WHEN {number} % 3 = 0 THEN 'd' WHEN {number} % 3 = 1 THEN '+U' ELSE 'Insert' END"
    stream = drawn.stream.with_columns(flag=flag).as_changelog(keys, op="flag")
    last = f"row_number() OVER (PARTITION BY {listed(keys)} ORDER BY _n DESC) AS last"
    query = f"SELECT *, {flag} AS flag FROM {drawn.table}"
    query = f"SELECT {listed(drawn.kinds)} FROM (SELECT *, {last} FROM ({query})) WHERE last = 1 AND flag <> 'd'"
    if draft.sometimes(0.5):
        stream = stream.group_by(number).aggregate(many=wb.count(), other=wb.count_distinct(keys[0]))
        query = (
            f"SELECT {number}, count(*) AS many, count(DISTINCT {keys[0]}) AS other FROM ({query}) GROUP BY {number}"
        )
    return _end(draft, drawn, stream, query, f"changes by {keys}")


def _end(draft: Draft, drawn: Drawn, stream: wb.Stream, query: str, note: str) -> list[Drawn]:
    rows: Any = draft.query(query)
    name = draft.fresh("out")
    draft.story.append(f"{name} <- {note} of {drawn.table} ({len(rows)} rows)")
    draft.keep(name, stream)
    draft.expected.append(Exactly(name, rows))
    return []
