"""UNION ALL and DISTINCT."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from workbench.api.streams.stream import Stream
from workbench.errors import PlanError
from workbench.expressions import Expression, col
from workbench.expressions.tree.sql import Tree
from workbench.expressions.tree.types import CAST_TYPES, common_type, operand_type, type_name
from workbench.queries.clauses.projecting import selected
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import materialized


def united(left: Relation, right: Relation, tree: Tree, text: Text) -> Relation:
    """The rows of UNION or UNION ALL, with the column names of the left side.

    Raises:
        QueryError: other numbers of columns, or types without a common one.
    """
    rows = all_rows(left, right, tree, text)
    return distinct(rows, tree, text) if tree.args.get("distinct", True) else rows


def all_rows(left: Relation, right: Relation, tree: Tree, text: Text) -> Relation:
    """The rows of both sides, with the column names of the left one.

    Args:
        left: rows.
        right: the rows of `tree`'s expression.
        tree: UNION, or the second INSERT INTO the same table.
        text: of the query.

    Raises:
        QueryError: other numbers of columns, or types without a common one.
    """
    left, right = (materialized(side.numbered(text), text).plain for side in (left, right))
    if len(left.columns) != len(right.columns):
        raise text.error(
            tree.expression,
            f"the sides of {_named(tree)} have {len(left.columns)} and {len(right.columns)} columns: select the same "
            "number",
        )
    kinds = [_common(*pair, left, right, tree, text) for pair in zip(left.columns, right.columns, strict=True)]
    names = [column.name for column in left.columns]
    sides = [_cast(side, names, kinds) for side in (left, right)]
    columns = tuple(
        Column(None, one.name, one.name, one.ahead_us if one.ahead_us == other.ahead_us else None)
        for one, other in zip(left.columns, right.columns, strict=True)
    )
    return Relation(sides[0].union(sides[1]), columns)


def _named(tree: Tree) -> str:
    return "two INSERT INTO one table" if isinstance(tree, exp.Insert) else "UNION ALL"


def _common(one: Column, other: Column, left: Relation, right: Relation, tree: Tree, text: Text) -> pa.DataType:
    kinds = [side.records.schema.field(item.stored).type for side, item in ((left, one), (right, other))]
    if kinds[0] == kinds[1]:
        return kinds[0]
    kind = common_type(*map(operand_type, kinds))
    if kind is None or kind not in CAST_TYPES.values():
        raise text.error(
            tree.expression,
            f"the column {one.name!r} is {type_name(kinds[0])} on one side of {_named(tree)} and {type_name(kinds[1])} "
            "on the other: CAST one side",
        )
    return kind


def _cast(side: Relation, names: list[str], kinds: list[pa.DataType]) -> Stream:
    schema = side.records.schema
    chosen: dict[str, Expression] = {}
    for column, name, kind in zip(side.columns, names, kinds, strict=True):
        value = col(column.stored or "")
        chosen[name] = value if schema.field(column.stored).type == kind else value.cast(type_name(kind))
    return selected(side, chosen)


def distinct(rows: Relation, tree: Tree, text: Text) -> Relation:
    """Each row once.

    Raises:
        QueryError: DISTINCT ON, or values that cannot be compared.
    """
    if isinstance(tree.args.get("distinct"), exp.Distinct) and tree.args["distinct"].args.get("on") is not None:
        raise text.error(tree, "DISTINCT ON is not supported: use ROW_NUMBER() OVER (PARTITION BY ...)")
    try:
        return replace(rows, stream=rows.records.distinct(*(column.stored or "" for column in rows.plain.columns)))
    except PlanError as error:
        raise text.error(tree, error.message) from None
