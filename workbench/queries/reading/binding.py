"""Binds the names in a query's expressions to the columns of a stream."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from workbench.errors import ExpressionError, unknown
from workbench.expressions import Expression, compile_expression
from workbench.expressions.evaluation.compiling import FUNCTIONS
from workbench.expressions.tree.expression import identifier
from workbench.expressions.tree.sql import Tree
from workbench.expressions.tree.types import type_name
from workbench.queries.reading.dialect import WINDOWS
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Relation

AGGREGATES = ("avg", "count", "max", "min", "sum")
"""The aggregate functions of a query."""

_CLOCK = (
    "the clock is not supported, because it gives another value when a record is processed again: use the event time, "
    "or PROCTIME() for windows in processing time"
)
_CHANCE = (
    "random values are not supported, because a record that is processed again gets another one: compute them from "
    "its columns"
)
_UNFIT = {
    exp.CurrentTimestamp: _CLOCK,
    exp.CurrentDate: _CLOCK,
    exp.Rand: _CHANCE,
    exp.Uuid: _CHANCE,
    exp.Window: "OVER belongs in the SELECT list: filter by its value in an outer query",
    exp.Subquery: "a subquery inside an expression is not supported: join with it in FROM",
    exp.Select: "a subquery inside an expression is not supported: join with it in FROM",
    exp.Exists: "EXISTS is supported only in WHERE, alone or connected by AND: elsewhere, join with the other table "
    "in FROM",
    exp.In: "IN (SELECT ...) is supported only in WHERE, alone or connected by AND: elsewhere, join with the "
    "subquery in FROM",
    exp.Placeholder: "parameters are not supported: write the value",
    exp.Parameter: "parameters are not supported: write the value",
}


def bound(tree: Tree, relation: Relation, text: Text, computed: Mapping[str, str] | None = None) -> Expression:
    """Bind an expression to the columns of a relation's stream.

    Args:
        tree: the parsed expression; it is not changed.
        relation: the names that it can use.
        text: the query, for errors.
        computed: by the SQL text of a part, the column that holds its value.

    Raises:
        QueryError: an unknown name or function, or unsuitable types; with a caret below the part.
    """
    whole = exp.Paren(this=tree.copy())  # so that the outermost part can be replaced as well
    standing = standing_for(whole, computed or {})
    for part in list(whole.walk(prune=lambda node: id(node) in standing)):
        if (column := standing.get(id(part))) is not None:
            part.replace(exp.Column(this=identifier(column)))
        elif isinstance(part, exp.Column) and not isinstance(part.this, exp.Star):
            part.replace(exp.Column(this=identifier(relation.value_of(part, text))))
        else:
            check_part(part, text)
    expression = Expression(whole.this)
    try:
        compile_expression(expression, relation.records.schema)
    except ExpressionError as error:
        reason = error.message.partition(f"{expression.sql!r}: ")[2] or error.message
        raise text.error(tree, reason) from None
    return expression


def bound_condition(
    tree: Tree, relation: Relation, text: Text, computed: Mapping[str, str] | None = None
) -> Expression:
    """Bind a condition on rows.

    Raises:
        QueryError: as for `bound`, or the expression is not boolean.
    """
    expression = bound(tree, relation, text, computed)
    kind = compile_expression(expression, relation.records.schema).type
    if not pa.types.is_boolean(kind):
        raise text.error(tree, f"the condition has the type {type_name(kind)}: compare it with a value")
    return expression


def check_part(part: Tree, text: Text) -> None:
    """Reject parts that are not valid in an expression on one row.

    Raises:
        QueryError: an aggregate, a query, or an unknown function; with the nearest name.
    """
    for kind, message in _UNFIT.items():
        if isinstance(part, kind) and (kind is not exp.In or part.args.get("query") is not None):
            raise text.error(part, message)
    if isinstance(part, exp.AggFunc):
        raise text.error(
            part,
            f"{part.sql('spark')} is an aggregate: use it in SELECT or HAVING of a query with GROUP BY",
        )
    if isinstance(part, exp.Anonymous):
        name = str(part.name)
        window = name.upper().partition("_")[0]
        if window in WINDOWS:
            raise text.error(part, f"{name} is a window function: use it in FROM, or with GROUP BY {window}(...)")
        if name.lower() not in FUNCTIONS:
            raise text.error(part, unknown("function", name.lower(), (*FUNCTIONS, *AGGREGATES)))


def standing_for(tree: Tree, computed: Mapping[str, str]) -> dict[int, str]:
    """By the id of each part whose value a column holds, this column.

    Args:
        tree: an expression.
        computed: by the SQL text of a part, see `key_of`, the column that holds its value.
    """
    longest = max(map(len, computed), default=0)
    sizes: dict[int, int] = {}
    found = {}
    for part in reversed(list(tree.walk())):  # each part after the parts within it
        size = sizes.get(id(part), 0) + 1
        if part.parent is not None:
            sizes[id(part.parent)] = sizes.get(id(part.parent), 0) + size
        if size <= longest and (column := computed.get(key_of(part))) is not None:  # each part has a letter
            found[id(part)] = column
    return found


def key_of(tree: Tree) -> str:
    """A text that is equal for equal parts of a query, regardless of case and quotation marks.

    Example:
        >>> from sqlglot import parse_one
        >>> key_of(parse_one("Sum(`a`)", read="spark")) == key_of(parse_one("SUM(a)", read="spark"))
        True
    """
    return str(tree.sql("spark", normalize_functions="upper", identify=True))


def constant_us(tree: Tree, text: Text) -> int:
    """The microseconds of a constant interval, such as ``INTERVAL '10' SECOND`` or ``INTERVAL '1 hour'``.

    Raises:
        QueryError: not a constant interval, or one in months or years, which have no fixed length.
    """
    if not isinstance(tree, exp.Interval):
        raise text.error(tree, f"{tree.sql('spark')} is not an interval: write INTERVAL '10' SECOND")
    amount, unit = str(tree.name), str(tree.args.get("unit") or "")
    if not unit:
        amount, _, unit = amount.strip().partition(" ")
    length = _UNIT_US.get(unit.upper().removesuffix("S"))
    try:
        number = int(amount)
    except ValueError:
        number = None
    if length is None or number is None:
        raise text.error(
            tree,
            f"{tree.sql('spark')} is not a fixed duration: write INTERVAL '10' SECOND, a whole number of "
            f"{', '.join(_UNIT_US)}",
        )
    return number * length


_UNIT_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
