"""GROUP BY: keys, windows and aggregates become a window aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from workbench.errors import PlanError
from workbench.expressions import Expression, compile_expression, expr, plain_name
from workbench.expressions.tree.sql import Tree
from workbench.operators.aggregates import aggregations
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.aggregates.window_functions import AnyAggregation, count_distinct, for_schema
from workbench.operators.changelogs.row_kinds import is_changelog
from workbench.queries.reading.binding import AGGREGATES, bound, bound_condition, check_part, key_of, standing_for
from workbench.queries.reading.dialect import WINDOWS
from workbench.queries.reading.event_time import window_times
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import INSTANT, free_name, intervals_of, with_windows
from workbench.state.key_columns import check_keys
from workbench.windows import WindowAssigner
from workbench.windows.schedule import TimeKind
from workbench.windows.session import Session

Items = Sequence[tuple[str | None, Tree]]
"""The parts of a SELECT list: the alias, if there is one, and the expression."""

_FUNCTIONS = {exp.Count: "count", exp.Sum: "sum", exp.Min: "min", exp.Max: "max", exp.Avg: "mean"}


@dataclass(frozen=True)
class Grouped:
    """The result of GROUP BY.

    Attributes:
        rows: one row per group; its names are those of the keys.
        computed: by the text of a key or an aggregate, the column that holds it.
        items: the SELECT list.
        having: the condition on groups, or None.
    """

    rows: Relation
    computed: Mapping[str, str]
    items: Items
    having: Tree | None


def aggregates_in(trees: Sequence[Tree]) -> list[Tree]:
    """The calls of aggregates, each with its FILTER, except those inside a subquery or OVER."""
    found: list[Tree] = []
    for tree in trees:
        for part in tree.walk(prune=lambda node: isinstance(node, exp.Filter | exp.AggFunc | exp.Query | exp.Window)):
            if isinstance(part, exp.Filter | exp.AggFunc):
                found.append(part)
    return found


def grouped(rows: Relation, select: Tree, items: Items, text: Text) -> Grouped:
    """Aggregate the rows of a SELECT.

    Raises:
        QueryError: groups without a window, a column that is neither a key nor aggregated, or an aggregate that is
            unknown or does not fit.
    """
    group, having = select.args.get("group"), select.args.get("having")
    condition = None if having is None else having.this
    keys = [] if group is None else _keys(rows, group, items, text)
    rows, keys, items, condition = _with_group_window(rows, keys, items, condition, text)
    if condition is not None:
        condition = _without_aliases(condition, rows, items)
    return _aggregated(rows, keys, select if group is None else group, items, condition, text)


def _keys(rows: Relation, group: Tree, items: Items, text: Text) -> list[Tree]:
    """The keys; numbers and aliases refer to parts of the SELECT list."""
    for name, value in group.args.items():
        if value and name != "expressions":
            raise text.error(group, f"GROUP BY {name.upper().replace('_', ' ')} is not supported: list the columns")
    names = {column.name.lower() for column in rows.columns}
    aliases = {alias.lower(): tree for alias, tree in items if alias is not None}
    keys = []
    for tree in group.expressions:
        if isinstance(tree, exp.Literal) and not tree.is_string:
            place = int(tree.name) if tree.name.isdecimal() else 0
            if not 0 < place <= len(items):
                raise text.error(
                    tree, f"GROUP BY {tree.name} is not a position in the SELECT list: use 1 to {len(items)}"
                )
            keys.append(items[place - 1][1])
        elif isinstance(tree, exp.Column) and not tree.table and tree.name.lower() not in names:
            keys.append(aliases.get(tree.name.lower(), tree))
        else:
            keys.append(tree)
    return keys


def _with_group_window(
    rows: Relation, keys: list[Tree], items: Items, having: Tree | None, text: Text
) -> tuple[Relation, list[Tree], Items, Tree | None]:
    """Convert ``GROUP BY TUMBLE(ts, ...)`` to a window table function, and TUMBLE_START(...) to window_start."""
    calls = [key for key in keys if isinstance(key, exp.Anonymous) and key.name.upper() in WINDOWS]
    if not calls:
        return rows, keys, items, having
    call = calls[0]
    if len(calls) > 1 or rows.windows is not None:
        raise text.error(calls[-1], "the rows already have windows: remove one of them")
    rest = [key for key in keys if key is not call]
    time, intervals = intervals_of(call, text)
    by = rest if call.name.upper() == "SESSION" else []
    rows = with_windows(rows, call, time, intervals, by, text)

    def read(tree: Tree) -> Tree:
        return tree.copy().transform(lambda part: _bound_of(part, call, text))

    named = [(alias, read(tree)) for alias, tree in items]
    bounds = [_bound_column("window_start", call), _bound_column("window_end", call)]
    return rows, [*rest, *bounds], named, None if having is None else read(having)


def _bound_of(part: Tree, call: Tree, text: Text) -> Tree:
    """Replace ``TUMBLE_START(...)`` by the column of the bound."""
    if not isinstance(part, exp.Anonymous):
        return part
    name, _, which = part.name.upper().partition("_")
    if name not in WINDOWS or which not in _BOUND_NAMES:
        return part
    same = [key_of(item) for item in part.expressions] == [key_of(item) for item in call.expressions]
    if name != call.name.upper() or not same:
        raise text.error(part, f"{part.sql('spark')} is not the window in GROUP BY: use the same arguments")
    return _bound_column(_BOUND_NAMES[which], part)


_BOUND_NAMES = {"START": "window_start", "END": "window_end", "ROWTIME": "window_time"}


def _bound_column(name: str, at: Tree) -> Tree:
    column = exp.column(name)
    column.this.meta.update(at.meta)
    return column


def _aggregated(
    rows: Relation, keys: list[Tree], group: Tree, items: Items, having: Tree | None, text: Text
) -> Grouped:
    window, bounds, keys = _window(rows, keys, group, text)
    stream = rows.records
    aliases = {key_of(tree): alias for alias, tree in items if alias is not None}
    names: dict[str, str] = {}  # of the key columns, by the key's text
    columns: list[Column] = []
    added: dict[str, Expression] = {}
    for key in keys:
        plain = rows.of(key, text) if isinstance(key, exp.Column) else None
        value = bound(key, rows, text)
        name = plain_name(value)
        if name is None or name in _RESULTS:
            wanted = aliases.get(key_of(key)) or value.sql
            name = free_name(wanted, [*stream.columns, *added, *_RESULTS])
            added[name] = value
        try:
            check_keys([name], pa.schema([(name, compile_expression(value, rows.records.schema).type)]))
        except PlanError as error:
            raise text.error(key, error.message) from None
        names[key_of(key)] = name
        if plain is not None:
            columns.append(replace(plain, stored=name))
    if added:
        stream = stream.with_columns(**added)
    by = list(dict.fromkeys(names.values()))
    computed = dict(names)
    read = [tree for _, tree in items] + ([] if having is None else [having])
    aggregates: dict[str, AnyAggregation] = {}
    for tree in aggregates_in(read):
        key = key_of(tree)
        if key not in computed:
            name = free_name(aliases.get(key) or key.replace("`", ""), [*by, *_RESULTS, *aggregates])
            aggregates[name] = _aggregate(tree, rows, text)
            computed[key] = name
    if not aggregates:
        aggregates[free_name("$rows", by)] = aggregations.count()
    if window is None:
        result = stream.group_by(*by).aggregate(**aggregates)
        return _checked(Relation(result, tuple(columns)), rows, computed, items, having, text)
    time: TimeKind = "processing" if rows.windows is not None and rows.windows.time is None else "event"
    windowed = stream.key_by(*by).window(window, time=time) if by else stream.window(window, time=time)
    result = windowed.aggregate(**aggregates)
    ahead = window_times(window) if time == "event" else {}
    for column in bounds:
        assert column.bound is not None
        if column.bound == "window_time":
            result = result.with_columns(window_time=expr("window_end - INTERVAL '1' MICROSECOND"))
        columns.append(Column(column.table, column.name, column.bound, {**ahead, "window_time": 0}.get(column.bound)))
    return _checked(Relation(result, tuple(columns)), rows, computed, items, having, text)


def _checked(
    after: Relation, rows: Relation, computed: Mapping[str, str], items: Items, having: Tree | None, text: Text
) -> Grouped:
    for tree in [tree for _, tree in items] + ([] if having is None else [having]):
        _check_grouped(tree, rows, after, computed, text)
    return Grouped(after, computed, items, having)


_RESULTS = ("window_start", "window_end", "window_time")


def _window(
    rows: Relation, keys: list[Tree], group: Tree, text: Text
) -> tuple[WindowAssigner | None, list[Column], list[Tree]]:
    """The windows of the groups, or None if records update the groups; the keys that are bounds; and the other keys."""
    named = {id(key): rows.of(key, text) for key in keys if isinstance(key, exp.Column)}
    if rows.windows is None:
        final = any(column.ahead_us is not None for column in named.values()) and not is_changelog(rows.records.schema)
        return INSTANT if final else None, [], keys
    bounds = [column for column in named.values() if column.bound is not None]
    rest = [key for key in keys if id(key) not in named or named[id(key)].bound is None]
    if not {"window_start", "window_end"} <= {column.bound for column in bounds}:
        raise text.error(group, "rows with windows must be grouped by them: add window_start, window_end to GROUP BY")
    windows = rows.windows
    if isinstance(windows.assigner, Session):
        plain = {named[id(key)].stored if id(key) in named else key.sql("spark") for key in rest}
        if plain != set(windows.partition):
            by = ", ".join(key.sql("spark") for key in rest)
            fix = f"write PARTITION BY {by} after the table" if by else "remove PARTITION BY"
            raise text.error(windows.call, f"sessions must have the same keys as GROUP BY: {fix}")
    return windows.assigner, list(dict.fromkeys(bounds)), rest


def _aggregate(tree: Tree, rows: Relation, text: Text) -> AnyAggregation:
    call, where = (tree.this, tree.expression.this) if isinstance(tree, exp.Filter) else (tree, None)
    function = _FUNCTIONS.get(type(call))
    if function is None:
        raise text.error(
            tree,
            f"{text.name_of(call)} is not supported: the aggregates are {', '.join(AGGREGATES)}; for others, call a "
            "Python function with stream.window(...).apply(...)",
        )
    operand = call.this
    if call.args.get("expressions") or operand is None:
        raise text.error(tree, f"{text.name_of(call)} takes one value" + (" or *" if function == "count" else ""))
    if isinstance(operand, exp.Distinct):
        if len(operand.expressions) != 1:
            raise text.error(tree, "DISTINCT takes one value here: combine several values, as in CONCAT(a, ',', b)")
        operand = operand.expressions[0]
        if function in ("sum", "mean"):
            raise text.error(tree, f"{function}(DISTINCT ...) is not supported: aggregate SELECT DISTINCT in FROM")
        if function == "count":
            function = "count_distinct"
    counted = isinstance(operand, exp.Star) or (isinstance(operand, exp.Literal) and function == "count")
    if any(isinstance(part, exp.AggFunc) for part in operand.walk()):
        raise text.error(
            tree, "an aggregate of an aggregate is not supported: compute the inner one in a subquery in FROM"
        )
    made: AnyAggregation
    if counted:
        made = aggregations.count()
    else:
        make = count_distinct if function == "count_distinct" else getattr(aggregations, function)
        value = bound(operand, rows, text)
        made = make(value)
        kind = compile_expression(value, rows.records.schema).type
        try:
            schema = pa.schema([(made.column, kind)])
            for_schema(made, schema).output_type(schema)
        except PlanError as error:
            raise text.error(tree, error.message) from None
    return made if where is None else made.where(bound_condition(where, rows, text))


def check_over(tree: Tree, text: Text) -> None:
    """Refuse functions with OVER that are no aggregates.

    Raises:
        QueryError: with the nearest way.
    """
    if isinstance(tree, exp.Filter) or type(tree) in _FUNCTIONS:
        return
    name = text.name_of(tree)
    fix = _NEAREST.get(name.upper(), f"use {', '.join(AGGREGATES)}")
    raise text.error(tree, f"{name} is not supported with OVER: {fix}")


_NEAREST = {
    **dict.fromkeys(("RANK", "DENSE_RANK", "NTILE"), "use ROW_NUMBER()"),
    **dict.fromkeys(("LAG", "LEAD"), "use MATCH_RECOGNIZE with PREV or NEXT, or for one row per key ROW_NUMBER()"),
    **dict.fromkeys(("FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"), "use ROW_NUMBER() with WHERE n = 1 around it"),
}


def over_aggregate(tree: Tree, rows: Relation, text: Text) -> Aggregation:
    """An aggregate with OVER.

    Raises:
        QueryError: DISTINCT, or a value that cannot be aggregated.
    """
    made = _aggregate(tree, rows, text)
    if not isinstance(made, Aggregation):
        raise text.error(tree, f"{made.describe()} is not supported with OVER: aggregate in a window")
    return made


def _check_grouped(tree: Tree, rows: Relation, after: Relation, computed: Mapping[str, str], text: Text) -> None:
    """Reject columns that are neither keys nor inside an aggregate, including unknown aggregates."""
    standing = standing_for(tree, computed)
    for part in tree.walk(prune=lambda node: id(node) in standing):
        if isinstance(part, exp.Anonymous):
            check_part(part, text)
        if isinstance(part, exp.Column) and id(part) not in standing and not isinstance(part.this, exp.Star):
            column = rows.of(part, text)
            if not any((item.table, item.name) == (column.table, column.name) for item in after.columns):
                raise text.error(
                    part,
                    f"the column {part.name!r} is neither in GROUP BY nor in an aggregate: add it to GROUP BY, or "
                    f"write for example MAX({part.name})",
                )


def _without_aliases(having: Tree, rows: Relation, items: Items) -> Tree:
    """HAVING, with aliases of the SELECT list replaced by their expressions."""
    names = {column.name.lower() for column in rows.columns}
    aliases = {alias.lower(): tree for alias, tree in items if alias is not None and alias.lower() not in names}

    def meant(part: Tree) -> Tree:
        is_alias = isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases
        return aliases[part.name.lower()].copy() if is_alias else part

    return having.copy().transform(meant)
