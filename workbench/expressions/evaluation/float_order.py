"""Comparisons of floats as Spark orders them: NaN equals NaN and is larger than any number; 0.0 equals -0.0.

Arrow compares as IEEE 754 specifies: with a NaN, every comparison but "not equal" is false. If only one side can be
NaN, the result needs at most one inversion of bits, because ``a > b`` differs from ``NOT a <= b`` only there. So a
filter on a column and a number does not search for NaN.
"""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from workbench.expressions.tree.node import Datum, Node, apply

_BOOL = pa.bool_()
_TURNED = {"greater": "less", "greater_equal": "less_equal"}


def may_be_nan(node: Node) -> bool:
    """Whether a value can be NaN: integers and constant numbers cannot."""
    if not pa.types.is_floating(node.type):
        return False
    return node.constant is None or bool(node.constant.is_valid and math.isnan(node.constant.as_py()))


def compare_floats(kernel: str, left: Node, right: Node, nan: tuple[bool, bool], text: str) -> Node:
    """Compare two nodes of one float type.

    Args:
        kernel: Arrow's name: ``equal``, ``not_equal``, ``less``, ``less_equal``, ``greater`` or ``greater_equal``.
        left, right: the operands.
        nan: which of them may be NaN.
        text: SQL of the comparison, for errors.

    Example:
        >>> from workbench.expressions.evaluation.compiling import compile_expression
        >>> batch = pa.RecordBatch.from_pydict({"x": [math.nan, 1.0, None]})
        >>> [compile_expression(text, batch.schema)(batch).to_pylist() for text in ("x > 2", "x = x")]
        [[True, False, None], [True, True, None]]
    """
    if kernel in _TURNED:
        return compare_floats(_TURNED[kernel], right, left, (nan[1], nan[0]), text)
    if nan == (False, False):
        return apply(kernel, [left, right], _BOOL, text)
    if kernel == "less":
        return _less(left, right, nan, text)
    if kernel == "less_equal":
        return _less_equal(left, right, nan, text)
    if nan != (True, True):
        return apply(kernel, [left, right], _BOOL, text)
    equal = apply("or", [apply("equal", [left, right], _BOOL, text), _both_nan(left, right)], _BOOL, text)
    return equal if kernel == "equal" else apply("invert", [equal], _BOOL, text)


def _less(left: Node, right: Node, nan: tuple[bool, bool], text: str) -> Node:
    if not nan[1]:
        return apply("less", [left, right], _BOOL, text)
    not_reached = apply("invert", [apply("greater_equal", [left, right], _BOOL, text)], _BOOL, text)
    if not nan[0]:
        return not_reached
    return apply("and", [not_reached, apply("invert", [_is_nan(left)], _BOOL, text)], _BOOL, text)


def _less_equal(left: Node, right: Node, nan: tuple[bool, bool], text: str) -> Node:
    if not nan[1]:
        return apply("less_equal", [left, right], _BOOL, text)
    if not nan[0]:
        return apply("invert", [apply("greater", [left, right], _BOOL, text)], _BOOL, text)
    return apply("or", [apply("less_equal", [left, right], _BOOL, text), _is_nan(right)], _BOOL, text)


def _is_nan(node: Node) -> Node:
    return apply("is_nan", [node], _BOOL, node.text)


def _both_nan(left: Node, right: Node) -> Node:
    return apply("and", [_is_nan(left), _is_nan(right)], _BOOL, left.text)


def with_both_zeros(listed: pa.Array) -> pa.Array:
    """A list of values for a lookup, with both 0.0 and -0.0 if it has one of them: a lookup distinguishes them."""
    if not pa.types.is_floating(listed.type) or not pc.any(pc.equal(listed, 0.0)).as_py():
        return listed
    return pa.concat_arrays([listed, pa.array([0.0, -0.0], listed.type)])


def greatest(*values: Datum) -> Datum:
    """The largest value of each row, ignoring nulls: Arrow's kernel skips NaN as if it were null."""
    largest = pc.max_element_wise(*values, skip_nulls=True)
    for value in values:
        largest = pc.if_else(pc.fill_null(pc.is_nan(value), False), pa.scalar(math.nan, value.type), largest)
    return largest
