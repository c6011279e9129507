"""Draws one pipeline: sources, some operators, and a sink at every open end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.api.running.pipeline import Pipeline

from . import aggregates, changelogs, clocked, counts, exchanges, joins, late, processes, records, several, windows
from .draft import Draft
from .drawn import Drawn
from .sources import source

Operator = Callable[[Draft, Drawn], list[Drawn] | None]
"""Gives the streams that go on; None: it does not fit this stream."""

OPERATORS: dict[Operator, int] = {
    records.filtered: 4,
    records.with_columns: 4,
    records.selected: 2,
    records.mapped: 1,
    records.map_batches: 1,
    records.flat_mapped: 1,
    records.column_functions: 2,
    records.timestamps: 1,
    exchanges.exchanged: 3,
    several.united: 2,
    several.connected: 1,
    several.co_processed: 2,
    several.parted: 1,
    joins.lookup_join: 2,
    joins.lookup_async: 2,
    joins.window_join: 4,
    joins.interval_join: 3,
    aggregates.rolling: 2,
    aggregates.reduced: 2,
    aggregates.over_time: 2,
    aggregates.counted_by_process: 1,
    changelogs.updated_groups: 2,
    changelogs.top_rows: 2,
    changelogs.distinct_values: 1,
    changelogs.joined: 2,
    changelogs.flagged: 2,
    windows.time_window: 7,
    windows.triggered: 3,
    counts.count_window: 6,
    counts.fired_by_count: 6,
    clocked.clocked: 2,
    processes.timed_process: 3,
    processes.held: 1,
}
"""How often each is drawn, compared with the others."""

STATELESS: dict[Operator, int] = {
    operator: often
    for operator, often in OPERATORS.items()
    if operator.__module__ in {records.__name__, exchanges.__name__} or operator in {several.united, several.parted}
}
"""Those of which a record that is processed twice gives its rows twice, and changes no others."""


def draw(draft: Draft, most: int, table: Mapping[Operator, int] = OPERATORS) -> Pipeline:
    """A pipeline of up to `most` operators out of the table; its rows are in ``draft.expected``."""
    ends = [source(draft)]
    operators, weights = list(table), list(table.values())
    for _ in range(draft.chance.randint(1, most) if most else 0):
        at = draft.chance.randrange(len(ends))
        drawn = ends[at]
        made = draft.chance.choices(operators, weights)[0](draft, drawn)
        if made is None:
            continue
        if draft.sometimes(0.15):
            draft.end(drawn)
        ends[at : at + 1] = [draft.with_parallelism(end) for end in made]
        if not ends:
            break
    for end in ends:
        draft.end(end)
    if draft.sometimes(0.15):
        late.late_records(draft)
    return draft.pipeline()
