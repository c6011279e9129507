"""Top-N and deduplication: ROW_NUMBER() OVER (...) in a subquery, and its condition in the outer query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from workbench.api.streams.ranked import ranked
from workbench.errors import PlanError
from workbench.expressions import Expression, lit, plain_name
from workbench.expressions.tree.sql import Tree
from workbench.operators.changelogs.sortable import Order
from workbench.queries.reading.binding import bound
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Ranking, Relation
from workbench.queries.reading.table_functions import free_name

_FLIPPED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}
_MOST = 100_000
"""The maximum number of rows per key."""


def is_row_number(tree: Tree) -> bool:
    """Whether a part of a query is ``ROW_NUMBER() OVER (...)``."""
    return isinstance(tree, exp.Window) and isinstance(tree.this, exp.RowNumber)


@dataclass(frozen=True)
class Numbered:
    """The ranking of ROW_NUMBER, and the columns that it needs.

    Attributes:
        ranking: the keys and the order.
        added: the columns to compute for it, by name.
    """

    ranking: Ranking
    added: dict[str, Expression]


def numbered(window: Tree, rows: Relation, taken: Sequence[str], text: Text) -> Numbered:
    """Read ``ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...)``.

    Args:
        window: see `is_row_number`.
        rows: the rows to number.
        taken: the column names of the result.
        text: the query, for errors.

    Raises:
        QueryError: a missing order, or unsupported parts.
    """
    if window.args.get("spec") is not None:
        raise text.error(window, "ROW_NUMBER() numbers all rows of its partition: remove ROWS or RANGE")
    order = window.args.get("order")
    if order is None:
        raise text.error(window, "ROW_NUMBER() needs an order: write OVER (PARTITION BY ... ORDER BY ...)")
    added: dict[str, Expression] = {}

    def named(tree: Tree) -> str:
        value = bound(tree, rows, text)
        name = plain_name(value)
        if name is None:
            name = free_name(f"${value.sql}", [*taken, *rows.records.columns, *added])
            added[name] = value
        return name

    keys = tuple(dict.fromkeys(named(tree) for tree in window.args.get("partition_by") or ()))
    orders = []
    for item in order.expressions:
        descending = bool(item.args.get("desc"))
        nulls = item.args.get("nulls_first")
        orders.append(Order(named(item.this), descending, None if nulls is None else bool(nulls)))
    return Numbered(Ranking(keys, tuple(orders), window), added)


def limited(rows: Relation, conditions: Sequence[Tree], read: bool, text: Text) -> tuple[Relation, list[Tree]]:
    """Keep the first rows of each key, by the condition on their number.

    Args:
        rows: with a ranking.
        conditions: of WHERE, connected by AND.
        read: whether the query uses the number elsewhere.
        text: the query, for errors.

    Returns:
        The rows, and the other conditions.

    Raises:
        QueryError: there is no such condition, or it is not an upper bound.
    """
    ranking = rows.ranking
    assert ranking is not None
    number = next(column for column in rows.columns if column.stored is None and column.bound is None)
    limit, rest = None, []
    for condition in conditions:
        found = _limit(condition, number, text)
        if found is None:
            rest.append(condition)
        else:
            limit = found if limit is None else min(limit, found)
    if limit is None:
        return rows.numbered(text), rest
    if not 1 <= limit <= _MOST:
        raise text.error(ranking.call, f"the first {limit} rows are requested: choose 1 to {_MOST}")
    stream = rows.records
    name = free_name(number.name, stream.columns)
    try:
        stream = ranked(stream, ranking.keys, ranking.orders, limit, name if read and limit > 1 else None)
    except PlanError as error:
        raise text.error(ranking.call, error.message) from None
    if limit == 1 and read:
        stream = stream.with_columns(**{name: lit(1).cast("bigint")})
    columns = tuple(replace(column, stored=name) if column is number else column for column in rows.columns)
    return replace(rows, stream=stream, columns=columns if read else _without(columns, number.name), ranking=None), rest


def _without(columns: tuple[Column, ...], name: str) -> tuple[Column, ...]:
    return tuple(column for column in columns if column.name != name)


def _limit(condition: Tree, number: Column, text: Text) -> int | None:
    """The largest number that satisfies a condition such as ``n <= 3``, ``n < 4`` or ``n = 1``; None for other
    conditions."""
    kind, sides = type(condition), (condition.this, condition.args.get("expression"))
    if kind not in _FLIPPED or sides[1] is None:
        return None
    if isinstance(sides[0], exp.Literal):
        kind, sides = _FLIPPED[kind], sides[::-1]
    column, value = sides
    if not (isinstance(column, exp.Column) and isinstance(value, exp.Literal) and not value.is_string):
        return None
    if column.name.lower() != number.name.lower() or column.table.lower() not in ("", (number.table or "").lower()):
        return None
    if not value.name.isdecimal():
        return None
    limit = int(value.name)
    if kind is exp.EQ and limit > 1:
        raise text.error(
            condition, f"ROW_NUMBER() needs an upper limit only: write {number.name} <= {limit}, and filter again"
        )
    if kind is exp.GTE and limit <= 1:
        return _MOST  # always true: numbers start at 1
    if kind in (exp.LTE, exp.EQ):
        return limit
    return limit - 1 if kind is exp.LT else None
