"""Arithmetic; an undefined result, as of a division by zero or an overflow, is null (Spark's ``try_`` functions)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from workbench.durations import LONGEST_US
from workbench.expressions.evaluation import decimals
from workbench.expressions.evaluation.casts import widen
from workbench.expressions.evaluation.dividing import by_constant, constant_divisor
from workbench.expressions.tree.node import Datum, Node, apply, apply_or_null, call, constant, null_of
from workbench.expressions.tree.scope import Scope
from workbench.expressions.tree.sql import Tree, render
from workbench.expressions.tree.types import WIDEST, common_type, decimal_type

_DOUBLE, _LONG = pa.float64(), pa.int64()
_INTERVAL_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


def _numbers(scope: Scope, tree: Tree, symbol: str) -> tuple[Node, Node]:
    return scope.number(tree.this, symbol), scope.number(tree.expression, symbol)


def _are_decimal(left: Node, right: Node) -> bool:
    """Whether one operand is a decimal, and the other one is no float: a literal with a point counts as written."""
    if not (pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type)):
        return False
    return all(node.exact is not None or decimal_type(node.type) is not None for node in (left, right))


def _widened(left: Node, right: Node) -> tuple[Node, Node]:
    type_ = common_type(left.type, right.type)
    assert type_ is not None, "two numbers always meet"
    return widen(left, type_), widen(right, type_)


def _checked(kernel: str, symbol: str) -> Callable[[Scope, Tree], Node]:
    def build(scope: Scope, tree: Tree) -> Node:
        if isinstance(tree.expression, exp.Interval):
            return _shift(scope, kernel, scope.node(tree.this), tree.expression, render(tree))
        if isinstance(tree.this, exp.Interval) and symbol == "+":
            return _shift(scope, kernel, scope.node(tree.expression), tree.this, render(tree))
        left, right = _numbers(scope, tree, symbol)
        if _are_decimal(left, right):
            return _DECIMALS[symbol](left, right, render(tree))
        if left.exact is not None and right.exact is not None and pa.types.is_floating(_widened(left, right)[0].type):
            return _literals(symbol, left, right, render(tree))
        left, right = _widened(left, right)
        if pa.types.is_floating(left.type):
            return apply(kernel, [left, right], left.type, render(tree))
        return apply_or_null(f"{kernel}_checked", [left, right], left.type, render(tree))

    return build


def _literals(symbol: str, left: Node, right: Node, text: str) -> Node:
    """A sum, difference or product of literals: the double that is nearest to the exact result, as 0.3 of 0.1 + 0.2."""
    made = _DECIMALS[symbol](constant(left.exact, left.text), constant(right.exact, right.text), text).constant
    assert made is not None, "of constants"
    return replace(constant(pa.scalar(float(made.as_py())), text), exact=made)


def _shift(scope: Scope, kernel: str, time: Node, interval: Tree, text: str) -> Node:
    """A time shifted by a fixed interval."""
    unit = str(interval.args.get("unit") or "").upper().rstrip("S")
    if unit not in _INTERVAL_US:
        raise scope.error(
            f"{render(interval)} is not supported: write INTERVAL '1' HOUR with one of {', '.join(_INTERVAL_US)}"
        )
    try:
        amount = int(interval.name)
    except ValueError:
        raise scope.error(
            f"{render(interval)} is not supported: an interval is a constant whole number and a unit"
        ) from None
    if not pa.types.is_timestamp(time.type):
        raise scope.needs(render(interval), "a timestamp", time, "timestamp")
    if abs(amount * _INTERVAL_US[unit]) > LONGEST_US:
        raise scope.error(f"{render(interval)} is too long: an interval has at most 73,000 years")
    length = constant(pa.scalar(amount * _INTERVAL_US[unit], pa.duration("us")), render(interval))
    return apply_or_null(f"{kernel}_checked", [time, length], time.type, text)


def _without_zero(divisor: Node) -> Node:
    """The divisor with null for zero."""
    zero = constant(pa.scalar(0, divisor.type), "0")
    test = apply("equal", [divisor, zero], pa.bool_(), "")
    if divisor.constant is not None and test.constant is not None and test.constant.as_py() is not True:
        return divisor
    return apply("if_else", [test, null_of(divisor.type), divisor], divisor.type, divisor.text)


def _divide(scope: Scope, tree: Tree) -> Node:
    left, right = _numbers(scope, tree, "/")
    if _are_decimal(left, right):
        return decimals.divide(left, right, render(tree))
    operands = [widen(left, _DOUBLE), _without_zero(widen(right, _DOUBLE))]
    return apply("divide", operands, _DOUBLE, render(tree))


def _whole_divide(scope: Scope, tree: Tree) -> Node:
    nodes = _numbers(scope, tree, "DIV")
    if _are_decimal(*nodes):
        return decimals.whole_divide(*nodes, render(tree))
    for node in nodes:
        if not pa.types.is_integer(node.type):
            raise scope.needs("DIV", "whole numbers", node, "bigint")
    left, right = (widen(node, pa.int64()) for node in nodes)
    if (divisor := constant_divisor(right)) is not None:
        quotient = by_constant(divisor, remainder=False, otherwise=lambda value: pc.divide(value, divisor))
        return call(quotient, [left], pa.int64(), render(tree))
    return apply_or_null("divide_checked", [left, _without_zero(right)], pa.int64(), render(tree))


def _remainder(scope: Scope, tree: Tree) -> Node:
    left, right = _numbers(scope, tree, "%")
    if _are_decimal(left, right) or ({left.type, right.type} == {_LONG, _DOUBLE} and (left.exact or right.exact)):
        return decimals.remainder(left, right, render(tree))
    left, right = _widened(left, right)
    if (divisor := constant_divisor(right)) is not None:
        constant_right = right.constant
        rest = by_constant(divisor, remainder=True, otherwise=lambda value: _whole_remainder(value, constant_right))
        return call(rest, [left], left.type, render(tree))
    right = _without_zero(right)
    function = _float_remainder if pa.types.is_floating(left.type) else _whole_remainder
    return call(function, [left, right], left.type, render(tree))


def _whole_remainder(dividend: Datum, divisor: Datum) -> Datum:
    # The sign of the divisor does not matter, and without it the smallest number over -1 cannot overflow.
    divisor = pc.abs(divisor)
    return pc.subtract(dividend, pc.multiply(pc.divide(dividend, divisor), divisor))


def _float_remainder(dividend: Datum, divisor: Datum) -> Datum:
    # Exact, unlike a - trunc(a / b) * b; Arrow has no such kernel.
    valid = pc.and_(pc.is_valid(dividend), pc.is_valid(divisor))
    with np.errstate(invalid="ignore"):
        values = np.fmod(_floats(dividend), _floats(divisor))
    if isinstance(valid, pa.Scalar):
        return pa.scalar(float(values) if valid.as_py() else None, dividend.type)
    return pa.array(values, dividend.type, mask=np.logical_not(valid.to_numpy(zero_copy_only=False)))


def _floats(value: Datum) -> np.ndarray | float:
    if isinstance(value, pa.Scalar):
        return np.nan if value.as_py() is None else float(value.as_py())
    values: np.ndarray = value.to_numpy(zero_copy_only=False)
    return values


def _negate(scope: Scope, tree: Tree) -> Node:
    text = render(tree)
    if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
        return _number(scope, f"-{tree.this.name}")
    node = scope.number(tree.this, "-")
    if pa.types.is_decimal(node.type):
        return apply("negate", [node], node.type, text)
    return apply_or_null("negate_checked", [node], node.type, text)


def _literal(scope: Scope, tree: Tree) -> Node:
    return constant(pa.scalar(tree.name), render(tree)) if tree.is_string else _number(scope, tree.name)


_DECIMALS = {"+": decimals.add, "-": decimals.subtract, "*": decimals.multiply}
_WHOLE = re.compile(r"-?[0-9]+")
_POINT = re.compile(r"-?(?:[0-9]+\.[0-9]*|\.[0-9]+)")


def _number(scope: Scope, digits: str) -> Node:
    """A whole number (int, or bigint where it is large) or a double, which meets decimals as it is written."""
    if _WHOLE.fullmatch(digits) is None:
        try:
            value = float(digits)
        except ValueError:
            raise scope.error(f"{digits} is not a number: write it as 12, 1.5 or 2e3") from None
        if math.isinf(value):
            raise scope.error(f"{digits} is too large for a double, whose largest value is 1.7976931348623157E308")
        return replace(constant(pa.scalar(value), digits), exact=_written(digits) if _POINT.fullmatch(digits) else None)
    whole = int(digits)
    if not -(2**63) <= whole < 2**63:
        raise scope.error(f"{digits} is too large for a bigint: write it as a double, {digits}.0")
    kind = pa.int32() if -(2**31) <= whole < 2**31 else pa.int64()
    return replace(constant(pa.scalar(whole, kind), digits), exact=_written(digits))


def _written(digits: str) -> pa.Scalar | None:
    """The decimal with the digits of a literal; None if it has more than 38."""
    value = Decimal(digits)
    scale = max(0, -int(value.as_tuple().exponent))
    precision = max(len(value.as_tuple().digits), scale)
    return pa.scalar(value, pa.decimal128(precision, scale)) if precision <= WIDEST else None


BUILDERS: dict[type, Callable[[Scope, Tree], Node]] = {
    exp.Add: _checked("add", "+"),
    exp.Sub: _checked("subtract", "-"),
    exp.Mul: _checked("multiply", "*"),
    exp.Div: _divide,
    exp.IntDiv: _whole_divide,
    exp.Mod: _remainder,
    exp.Neg: _negate,
    exp.Literal: _literal,
    exp.SafeDivide: _divide,
}
