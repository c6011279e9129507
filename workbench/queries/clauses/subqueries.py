"""IN (SELECT ...), EXISTS and their negations become semi and anti joins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from workbench.errors import PlanError, QueryError
from workbench.expressions import Expression, col, expr, plain_name, when
from workbench.expressions.tree.sql import Tree
from workbench.queries.clauses.join_conditions import conjuncts
from workbench.queries.reading.binding import bound, check_part, key_of
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import free_name, materialized

_EVERY_ROW = "$every"
"""A column with the same value in all rows."""
_GATE = "$gate"
"""The column of values that decide NOT IN for more than one row."""
_NO_MATTER_WHAT, _OF_VALUES = 1, 2


@dataclass(frozen=True)
class Scope:
    """The context in which a subquery is planned.

    Attributes:
        query: plans a subquery to a relation.
        names: the columns of its FROM.
        text: the outer query, for errors.
    """

    query: Callable[[Tree], Relation]
    names: Callable[[Tree], Relation]
    text: Text


def is_nested(condition: Tree) -> bool:
    """Whether a condition contains IN or EXISTS with a subquery.

    Example:
        >>> from sqlglot import parse_one
        >>> is_nested(parse_one("NOT (a IN (SELECT b FROM t))")), is_nested(parse_one("a IN (1, 2)"))
        (True, False)
    """
    inner = _opened(condition)[0]
    return isinstance(inner, exp.Exists) or (isinstance(inner, exp.In) and inner.args.get("query") is not None)


def check_not_nested(condition: Tree, text: Text) -> None:
    """Reject a subquery inside any other condition.

    Raises:
        QueryError: with the places where a subquery is supported.
    """
    for part in condition.walk():
        if isinstance(part, exp.Query | exp.Exists | exp.In):
            check_part(part, text)


def _opened(condition: Tree) -> tuple[Tree, bool]:
    """Strip parentheses and NOT from a condition; also return whether it is negated."""
    negated = False
    while isinstance(condition, exp.Paren | exp.Not):
        negated ^= isinstance(condition, exp.Not)
        condition = condition.this
    return condition, negated


def chosen(rows: Relation, condition: Tree, others: Sequence[Tree], scope: Scope) -> Relation:
    """Keep the rows that satisfy such a condition.

    Args:
        rows: the input.
        condition: see `is_nested`.
        others: the other conditions of WHERE, which can exclude nulls.
        scope: for the subquery.

    Raises:
        QueryError: the subquery, or its reference to the outer rows, is not supported.
    """
    test, negated = _opened(condition)
    rows = materialized(rows, scope.text)
    if isinstance(test, exp.Exists):
        return _exists(rows, test, negated, scope)
    return _in(rows, test, negated, others, scope)


def _exists(rows: Relation, test: Tree, negated: bool, scope: Scope) -> Relation:
    select = _plain_select(test.this, scope.text)
    pairs, rest = _correlated(rows, select, scope)
    inner = _asked(select, [inner for _, inner in pairs], rest, scope)
    outer = [bound(tree, rows, scope.text) for tree, _ in pairs]
    return _joined(rows, outer or [expr("1")], inner, [c.stored or "" for c in inner.columns], negated, test, scope)


def _in(rows: Relation, test: Tree, negated: bool, others: Sequence[Tree], scope: Scope) -> Relation:
    query, text = test.args["query"], scope.text
    values = test.this.expressions if isinstance(test.this, exp.Tuple) else [test.this]
    inside = query.this if isinstance(query, exp.Subquery) and not query.args.get("with_") else query
    pairs, rest = _correlated(rows, inside, scope) if isinstance(inside, exp.Select) else ([], [])
    if pairs:
        select = _plain_select(inside, text)
        inner = _asked(select, [*(inner for _, inner in pairs), *select.expressions], rest, scope)
    else:
        inner = materialized(scope.query(query).numbered(text), text).plain
    there = [column.stored or "" for column in inner.columns]
    count = len(there) - len(pairs)
    if count != len(values):
        raise text.error(
            test, f"IN compares {len(values)} values with {count} columns of its query: select the same number"
        )
    outer = [bound(tree, rows, text) for tree in (*(tree for tree, _ in pairs), *values)]
    if not negated:
        return _joined(rows, outer, inner, there, False, test, scope)
    if len(values) > 1:
        raise text.error(
            test, "NOT IN can compare only one value here: write NOT EXISTS with a condition for each value"
        )
    kept = _joined(rows, outer, inner, there, True, test, scope)
    nulls = _may_be_null(values[0], others), _may_be_null(_selected(inside), conjuncts(_where(inside)))
    return _without_doubts(kept, outer, inner, there, nulls, test, scope)


def _without_doubts(
    rows: Relation,
    outer: list[Expression],
    inner: Relation,
    there: list[str],
    nulls: tuple[bool, bool],
    test: Tree,
    scope: Scope,
) -> Relation:
    """Keep the rows for which NOT IN is true, not null.

    NOT IN is null for a null if there is any value, and for every row once a value is null.
    """
    value, listed = outer[-1], there[-1]
    if not any(nulls):
        return rows
    doubts = []
    if nulls[0]:
        doubts.append(inner.records.select(**{name: col(name) for name in there[:-1]}, **{_GATE: str(_NO_MATTER_WHAT)}))
    if nulls[1]:
        missing = inner.records.filter(col(listed).is_null())
        doubts.append(missing.select(**{name: col(name) for name in there[:-1]}, **{_GATE: str(_OF_VALUES)}))
    gates = doubts[0] if len(doubts) == 1 else doubts[0].union(doubts[1])
    gate = when(value.is_null()).then(expr(str(_NO_MATTER_WHAT)))
    closed = expr(str(_OF_VALUES)) if nulls[1] else expr("CAST(NULL AS INT)")
    asked = [*outer[:-1], gate.otherwise(closed)]
    columns = tuple(Column(None, name, name) for name in (*there[:-1], _GATE))
    return _joined(rows, asked, Relation(gates, columns), [*there[:-1], _GATE], True, test, scope)


def _may_be_null(tree: Tree | None, conditions: Sequence[Tree]) -> bool:
    """Whether no condition excludes nulls."""
    if tree is None:
        return True
    if isinstance(tree, exp.Alias):
        tree = tree.this
    told = [
        condition.this.this
        for condition in conditions
        if isinstance(condition, exp.Not) and isinstance(condition.this, exp.Is)
        and isinstance(condition.this.expression, exp.Null)
    ]  # fmt: skip
    return not isinstance(tree, exp.Literal | exp.Count) and key_of(tree) not in map(key_of, told)


def _selected(query: Tree) -> Tree | None:
    return query.expressions[0] if isinstance(query, exp.Select) and len(query.expressions) == 1 else None


def _where(query: Tree) -> Tree | None:
    where = query.args.get("where")
    return None if where is None else where.this


def _plain_select(tree: Tree, text: Text) -> Tree:
    """The SELECT of EXISTS, or of a correlated subquery."""
    select = tree.this if isinstance(tree, exp.Subquery) else tree
    if not isinstance(select, exp.Select):
        raise text.error(tree, "this condition takes one SELECT: write a separate condition for each, with AND or OR")
    for clause in ("group", "having", "limit"):
        if select.args.get(clause):
            raise text.error(
                select.args[clause], f"{clause.upper()} in a correlated subquery is not supported: join in FROM"
            )
    if any(part.find(exp.AggFunc) for part in select.expressions):
        raise text.error(
            tree, "an aggregate in a correlated subquery is not supported: use GROUP BY and a join in FROM"
        )
    return select


def _correlated(rows: Relation, select: Tree, scope: Scope) -> tuple[list[tuple[Tree, Tree]], list[Tree]]:
    """The pairs of outer and inner values that must be equal, and the conditions on inner rows alone."""
    if not isinstance(select, exp.Select) or select.args.get("from_") is None:
        return [], conjuncts(_where(select))
    offered = scope.names(select)
    pairs: list[tuple[Tree, Tree]] = []
    rest: list[Tree] = []
    for condition in conjuncts(_where(select)):
        if is_nested(condition) or not _outer(condition, offered, rows):
            rest.append(condition)
            continue
        sides = (condition.this, condition.args.get("expression"))
        found = [side is not None and _outer(side, offered, rows) for side in sides]
        mixed = isinstance(condition, exp.EQ) and any(
            _inner(side, offered) for side, outer in zip(sides, found, strict=True) if outer
        )
        if not isinstance(condition, exp.EQ) or all(found) or mixed:
            raise scope.text.error(
                condition,
                "a subquery can refer to the outer query only by equalities, such as b.id = a.id: move other "
                "conditions on the outer rows outside",
            )
        pairs.append((sides[0], sides[1]) if found[0] else (sides[1], sides[0]))
    return pairs, rest


def _outer(tree: Tree, offered: Relation, rows: Relation) -> bool:
    """Whether a part refers to columns of the outer query."""
    return any(not _names(column, offered) and _names(column, rows) for column in tree.find_all(exp.Column))


def _inner(tree: Tree, offered: Relation) -> bool:
    return any(_names(column, offered) for column in tree.find_all(exp.Column))


def _names(column: Tree, rows: Relation) -> bool:
    try:
        rows.of(column, Text(""))
    except QueryError as error:
        return "ambiguous" in error.message
    return True


def _asked(select: Tree, values: list[Tree], conditions: list[Tree], scope: Scope) -> Relation:
    """The rows of a SELECT with its columns and conditions replaced."""
    asked = select.copy()
    items = [value.this if isinstance(value, exp.Alias) else value for value in values] or [exp.Literal.number(1)]
    asked.set("expressions", [exp.alias_(item.copy(), f"{_EVERY_ROW}{at}") for at, item in enumerate(items)])
    asked.set("distinct", None)
    asked.set("where", exp.Where(this=exp.and_(*conditions)) if conditions else None)
    return materialized(scope.query(asked), scope.text)


def _joined(
    rows: Relation,
    values: Sequence[Expression],
    inner: Relation,
    there: Sequence[str],
    negated: bool,
    test: Tree,
    scope: Scope,
) -> Relation:
    """The semi or anti join with the distinct values of the inner rows."""
    stream, added = rows.records, dict[str, Expression]()
    names: list[str] = []
    for value in values:
        name = plain_name(value)
        if name is None or name in names:
            name = free_name(f"${value.sql}", [*stream.columns, *added])
            added[name] = value
        names.append(name)
    try:
        stream = stream.with_columns(**added) if added else stream
        different = inner.records.distinct(*there)
        made = stream.join(different, dict(zip(names, there, strict=True)), how="anti" if negated else "semi")
    except PlanError as error:
        raise scope.text.error(test, error.message) from None
    return replace(rows, stream=made, columns=tuple(replace(column, ahead_us=None) for column in rows.columns))
