"""Aggregates OVER (PARTITION BY ... ORDER BY event time ROWS or RANGE ... PRECEDING)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from sqlglot import exp

from workbench.errors import PlanError, unknown
from workbench.expressions import Expression, plain_name
from workbench.expressions.tree.sql import Tree
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.changelogs.row_kinds import is_changelog
from workbench.operators.windows.over import Unit
from workbench.queries.clauses.grouping import check_over, over_aggregate
from workbench.queries.reading.binding import bound, constant_us, key_of
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Relation
from workbench.queries.reading.table_functions import free_name

_CALLS_MAX = 100


def with_named_windows(select: Tree, text: Text) -> Tree:
    """A SELECT in which each ``OVER name`` has the parts that its clause WINDOW gives to the name.

    Raises:
        QueryError: a name that WINDOW does not define.
    """
    if not any(call.args.get("alias") for call in select.find_all(exp.Window)):
        return select
    select = select.copy()
    defined: dict[str, Tree] = {}
    for window in select.args.get("windows") or ():
        _complete(window, defined, text)
        defined[window.name.lower()] = window
    for call in list(select.find_all(exp.Window)):
        if call.parent_select is select and call.args.get("alias"):
            _complete(call, defined, text)
    select.set("windows", None)
    return select


def _complete(window: Tree, defined: Mapping[str, Tree], text: Text) -> None:
    name = window.args.get("alias")
    if name is None:
        return
    if name.name.lower() not in defined:
        raise text.error(name, f"{unknown('window', name.name, defined)}; define it with WINDOW {name.name} AS (...)")
    for part, value in defined[name.name.lower()].args.items():
        if part in ("partition_by", "order", "spec") and not window.args.get(part):
            window.set(part, [one.copy() for one in value] if isinstance(value, list) else value and value.copy())
    window.set("alias", None)


def overs_in(trees: Sequence[Tree]) -> list[Tree]:
    """The aggregates with OVER in parts of a SELECT list, except a plain ROW_NUMBER."""
    found = [part for tree in trees for part in tree.find_all(exp.Window)]
    return [part for part in found if not isinstance(part.this, exp.RowNumber)]


def with_overs(rows: Relation, calls: Sequence[Tree], text: Text) -> tuple[Relation, Mapping[str, str]]:
    """Add a column for each aggregate; also return the columns by the text of their aggregates.

    Raises:
        QueryError: updating rows, an order that is not event time, a frame that does not end at the current row, or
            different windows in one query.
    """
    first = calls[0]
    if len(calls) > _CALLS_MAX:
        raise text.error(
            calls[_CALLS_MAX],
            f"the query has {len(calls)} aggregates with OVER, more than the maximum of {_CALLS_MAX}: use two queries",
        )
    for call in calls:
        check_over(call.this, text)
    changes = is_changelog(rows.records.schema)
    order = first.args.get("order")
    times = [] if order is None else order.expressions
    if len(times) != 1 or times[0].args.get("desc") or not isinstance(times[0].this, exp.Column):
        which = "a column" if changes else "the column of event time"
        raise text.error(first, f"OVER needs ORDER BY {which}, ascending")
    column = rows.of(times[0].this, text)
    if column.ahead_us is None and not changes:
        known = [item.name for item in rows.columns if item.ahead_us is not None]
        fix = f"use {known[0]}" if known else "give the source event_time=..."
        raise text.error(times[0], f"the column {column.name!r} is not the event time of these rows: {fix}")
    unit, preceding = _frame(first, text)
    if changes and unit != "rows":
        raise text.error(
            first,
            "its rows replace earlier ones, so its frames count rows: write ROWS BETWEEN 10 PRECEDING AND CURRENT ROW",
        )
    back = timedelta(microseconds=preceding) if unit == "range" and preceding is not None else preceding
    window = _window_of(first)
    added: dict[str, Expression] = {}
    keys: list[str] = []
    for part in first.args.get("partition_by") or ():
        value = bound(part, rows, text)
        name = plain_name(value)
        if name is None:
            name = free_name(f"${value.sql}", [*rows.records.columns, *added])
            added[name] = value
        keys.append(name)
    stream = rows.records.with_columns(**added) if added else rows.records
    aggregates: dict[str, Aggregation] = {}
    computed: dict[str, str] = {}
    for call in calls:
        if _window_of(call) != window:
            raise text.error(
                call, "OVER has a different window than the aggregate before it: use the same window, or two queries"
            )
        key = key_of(call)
        if key not in computed:
            name = free_name(f"${call.this.sql('spark')}", [*stream.columns, *aggregates])
            aggregates[name] = over_aggregate(call.this, rows, text)
            computed[key] = name
    try:
        made = stream.over(keys, unit, back, aggregates, column.stored if changes else None)
    except PlanError as error:
        raise text.error(first, error.message) from None
    return replace(rows, stream=made), computed


def _window_of(call: Tree) -> tuple[str, ...]:
    parts = (*(call.args.get("partition_by") or ()), call.args.get("order"), call.args.get("spec"))
    return tuple("" if part is None else key_of(part) for part in parts)


def _frame(call: Tree, text: Text) -> tuple[Unit, int | None]:
    spec = call.args.get("spec")
    if spec is None:
        return "range", None
    start, unit = spec.args.get("start"), str(spec.args.get("kind") or "").upper()
    if (
        str(spec.args.get("end") or "CURRENT ROW").upper() != "CURRENT ROW"
        or spec.args.get("start_side") != "PRECEDING"
    ):
        raise text.error(call, "a frame must end at the current row: write ROWS BETWEEN 10 PRECEDING AND CURRENT ROW")
    if str(start).upper() == "UNBOUNDED":
        return ("rows" if unit == "ROWS" else "range"), None
    if unit == "ROWS":
        if not (isinstance(start, exp.Literal) and not start.is_string and start.name.isdecimal()):
            raise text.error(call, "ROWS needs a number of rows: write ROWS BETWEEN 10 PRECEDING AND CURRENT ROW")
        return "rows", int(start.name)
    if not isinstance(start, exp.Expression):
        raise text.error(
            call, "RANGE needs a duration: write RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
        )
    return "range", constant_us(start, text)
