"""The text of an expression for Spark, where an overflow or a failed conversion is null as in the kernel.

Spark's own ``+`` and ``CAST`` wrap around without ANSI mode, and raise with it; its ``try_`` functions give null.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from workbench.errors import ExpressionError
from workbench.expressions import Expression, compile_expression
from workbench.expressions.tree.sql import Tree, render
from workbench.expressions.tree.types import type_name

_TRIED = {exp.Add: "TRY_ADD", exp.Sub: "TRY_SUBTRACT", exp.Mul: "TRY_MULTIPLY"}


def spark_text(expression: Expression, schema: pa.Schema) -> str:
    """Spark SQL text whose values are those of the kernel.

    Args:
        expression: the expression.
        schema: of the rows.

    Example:
        >>> from workbench.expressions import col
        >>> spark_text(col("n") * 4, pa.schema({"n": pa.int64()}))
        'TRY_MULTIPLY(n, 4)'
    """
    tree = expression.tree
    made = _double(tree.copy()) if _is_point(tree) else _tried(tree, schema)
    return render(made)


def _tried(tree: Tree, schema: pa.Schema) -> Tree:
    made = tree.copy()
    if isinstance(tree, exp.Literal):
        return made
    for name, part in tree.args.items():
        if isinstance(part, exp.Expression):
            made.set(name, _tried(part, schema))
        elif isinstance(part, list):
            made.set(name, [_tried(one, schema) if isinstance(one, exp.Expression) else one for one in part])
    kind = type(tree)
    if not isinstance(tree, exp.Predicate | exp.Alias | exp.Paren) and _is_floating(tree, schema):
        made = _with_doubles(tree, made)
    if isinstance(tree, exp.Cast):
        wanted = exp.var(render(tree.args["to"]))  # the generator would write TRY_CAST as CAST
        return exp.Anonymous(this="TRY_CAST", expressions=[exp.Alias(this=made.this, alias=wanted)])
    if kind in _TRIED and not _is_floating(tree, schema):
        return exp.Anonymous(this=_TRIED[kind], expressions=[_bare(made.this), _bare(made.expression)])
    if kind is exp.Neg and not isinstance(tree.this, exp.Literal) and (zero := _zero(tree, schema)) is not None:
        return _minus(zero, made.this)
    if kind is exp.Abs and (zero := _zero(tree, schema)) is not None:
        test = exp.LT(this=exp.Paren(this=made.this.copy()), expression=exp.Literal.number(0))
        return exp.If(this=test, true=_minus(zero, made.this.copy()), false=made.this)
    if kind is exp.IntDiv and not isinstance(tree.expression, exp.Literal):
        lone = exp.EQ(this=exp.Paren(this=made.expression.copy()), expression=exp.Literal.number(-1))
        zero = exp.cast(exp.Literal.number(0), "bigint", dialect="spark")
        return exp.Paren(this=exp.If(this=lone, true=_minus(zero, made.this.copy()), false=made))
    return made


def _with_doubles(tree: Tree, made: Tree) -> Tree:
    """Literals with a point as the doubles that they are in the kernel; among themselves, both compute exactly."""
    if all(isinstance(part, exp.Literal) or _is_point(part) for part in tree.iter_expressions()):
        return made
    for branch in (made, *(made.args.get("ifs") or ())):
        for name, part in list(branch.args.items()):
            if isinstance(part, list):
                branch.set(name, [_double(one) if _is_point(one) else one for one in part])
            elif _is_point(part):
                branch.set(name, _double(part))
    return made


def _is_point(part: Any) -> bool:
    if isinstance(part, exp.Neg):
        return _is_point(part.this)
    return isinstance(part, exp.Literal) and not part.is_string and "." in part.name


def _double(literal: Tree) -> Tree:
    return exp.cast(literal, "double", dialect="spark")


def _minus(zero: Tree, value: Tree) -> Tree:
    return exp.Anonymous(this="TRY_SUBTRACT", expressions=[zero, _bare(value)])


def _bare(tree: Tree) -> Tree:
    return tree.this if isinstance(tree, exp.Paren) else tree


def _type(tree: Tree, schema: pa.Schema) -> Any:
    """The type of a part; null if it has none on its own."""
    try:
        return compile_expression(Expression(tree), schema).type
    except ExpressionError:
        return pa.null()


def _is_floating(tree: Tree, schema: pa.Schema) -> bool:
    return bool(pa.types.is_floating(_type(tree, schema)))


def _zero(tree: Tree, schema: pa.Schema) -> Tree | None:
    """The zero of a whole number's type; None for other types."""
    kind = _type(tree, schema)
    if not pa.types.is_integer(kind):
        return None
    return exp.cast(exp.Literal.number(0), type_name(kind), dialect="spark")
