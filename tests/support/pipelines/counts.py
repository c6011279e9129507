"""What counts records: count windows, and windows that fire by count; where the stream has one order."""

from __future__ import annotations

from dataclasses import replace

import workbench as wb

from .aggregates import aggregates_of, keys_of, kinds_of, numbered, told
from .draft import Draft
from .drawn import SECOND, Drawn, listed
from .windows import Placed, starts, windows_of

MOST = 3_000
"""No stream has more records of one key than this times four."""


def count_window(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Windows over positions."""
    if not drawn.ordered or "window_start" in drawn.kinds or not (keys := keys_of(draft, drawn)):
        return None
    length = draft.chance.randint(1, 6)
    slide = draft.chance.choice((length, length, draft.chance.randint(1, 6)))
    window = wb.windows.count_tumbling(length) if slide == length else wb.windows.count_sliding(length, slide)
    aggregates = aggregates_of(draft, drawn, holistic=draft.sometimes(0.5))
    stream = drawn.stream.key_by(*keys).window(window).aggregate(**told(aggregates))
    by = listed(keys)
    query = (
        f"SELECT *, w.i * {slide} AS _ws, w.i * {slide} + {length} AS _we FROM ("
        f"SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY _n, _i) - 1 AS _p, "
        f"count(*) OVER (PARTITION BY {by}) AS _c FROM {numbered(drawn.table)}"
        f"), range({MOST // slide + 1}) w(i) "
        f"WHERE _p >= w.i * {slide} AND _p < w.i * {slide} + {length} AND w.i * {slide} + {length} <= _c"
    )
    placed = Placed(drawn.stream, window, query)
    made = windows_of(draft, drawn, stream, keys, aggregates, placed, f"{window.describe()} by {keys}")
    kinds = made.kinds | {"window_start": "int", "window_end": "int"}
    positions = ", ".join(f"epoch_us({name}) AS {name}" for name in ("window_start", "window_end"))
    fixed = f"SELECT * REPLACE ({positions}) FROM {made.table}"
    return [replace(draft.made(made, stream, fixed, "positions", kinds=kinds), timed=False)]


def fired_by_count(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Windows that fire whenever so many further records have come into them."""
    if not (drawn.ordered and drawn.timed) or "window_start" in drawn.kinds or not (keys := keys_of(draft, drawn)):
        return None
    every, purging = draft.chance.randint(1, 4), draft.sometimes(0.5)
    size, last = draft.chance.choice((5, 60)) * SECOND, draft.chance.choice((None, None, 1, 3))
    bounded = draft.sometimes(0.5)
    window = wb.tumbling(f"{size}us") if bounded else wb.windows.global_window()
    trigger = wb.triggers.on_count(every)
    evictor = None if last is None else wb.windows.keep_last(last)
    windowed = drawn.stream.key_by(*keys).window(
        window, trigger=wb.triggers.purging(trigger) if purging else trigger, evictor=evictor
    )
    aggregates = aggregates_of(draft, drawn, holistic=draft.sometimes(0.5))
    stream = windowed.aggregate(**told(aggregates))
    table = numbered(drawn.table)
    places = starts(table, size, size, 0) if bounded else f"SELECT *, 0 AS _ws, 1 AS _we FROM {table}"
    of = f"PARTITION BY {listed([*keys, '_ws', '_we'])}"
    first = f"(f._f - 1) * {every}" if purging else "0"
    if last is not None:
        first = f"greatest({first}, f._f * {every} - {last})"
    chosen = list(keys)
    kinds = {key: drawn.kinds[key] for key in keys}
    if bounded:
        chosen += ["make_timestamp(_ws::BIGINT) AS window_start", "make_timestamp(_we::BIGINT) AS window_end"]
        kinds |= {"window_start": "time", "window_end": "time"}
    chosen += [f"{duck} AS {name}" for name, (_, duck, _) in aggregates.items()]
    kinds |= kinds_of(drawn, (), aggregates)
    query = (
        f"SELECT {', '.join(chosen)}, (_we - 1)::BIGINT AS _et, 0::BIGINT AS _n FROM ("
        f"SELECT *, row_number() OVER ({of} ORDER BY _n, _i) - 1 AS _p, count(*) OVER ({of}) AS _c FROM ({places})"
        f"), range(1, {MOST // every + 1}) f(_f) WHERE f._f * {every} <= _c AND _p < f._f * {every} AND _p >= {first} "
        f"GROUP BY {listed([*keys, '_ws', '_we', '_f'])}"
    )
    note = f"{windowed!r}".partition(";")[0] + f": {[duck for _, duck, _ in aggregates.values()]}"
    return [replace(draft.made(drawn, stream, query, note, kinds=kinds, ordered=False), timed=bounded)]
