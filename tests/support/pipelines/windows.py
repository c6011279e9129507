"""Windows in event time that no record misses: every assigner, triggers, evictors, whole-window functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import workbench as wb
from workbench.operators.changelogs.row_kinds import KIND

from .aggregates import Aggregates, aggregates_of, keys_of, kinds_of, numbered, told
from .draft import Draft
from .drawn import SECOND, Drawn, listed
from .expected import AtLast, Exactly, Gathered


@dataclass(frozen=True)
class Placed:
    """A stream and its windows, and a query for each row beside each of its windows, as ``_ws`` and ``_we``.

    Attributes:
        kind: ``"time"``, ``"session"`` or ``"global"``.
    """

    stream: wb.Stream
    window: wb.windows.WindowAssigner
    query: str
    kind: str = "time"


def time_window(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Windows of all kinds, fired at their end."""
    if not drawn.timed or "window_start" in drawn.kinds:
        return None
    keys = keys_of(draft, drawn) if draft.sometimes(0.85) else ()
    placed = place(draft, drawn, keys)
    evictor, placed = _evictor(draft, drawn, keys, placed)
    lateness = draft.chance.choice(("0s", "0s", "5s")) if placed.kind != "global" else "0s"
    grouped = placed.stream.key_by(*keys) if keys else placed.stream
    windowed = grouped.window(placed.window, allowed_lateness=lateness, evictor=evictor)
    note = f"{windowed!r}".partition(";")[0]
    if draft.sometimes(0.2) and drawn.of("int"):
        made = _applied(draft, drawn, windowed, keys, placed, note)
    else:
        aggregates = aggregates_of(draft, drawn, holistic=draft.sometimes(0.5))
        made = windows_of(draft, drawn, windowed.aggregate(**told(aggregates)), keys, aggregates, placed, note)
    if placed.kind != "global" and placed.stream is drawn.stream and draft.sometimes(0.2):
        none = f"SELECT * FROM {drawn.table} WHERE false"
        draft.end(draft.made(drawn, made.stream.side_output("late"), none, "late"))
    if KIND in made.stream.columns:  # of sessions that accept late records
        name = draft.fresh("out")
        draft.keep(name, made.stream)
        draft.expected.append(Exactly(name, draft.query(f"SELECT {listed(made.kinds)} FROM {made.table}")))
        return []
    return [made]


def place(draft: Draft, drawn: Drawn, keys: tuple[str, ...], *, global_too: bool = True) -> Placed:
    """Some windows."""
    chance = draft.chance
    kinds = ["tumbling", "tumbling", "sliding", "session", "session", *(["global"] if global_too else [])]
    kind, size = chance.choice(kinds), chance.choice((1, 3, 10, 60)) * SECOND
    stream, table = drawn.stream, drawn.table
    if kind == "tumbling":
        offset = chance.choice((0, 0, size // 3))
        window: wb.windows.WindowAssigner = wb.tumbling(f"{size}us", offset=f"{offset}us")
        return Placed(stream, window, starts(table, size, size, offset))
    if kind == "sliding":
        slide = max(chance.choice((size // 2, size // 3, size // 4 * 3, size // 2 * 3)), 1)
        return Placed(stream, wb.sliding(f"{size}us", f"{slide}us"), starts(table, size, slide, 0))
    if kind == "session" and "n" in drawn.kinds and draft.sometimes(0.3):
        gap = f"(coalesce(abs(n), 1) % 4 + 1) * {SECOND}"
        return Placed(stream.with_columns(gap=gap), wb.session(column="gap"), sessions(table, keys, gap), "session")
    if kind == "session":
        return Placed(stream, wb.session(f"{size}us"), sessions(table, keys, str(size)), "session")
    return Placed(stream, wb.windows.global_window(), f"SELECT *, 0 AS _ws, 1 AS _we FROM {table}", "global")


def starts(table: str, size: int, slide: int, offset: int) -> str:
    """Each row with each of its windows of one size."""
    last = f"_et - ((_et - {offset}) % {slide} + {slide}) % {slide}"
    return (
        f"SELECT n.*, {last} - w.i * {slide} AS _ws, {last} - w.i * {slide} + {size} AS _we "
        f"FROM {table} n, range({-(-size // slide)}) w(i) WHERE {last} - w.i * {slide} + {size} > _et"
    )


def sessions(table: str, keys: tuple[str, ...], gap: str) -> str:
    """Each row with its session: one begins where all before have ended."""
    by = f"PARTITION BY {listed(keys)} " if keys else ""
    of = f"PARTITION BY {listed([*keys, '_s'])}"
    return (
        f"SELECT *, min(_et) OVER ({of}) AS _ws, max(_et + {gap}) OVER ({of}) AS _we FROM ("
        f"SELECT *, sum(_new) OVER ({by} ORDER BY _et, _row ROWS UNBOUNDED PRECEDING) AS _s FROM ("
        f"SELECT *, CASE WHEN _et <= max(_et + {gap}) OVER ({by} ORDER BY _et, _row ROWS BETWEEN UNBOUNDED PRECEDING "
        f"AND 1 PRECEDING) THEN 0 ELSE 1 END AS _new "
        f"FROM (SELECT *, row_number() OVER () AS _row FROM {table} WHERE _et IS NOT NULL)))"
    )


def windows_of(
    draft: Draft,
    drawn: Drawn,
    stream: wb.Stream,
    keys: tuple[str, ...],
    aggregates: Aggregates,
    placed: Placed,
    note: str,
) -> Drawn:
    """A result for each key and window."""
    chosen, kinds = _heads(drawn, keys, placed)
    chosen += [f"{duck} AS {name}" for name, (_, duck, _) in aggregates.items()]
    kinds |= kinds_of(drawn, (), aggregates)
    query = (
        f"SELECT {', '.join(chosen)}, (_we - 1)::BIGINT AS _et, 0::BIGINT AS _n "
        f"FROM ({placed.query}) GROUP BY {listed([*keys, '_ws', '_we'])}"
    )
    note += f": {[duck for _, duck, _ in aggregates.values()]}"
    return replace(draft.made(drawn, stream, query, note, kinds=kinds, ordered=False), timed=placed.kind != "global")


def _heads(drawn: Drawn, keys: tuple[str, ...], placed: Placed) -> tuple[list[str], dict[str, str]]:
    chosen, kinds = list(keys), {key: drawn.kinds[key] for key in keys}
    if placed.kind != "global":
        chosen += ["make_timestamp(_ws::BIGINT) AS window_start", "make_timestamp(_we::BIGINT) AS window_end"]
        kinds |= {"window_start": "time", "window_end": "time"}
    return chosen, kinds


def _evictor(
    draft: Draft, drawn: Drawn, keys: tuple[str, ...], placed: Placed
) -> tuple[wb.windows.Evictor | None, Placed]:
    if not draft.sometimes(0.4):
        return None, placed
    of = f"PARTITION BY {listed([*keys, '_ws', '_we'])}"
    if drawn.ordered and draft.sometimes(0.6):
        last = draft.chance.randint(1, 4)
        query = (
            f"SELECT * FROM (SELECT *, row_number() OVER ({of} ORDER BY _n DESC, _i DESC) AS _back FROM "
            f"({placed.query.replace(f'FROM {drawn.table}', f'FROM {numbered(drawn.table)}')})) WHERE _back <= {last}"
        )
        return wb.windows.keep_last(last), replace(placed, query=query)
    if placed.kind == "global":
        return None, placed
    span = draft.chance.choice((1, 2, 5)) * SECOND
    query = f"SELECT * FROM (SELECT *, max(_et) OVER ({of}) - _et AS _age FROM ({placed.query})) WHERE _age < {span}"
    return wb.windows.keep_since(f"{span}us"), replace(placed, query=query)


def _applied(
    draft: Draft, drawn: Drawn, windowed: wb.types.WindowedStream, keys: tuple[str, ...], placed: Placed, note: str
) -> Drawn:
    """A function of all records of a window; of windows with three records it says nothing, of others twice."""
    name, count, least, most = draft.chance.choice(drawn.of("int")), *(draft.fresh("m") for _ in range(3))

    def spread(key: Any, window: wb.windows.Window, records: pa.Table) -> Any:
        if len(records) == 3:
            return None
        ends = pc.min_max(records[name]).as_py()
        row = {count: len(records), least: ends["min"], most: ends["max"]}
        return row if len(records) == 1 else [row, {**row, count: -len(records)}]

    stream = windowed.apply(spread, dict.fromkeys((count, least, most), pa.int64()))
    chosen, kinds = _heads(drawn, keys, placed)
    query = (
        f"SELECT * EXCLUDE (sign) REPLACE ({count} * sign AS {count}) FROM ("
        f"SELECT {', '.join([*chosen, f'count(*) AS {count}'])}, "
        f"min({name})::BIGINT AS {least}, max({name})::BIGINT AS {most}, "
        f"(_we - 1)::BIGINT AS _et, 0::BIGINT AS _n FROM ({placed.query}) GROUP BY {listed([*keys, '_ws', '_we'])}) r, "
        f"(VALUES (1), (-1)) s(sign) WHERE {count} <> 3 AND (sign = 1 OR {count} > 1)"
    )
    kinds |= dict.fromkeys((count, least, most), "int")
    made = draft.made(drawn, stream, query, f"{note}, apply to {name}", kinds=kinds, ordered=False)
    return replace(made, timed=placed.kind != "global")


def triggered(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Windows that fire before their end, so that results come in pieces or again and again."""
    if not drawn.timed or "window_start" in drawn.kinds or not (keys := keys_of(draft, drawn)):
        return None
    if not (ints := drawn.of("int")):
        return None
    name, number, values = draft.chance.choice(ints), draft.fresh("m"), draft.fresh("m")
    chance, placed = draft.chance, place(draft, drawn, keys, global_too=False)
    when = chance.choice(("processing", "event"))
    every = chance.choice((1, 7)) * (SECOND if when == "event" else 1_000)
    trigger: Any = chance.choice((wb.triggers.early(f"{every}us", when), _AtMost(chance.randint(1, 3))))
    purging = draft.sometimes(0.5)
    if placed.kind == "session" and purging:
        purging = False  # when a session is told in pieces, each has the bounds of its time
    windowed = placed.stream.key_by(*keys).window(
        placed.window, trigger=wb.triggers.purging(trigger) if purging else trigger
    )
    stream = windowed.aggregate(**{number: wb.count(), values: wb.collect_list(name)})
    draft.story.append(f"   {windowed!r}".partition(";")[0] + f" of {drawn.table}, collect {name}")
    if purging:
        rows = draft.query(f"SELECT {listed(keys)}, make_timestamp(_ws::BIGINT), {name} FROM ({placed.query})")
        sink = draft.sink(stream, drawn.table)
        draft.expected.append(Gathered(sink, (*keys, "window_start"), values, number, rows))
        return []
    plain = stream.select(*keys, "window_start", "window_end", number)
    chosen, _ = _heads(drawn, keys, placed)
    query = (
        f"SELECT {', '.join(chosen)}, count(*) AS {number} FROM ({placed.query}) GROUP BY {listed([*keys, '_ws, _we'])}"
    )
    if placed.kind == "session":  # a changelog, whose table has the last rows only
        sink = draft.fresh("out")
        draft.keep(sink, plain)
        draft.expected.append(Exactly(sink, draft.query(query)))
    else:
        sink = draft.sink(plain, drawn.table)
        draft.expected.append(AtLast(sink, draft.query(query), (*keys, "window_start", "window_end"), number))
    return []


class _AtMost(wb.triggers.Trigger):
    """Fires at the end of the window, and whenever `n` more records are in it."""

    def __init__(self, n: int) -> None:
        self.n = n

    def on_record(
        self, time_us: int, window: wb.windows.Window, context: wb.triggers.TriggerContext
    ) -> wb.triggers.Action:
        context.register_event_timer(window.end - 1)
        seen = context.state.get("seen", 0) + 1
        context.state["seen"] = 0 if seen >= self.n else seen
        return wb.triggers.Action.FIRE if seen >= self.n else wb.triggers.Action.CONTINUE

    def on_event_time(
        self, time_us: int, window: wb.windows.Window, context: wb.triggers.TriggerContext
    ) -> wb.triggers.Action:
        return wb.triggers.Action.FIRE if time_us == window.end - 1 else wb.triggers.Action.CONTINUE

    def on_merge(
        self,
        window: wb.windows.Window,
        context: wb.triggers.TriggerContext,
        absorbed: Sequence[wb.triggers.TriggerContext],
    ) -> None:
        context.state["seen"] = context.state.get("seen", 0) + sum(one.state.get("seen", 0) for one in absorbed)

    def describe(self) -> str:
        return f"at most {self.n}"
