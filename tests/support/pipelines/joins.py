"""Joins of streams, and lookups."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import workbench as wb

from .draft import Draft
from .drawn import SECOND, Drawn, listed
from .records import filtered
from .sources import source
from .windows import sessions, starts


def lookup_join(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Rows of a table beside each record."""
    if not (keys := drawn.of("str", "int")):
        return None
    key, how = draft.chance.choice(keys), draft.chance.choice(("inner", "left"))
    values: list[Any] = [f"k{at}" for at in range(3)] + ["x", "x", "日本", None]
    if drawn.kinds[key] == "int":
        values = [0, 1, 2, 2, 5, 9, None]
    fact, name = draft.fresh("c"), draft.fresh("n")
    table = pa.table({"key": pa.array(values, _plain(drawn, key)), fact: pa.array(range(7), pa.int64())})
    draft.register(name, table)
    stream = drawn.stream.join(table, on={key: "key"}, how=how)
    kinds = drawn.kinds | {fact: "int"}
    query = (
        f"SELECT {listed(drawn.kinds, 'l')}, r.{fact}, l._et, l._n "
        f"FROM {drawn.table} l {how} JOIN {name} r ON l.{key} = r.key"
    )
    return [draft.made(drawn, stream, query, f"{how} lookup join on {key}", kinds=kinds, ordered=False)]


def lookup_async(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """What a function answers about each record's key."""
    if not (keys := drawn.of("str", "int")):
        return None
    key, how, new = draft.chance.choice(keys), draft.chance.choice(("inner", "left")), draft.fresh("c")
    ordered = draft.sometimes(0.5)

    def answer(found: Any) -> dict[str, Any] | None:
        size = found if isinstance(found, int) else len(found)
        return None if size % 3 == 0 else {new: size * 10}

    stream = drawn.stream.lookup_async(
        answer,
        key=key,
        schema={new: pa.int64()},
        concurrency=draft.chance.choice((1, 3)),
        ordered=ordered,
        how=how,
        timeout="1h",
    )
    size = key if drawn.kinds[key] == "int" else f"length({key})"
    query = f"SELECT {listed(drawn.kinds)}, CASE WHEN {size} % 3 <> 0 THEN {size} * 10 END::BIGINT AS {new}, _et, _n"
    query += f" FROM {drawn.table}" + (f" WHERE {size} % 3 <> 0" if how == "inner" else "")
    note, kinds = f"{how} lookup_async by {key}, ordered {ordered},", drawn.kinds | {new: "int"}
    return [draft.made(drawn, stream, query, note, kinds=kinds, ordered=drawn.ordered and ordered)]


def window_join(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Records of two streams in the same window."""
    if (found := _partner(draft, drawn)) is None:
        return None
    right, left_key, right_key = found
    how = draft.chance.choice(("inner", "inner", "left", "outer"))
    size = draft.chance.choice((1, 5, 20)) * SECOND
    slide = draft.chance.choice((size, size, size // 2))
    window: wb.windows.WindowAssigner
    if draft.sometimes(0.4):
        window = wb.session(f"{size}us")
        sides = _sessions_of_both((drawn, left_key), (right, right_key), size, how)
    else:
        window = wb.tumbling(f"{size}us") if slide == size else wb.sliding(f"{size}us", f"{slide}us")
        sides = [starts(side.table, size, slide, 0) for side in (drawn, right)]
    stream = drawn.stream.join(right.stream, on={left_key: right_key}, window=window, how=how)
    chosen, kinds = _joined(drawn, right, left_key, right_key)
    join = {"inner": "JOIN", "left": "LEFT JOIN", "outer": "FULL JOIN"}[how]
    query = (
        f"SELECT {', '.join(chosen)}, coalesce(l._we, r._we) - 1 AS _et, 0::BIGINT AS _n "
        f"FROM ({sides[0]}) l {join} ({sides[1]}) r ON l.{left_key} = r.{right_key} AND l._ws = r._ws"
    )
    note = f"{how} join {drawn.table}.{left_key} = {right.table}.{right_key} in {window.describe()}"
    return [draft.made(drawn, stream, query, note, kinds=kinds, ordered=False)]


def interval_join(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Records of two streams whose event times are near each other."""
    if (found := _partner(draft, drawn)) is None:
        return None
    right, left_key, right_key = found
    how = draft.chance.choice(("inner", "left"))
    low = draft.chance.choice((-20, -5, 0, 2)) * SECOND
    high = low + draft.chance.choice((0, 4, 15)) * SECOND
    since = f"{'-' * (low < 0)}{abs(low)}us"
    until = draft.chance.choice([None, *drawn.of("time")]) if how == "inner" else None
    latest = f"l._et + {high}" if until is None else f"epoch_us(l.{until})"
    stream = drawn.stream.join(
        right.stream,
        on={left_key: right_key},
        between=(since, f"{'-' * (high < 0)}{abs(high)}us" if until is None else wb.col(until)),
        how=how,
    )
    chosen, kinds = _joined(drawn, right, left_key, right_key)
    query = (
        f"SELECT {', '.join(chosen)}, 0::BIGINT AS _n, "
        f"CASE WHEN r._et IS NULL THEN l._et + {max(high, 0)} ELSE greatest(l._et, r._et) END AS _et "
        f"FROM (SELECT * FROM {drawn.table} WHERE _et IS NOT NULL) l {'LEFT' if how == 'left' else ''} JOIN "
        f"(SELECT * FROM {right.table} WHERE _et IS NOT NULL) r "
        f"ON l.{left_key} = r.{right_key} AND r._et BETWEEN l._et + {low} AND {latest}"
    )
    note = f"{how} join {drawn.table}.{left_key} = {right.table}.{right_key} from {low} us to {until or f'{high} us'}"
    return [draft.made(drawn, stream, query, note, kinds=kinds, ordered=False)]


def _sessions_of_both(left: tuple[Drawn, str], right: tuple[Drawn, str], gap: int, how: str) -> list[str]:
    """Each side's rows with the sessions that both sides' records of a key make up together.

    A record with a null key that does not come out is in no session.
    """
    numbered = "SELECT *, row_number() OVER () AS _id FROM"
    both = " UNION ALL ".join(
        f"SELECT {key} AS _key, _et, _id, {side} AS _side FROM ({numbered} {drawn.table})"
        f"{'' if how == 'outer' or (how == 'left' and not side) else f' WHERE {key} IS NOT NULL'}"
        for side, (drawn, key) in enumerate((left, right))
    )
    placed = sessions(f"({both})", ("_key",), str(gap))
    return [
        f"SELECT n.*, s._ws, s._we FROM ({numbered} {drawn.table}) n "
        f"JOIN (SELECT _id, _ws, _we FROM ({placed}) WHERE _side = {side}) s USING (_id)"
        for side, (drawn, _) in enumerate((left, right))
    ]


def _plain(drawn: Drawn, name: str) -> pa.DataType:
    kind = drawn.stream.schema.field(name).type
    return pa.string() if pa.types.is_dictionary(kind) else kind


def _partner(draft: Draft, drawn: Drawn) -> tuple[Drawn, str, str] | None:
    """Another stream, and a key of each."""
    right = source(draft)
    if draft.sometimes(0.2):
        right = drawn
    elif draft.sometimes(0.5):
        right = filtered(draft, right)[0]
    types = {name: _plain(right, name) for name in right.of("str", "int", "float", "bool")}
    possible = []
    for name in drawn.of("str", "int", "float", "bool"):
        kind = _plain(drawn, name)
        possible += [(name, other) for other, its in types.items() if its == kind]
    if not possible or not drawn.timed or not right.timed:
        return None
    left_key, right_key = draft.chance.choice(possible)
    clashes = [name for name in right.kinds if name != right_key and f"{name}_right" in drawn.kinds]
    named = {draft.fresh("c"): name for name in clashes}
    kept = [name for name in right.kinds if name not in clashes]
    if named:
        stream = right.stream.select(*kept, **named)
        kinds = {name: right.kinds[name] for name in kept} | {new: right.kinds[old] for new, old in named.items()}
        chosen = [*kept, *(f"{old} AS {new}" for new, old in named.items())]
        query = f"SELECT {', '.join(chosen)}, _et, _n FROM {right.table}"
        right = draft.made(right, stream, query, "renamed", kinds=kinds)
    return right, left_key, right_key


def _joined(left: Drawn, right: Drawn, left_key: str, right_key: str) -> tuple[list[str], dict[str, str]]:
    chosen = [
        f"l.{name}" if name != left_key else f"coalesce(l.{name}, r.{right_key}) AS {name}" for name in left.kinds
    ]
    kinds = dict(left.kinds)
    for name, kind in right.kinds.items():
        if name != right_key:
            new = name if name not in left.kinds else f"{name}_right"
            chosen.append(f"r.{name} AS {new}")
            kinds[new] = kind
    return chosen, kinds
