"""Comparisons, membership and three-valued logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from workbench.expressions.evaluation.casts import cast, widen
from workbench.expressions.evaluation.deciding import logic
from workbench.expressions.evaluation.decimals import rounded
from workbench.expressions.evaluation.float_order import compare_floats, may_be_nan, with_both_zeros
from workbench.expressions.tree.node import Datum, Node, apply, call, constant
from workbench.expressions.tree.scope import Scope
from workbench.expressions.tree.sql import Tree, render
from workbench.expressions.tree.types import common_type, decimal_type, is_number, is_time, type_name

_BOOL = pa.bool_()
_COMPARABLE = (is_number, is_time, pa.types.is_string, pa.types.is_boolean, pa.types.is_binary, pa.types.is_null)


def unify(scope: Scope, nodes: Sequence[Node], problem: str, *, compared: bool = False) -> list[Node]:
    """All nodes converted to their common type; constant text becomes a time if the other side is one.

    Args:
        scope: of the compilation.
        nodes: the operands.
        problem: what is impossible without a common type, for example ``cannot compare``.
        compared: whether the values are only compared, and not part of the result.
    """
    nodes = _as_written(_read_times(scope, nodes), compared)
    target, holder = nodes[0].type, nodes[0]
    for node in nodes[1:]:
        common = common_type(target, node.type)
        if common is None:
            raise _mismatch(scope, holder, node, problem)
        if common != target:
            target, holder = common, node
    if pa.types.is_decimal(target):
        target = _narrower(nodes, target) if compared else target
        if pa.types.is_decimal256(target) and not compared:
            raise scope.error(
                f"{problem} {nodes[0].text} ({type_name(nodes[0].type)}) and {holder.text} ({type_name(holder.type)}): "
                f"both together need {target.precision} digits, and a decimal has at most 38; convert one, for example "
                f"CAST({nodes[0].text} AS double)"
            )
    return [widen(node, target) for node in nodes]


def _narrower(nodes: Sequence[Node], target: pa.DataType) -> pa.DataType:
    """The type of the operands that vary, if the constants fit into it as well: then no column is converted."""
    varying = [node.type for node in nodes if node.constant is None]
    if not varying or any(kind != varying[0] for kind in varying) or not pa.types.is_decimal(varying[0]):
        return target
    for node in nodes:
        value = None if node.constant is None else node.constant.as_py()
        if value is not None and rounded(Decimal(value), varying[0]) != value:
            return target
    return varying[0]


def _as_written(nodes: Sequence[Node], compared: bool) -> list[Node]:
    """Literals with a point as the decimals that they are written as, where they meet decimals and no floats.

    A bigint is compared with such a literal as a double if that cannot change the result.
    """
    kinds = [decimal_type(node.type) for node in nodes]
    if any(
        kind is None and node.exact is None and not pa.types.is_null(node.type)
        for node, kind in zip(nodes, kinds, strict=True)
    ):
        return list(nodes)
    exact = any(pa.types.is_decimal(node.type) for node in nodes) or (
        compared and any(node.type == pa.int64() for node in nodes) and any(_moves(node) for node in nodes)
    )
    return [
        constant(node.exact, node.text) if exact and kind is None and node.exact is not None else node
        for node, kind in zip(nodes, kinds, strict=True)
    ]


def _moves(literal: Node) -> bool:
    """Whether a bigint may be on another side of the double that is nearest to a literal than of the literal."""
    if literal.exact is None or literal.constant is None or not pa.types.is_floating(literal.type):
        return False
    value, nearest = literal.exact.as_py(), literal.constant.as_py()
    return bool(abs(nearest) >= 2**53 or (nearest.is_integer() and value != int(nearest)))


def _read_times(scope: Scope, nodes: Sequence[Node]) -> list[Node]:
    times = [node for node in nodes if is_time(node.type)]
    if not times:
        return list(nodes)
    time = next((node for node in times if pa.types.is_timestamp(node.type)), times[0])
    wanted = pa.date32() if pa.types.is_date(time.type) else pa.timestamp("us", time.type.tz)
    read = []
    for node in nodes:
        if node.constant is not None and pa.types.is_string(node.type) and node.constant.is_valid:
            converted = cast(node, wanted, node.text)
            if converted is None or converted.constant is None or not converted.constant.is_valid:
                raise scope.error(
                    f"{node.text} is compared with {time.text} ({type_name(time.type)}) but is not a time: "
                    "write it as '2013-01-31 06:00:00'"
                )
            node = converted
        read.append(node)
    return read


def _mismatch(scope: Scope, left: Node, right: Node, problem: str) -> Exception:
    # The likely mistake is on the text side: it contains numbers, or should have been quoted.
    odd, other = (left, right) if pa.types.is_string(left.type) else (right, left)
    return scope.error(
        f"{problem} {left.text} ({type_name(left.type)}) and {right.text} ({type_name(right.type)}): "
        f"convert one, for example CAST({odd.text} AS {type_name(other.type)})"
    )


def _comparison(kernel: str) -> Callable[[Scope, Tree], Node]:
    def build(scope: Scope, tree: Tree) -> Node:
        return _compare(scope, kernel, scope.node(tree.this), scope.node(tree.expression), render(tree))

    return build


def _compare(scope: Scope, kernel: str, left: Node, right: Node, text: str) -> Node:
    nan = may_be_nan(left), may_be_nan(right)
    left, right = unify(scope, [left, right], "cannot compare", compared=True)
    if not any(test(left.type) for test in _COMPARABLE):
        raise scope.error(
            f"cannot compare values of type {type_name(left.type)} in {text}: use map to extract values from them first"
        )
    if pa.types.is_null(left.type):
        return constant(pa.scalar(None, _BOOL), text)
    if pa.types.is_floating(left.type):
        return compare_floats(kernel, left, right, nan, text)
    return apply(kernel, [left, right], _BOOL, text)


def _null_safe(scope: Scope, tree: Tree) -> Node:
    left, right = scope.node(tree.this), scope.node(tree.expression)
    equal = _compare(scope, "equal", left, right, render(tree))
    known = apply("coalesce", [equal, constant(pa.scalar(False), "")], _BOOL, "")
    both_null = apply("and", [apply("is_null", [left], _BOOL, ""), apply("is_null", [right], _BOOL, "")], _BOOL, "")
    return apply("or", [known, both_null], _BOOL, render(tree))


def _null_safe_unequal(scope: Scope, tree: Tree) -> Node:
    return apply("invert", [_null_safe(scope, tree)], _BOOL, render(tree))


def _between(scope: Scope, tree: Tree) -> Node:
    value, text = scope.node(tree.this), render(tree)
    low = _compare(scope, "greater_equal", value, scope.node(tree.args["low"]), text)
    high = _compare(scope, "less_equal", value, scope.node(tree.args["high"]), text)
    return apply("and_kleene", [low, high], _BOOL, text)


def _in(scope: Scope, tree: Tree) -> Node:
    text = render(tree)
    if tree.args.get("query") or tree.args.get("unnest") or tree.args.get("field"):
        raise scope.error(f"{text} contains a subquery, which is not supported: pass a list of values, or use join")
    nodes = [scope.node(part) for part in (tree.this, *tree.expressions)]
    value, *items = unify(scope, nodes, "cannot compare", compared=True)
    if pa.types.is_null(value.type):
        return constant(pa.scalar(None, _BOOL), text)
    listed = [item.constant for item in items if item.constant is not None]
    if len(listed) < len(items) or pa.types.is_decimal256(value.type):
        return _any_equal(scope, value, items, text)
    return call(_membership(with_both_zeros(pa.array(listed, value.type))), [value], _BOOL, text)


def _any_equal(scope: Scope, value: Node, items: Sequence[Node], text: str) -> Node:
    result = constant(pa.scalar(False), text)
    for item in items:
        result = apply("or_kleene", [result, _compare(scope, "equal", value, item, text)], _BOOL, text)
    return result


def _membership(listed: pa.Array) -> Callable[[Datum], Datum]:
    options = pc.SetLookupOptions(listed.drop_null())
    has_null = listed.null_count > 0
    unknown = pa.scalar(None, _BOOL)

    def test(value: Datum) -> Datum:
        found = pc.call_function("is_in", [value], options)
        if has_null:
            # Not in the list, but the list has an unknown value: unknown.
            found = pc.if_else(found, found, unknown)
        if isinstance(value, pa.Array) and not value.null_count:
            return found
        return pc.if_else(pc.is_valid(value), found, unknown)

    return test


def _not(scope: Scope, tree: Tree) -> Node:
    return apply("invert", [scope.boolean(tree.this, "NOT")], _BOOL, render(tree))


def _is(scope: Scope, tree: Tree) -> Node:
    text = render(tree)
    if isinstance(tree.expression, exp.Null):
        return _missing(scope.node(tree.this), text)
    value = scope.boolean(tree.this, "IS")
    wanted = scope.boolean(tree.expression, "IS")
    equal = apply("equal", [value, wanted], _BOOL, text)
    return apply("coalesce", [equal, constant(pa.scalar(False), "")], _BOOL, text)


def _missing(node: Node, text: str) -> Node:
    """Whether a value is null."""
    known = node.known
    if known is None:
        return apply("is_null", [node], _BOOL, text)
    return Node(_BOOL, lambda batch: pc.invert(known(batch)), text)


def _named(scope: Scope, tree: Tree) -> Node:
    """Functions without a node in the parser."""
    kernel = {"isnull": "is_null", "isnotnull": "is_valid"}.get(tree.name.lower())
    if kernel is None or len(tree.expressions) != 1:
        raise scope.unsupported(tree)
    return apply(kernel, [scope.node(tree.expressions[0])], _BOOL, render(tree))


BUILDERS: dict[type, Callable[[Scope, Tree], Node]] = {
    exp.EQ: _comparison("equal"),
    exp.NEQ: _comparison("not_equal"),
    exp.LT: _comparison("less"),
    exp.LTE: _comparison("less_equal"),
    exp.GT: _comparison("greater"),
    exp.GTE: _comparison("greater_equal"),
    exp.NullSafeEQ: _null_safe,
    exp.NullSafeNEQ: _null_safe_unequal,
    exp.Between: _between,
    exp.In: _in,
    exp.And: logic("and_kleene", "AND", decisive=False),
    exp.Or: logic("or_kleene", "OR", decisive=True),
    exp.Not: _not,
    exp.Is: _is,
    exp.Anonymous: _named,
}
