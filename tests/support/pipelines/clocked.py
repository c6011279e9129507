"""Windows in processing time: nobody knows which records meet, but each is in the windows of one moment."""

from __future__ import annotations

from typing import Any

import workbench as wb

from .aggregates import keys_of
from .draft import Draft
from .drawn import Drawn, listed
from .expected import Gathered


def clocked(draft: Draft, drawn: Drawn) -> list[Drawn] | None:
    """Values gathered by tumbling, sliding or session windows of the clock, or by the clock in the global window."""
    if "window_start" in drawn.kinds or not (keys := keys_of(draft, drawn)) or not (ints := drawn.of("int")):
        return None
    name, size = draft.chance.choice(ints), draft.chance.choice((7, 400, 6_000))
    number, values = draft.fresh("m"), draft.fresh("m")
    copies, trigger = 1, None
    kind = draft.chance.choice(("tumbling", "sliding", "session", "global"))
    window: Any = wb.tumbling(f"{size}us")
    if kind == "sliding":
        copies = 3
        window = wb.sliding(f"{size * 3}us", f"{size}us")
    elif kind == "session":
        window = wb.session(f"{size}us")
    elif kind == "global":  # the last results come at the end of the input
        window, trigger = wb.windows.global_window(), wb.triggers.purging(wb.triggers.early(f"{size}us"))
    windowed = drawn.stream.key_by(*keys).window(window, time="processing", trigger=trigger)
    stream = windowed.aggregate(**{number: wb.count(), values: wb.collect_list(name)})
    draft.story.append(f"   {windowed!r}".partition(";")[0] + f" of {drawn.table}, collect {name}")
    rows = draft.query(f"SELECT {listed(keys)}, {name} FROM {drawn.table}, range({copies})")
    draft.expected.append(Gathered(draft.sink(stream, drawn.table), keys, values, number, rows))
    return []
