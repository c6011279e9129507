"""The SELECT list: groups, aggregates and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from workbench.api.streams.stream import Stream
from workbench.errors import unknown
from workbench.expressions import Expression, col, plain_name
from workbench.expressions.tree.sql import Tree
from workbench.operators.changelogs.row_kinds import KIND
from workbench.queries.clauses.grouping import Items, aggregates_in, grouped
from workbench.queries.clauses.overs import overs_in, with_overs
from workbench.queries.clauses.ranking import is_row_number, numbered
from workbench.queries.reading.binding import bound, bound_condition, key_of
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import free_name, is_clock, materialized


def projected(rows: Relation, tree: Tree, text: Text) -> Relation:
    """The columns of the SELECT list, after GROUP BY and HAVING if the query has them.

    Raises:
        QueryError: an unknown or unsuitable expression, or two columns with the same name.
    """
    if not tree.expressions:
        raise text.error(tree, "SELECT has no columns: name them, or write SELECT *")
    items: Items = [
        (item.alias, item.this) if isinstance(item, exp.Alias) else (None, item) for item in tree.expressions
    ]
    computed: Mapping[str, str] = {}
    having = tree.args.get("having")
    trees = [part for _, part in items] + ([] if having is None else [having.this])
    if tree.args.get("group") is not None or aggregates_in(trees):
        done = grouped(rows, tree, items, text)
        rows, computed, items = done.rows, done.computed, done.items
        if done.having is not None:
            rows = replace(rows, stream=rows.records.filter(bound_condition(done.having, rows, text, computed)))
    elif having is not None:
        raise text.error(having, "HAVING needs GROUP BY: use WHERE for single rows")
    return _chosen(rows, items, computed, text)


def _chosen(rows: Relation, items: Items, computed: Mapping[str, str], text: Text) -> Relation:
    """The SELECT list."""
    stars = [part for _, part in items if is_star(part)]
    clocks = [alias for alias, part in items if alias is not None and is_clock(part)]
    items = [(alias, part) for alias, part in items if not is_clock(part)]
    numbers = [(alias, part) for alias, part in items if is_row_number(part)]
    items = [(alias, part) for alias, part in items if not is_row_number(part)]
    read = [part for _, part in items if not is_star(part) and key_of(part) not in computed]
    read += [part for _, number in numbers for part in number.find_all(exp.Column)]
    if rows.windows is not None and (stars or any(c.bound is not None for c in rows.stored(read, text))):
        rows = materialized(rows, text)
    if calls := overs_in([part for _, part in items]):
        rows, made = with_overs(rows, calls, text)
        computed = {**computed, **made}
    chosen: dict[str, Expression] = {}
    columns: list[Column] = []
    for alias, part in items:
        for name, value, ahead in _values(rows, alias, part, computed, text):
            if name in chosen:
                raise text.error(part, f"two columns are named {name!r}: rename one with AS")
            chosen[name] = value
            columns.append(Column(None, name, name, ahead))
    columns += [Column(None, alias, None, None, "proctime") for alias in clocks]
    if numbers:
        return _numbered(rows, chosen, columns, numbers, text)
    return Relation(selected(rows, chosen), tuple(columns))


def _numbered(
    rows: Relation,
    chosen: dict[str, Expression],
    columns: list[Column],
    numbers: list[tuple[str | None, Tree]],
    text: Text,
) -> Relation:
    """The columns of the SELECT list, and additional columns for ROW_NUMBER."""
    alias, call = numbers[0]
    if len(numbers) > 1 or alias is None:
        raise text.error(call, "a query can have one ROW_NUMBER(), with a name: add AS row_number")
    made = numbered(call, rows, list(chosen), text)
    stored = {plain_name(value): name for name, value in reversed(chosen.items())}
    places: dict[str, str] = {}
    for name in (*made.ranking.keys, *(order.column for order in made.ranking.orders)):
        if name in made.added:
            chosen[name] = made.added[name]
            places[name] = name
        elif name in stored:
            places[name] = stored[name]
        elif name not in places:
            places[name] = free_name(f"${name}", [*chosen, *rows.records.columns])
            chosen[places[name]] = col(name)
    orders = tuple(replace(order, column=places[order.column]) for order in made.ranking.orders)
    ranking = replace(made.ranking, keys=tuple(places[key] for key in made.ranking.keys), orders=orders)
    number = Column(None, alias, None)
    return Relation(selected(rows, chosen), (*columns, number), ranking=ranking)


def _values(
    rows: Relation, alias: str | None, part: Tree, computed: Mapping[str, str], text: Text
) -> list[tuple[str, Expression, int | None]]:
    if is_star(part):
        table = part.table if isinstance(part, exp.Column) else ""
        if any(value for key, value in (part.this if table else part).args.items() if key != "this"):
            raise text.error(part, "* with EXCEPT, REPLACE or RENAME is not supported: name the columns")
        among = [c for c in rows.columns if c.bound != "proctime"]
        among = [c for c in among if (c.table or "").lower() == table.lower() or not (table or c.qualified)]
        if not among:
            raise text.error(part, unknown("table", table, rows.tables))
        return [(c.name, col(c.stored or ""), c.ahead_us) for c in among]
    value = bound(part, rows, text, computed)
    stored = plain_name(value)
    ahead = next((c.ahead_us for c in rows.columns if c.stored == stored), None)
    name = alias or (part.name if isinstance(part, exp.Column) else computed.get(key_of(part), value.sql))
    return [(name, value, ahead)]


def is_star(tree: Tree) -> bool:
    """Whether a part of the SELECT list is ``*`` or ``t.*``."""
    return isinstance(tree, exp.Star) or (isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star))


def selected(rows: Relation, chosen: Mapping[str, Expression]) -> Stream:
    """Select these columns; the same stream if it already has exactly them."""
    stream = rows.records
    if list(chosen) == [name for name in stream.columns if name != KIND] and all(
        plain_name(value) == name for name, value in chosen.items()
    ):
        return stream
    return stream.select(**chosen)
