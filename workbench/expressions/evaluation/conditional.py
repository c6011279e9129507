"""Choices between values: CASE, IF, COALESCE, NULLIF, GREATEST and LEAST."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from workbench.elements import Mask
from workbench.expressions.evaluation.comparing import unify
from workbench.expressions.evaluation.float_order import greatest
from workbench.expressions.tree.node import Datum, Evaluate, Node, SomeRows, apply, call, null_of
from workbench.expressions.tree.scope import Scope
from workbench.expressions.tree.sql import Tree, render


def _case(scope: Scope, tree: Tree) -> Node:
    tests = [branch.this for branch in tree.args["ifs"]]
    if tree.this is not None:
        tests = [exp.EQ(this=tree.this.copy(), expression=test.copy()) for test in tests]
    values = [branch.args["true"] for branch in tree.args["ifs"]]
    return _choose(scope, tests, values, tree.args.get("default"), render(tree))


def _if(scope: Scope, tree: Tree) -> Node:
    return _choose(scope, [tree.this], [tree.args["true"]], tree.args.get("false"), render(tree))


def _choose(scope: Scope, tests: Sequence[Tree], values: Sequence[Tree], default: Tree | None, text: str) -> Node:
    conditions = [scope.boolean(test, "WHEN") for test in tests]
    nodes = [scope.node(value) for value in values]
    nodes.append(scope.node(default) if default is not None else null_of(pa.null()))
    nodes = unify(scope, nodes, "cannot choose between")
    result = nodes[-1]
    for condition, value in zip(reversed(conditions), reversed(nodes[:-1]), strict=True):
        result = call(_if_true, [condition, value, result], value.type, text)
    costly = default is not None and default.find(exp.Func) is not None
    if not costly or result.constant is not None or result.coded is not None or pa.types.is_nested(result.type):
        return result
    return Node(result.type, _lazily(conditions, nodes, result), text)


_FEW = 0.5
"""The share of rows up to which it is cheaper to compute a value for them alone."""


def _lazily(conditions: Sequence[Node], nodes: Sequence[Node], eager: Node) -> Evaluate:
    """Computes the last value only for the rows in which no condition is true."""
    *values, default = nodes

    def evaluate(batch: pa.RecordBatch) -> Datum:
        tests = [condition.evaluate(batch) for condition in conditions]
        if any(isinstance(test, pa.Scalar) for test in tests):
            return eager.evaluate(batch)
        tests = [pc.fill_null(test, False) if test.null_count else test for test in tests]
        rest = pc.invert(reduce(pc.or_, tests))
        if rest.true_count > _FEW * len(rest):
            result = default.evaluate(batch)
        else:
            found = default.evaluate(SomeRows(batch, rest))
            found = pa.repeat(found, rest.true_count) if isinstance(found, pa.Scalar) else found
            constants = [value.constant for value in values if value.constant is not None]
            if len(constants) == len(values):
                return _placed(constants, tests, found, rest)
            result = pc.replace_with_mask(pa.nulls(len(rest), default.type), rest, found)
        for test, value in zip(reversed(tests), reversed(values), strict=True):
            result = pc.if_else(test, value.evaluate(batch), result)
        return result

    return evaluate


def _placed(constants: Sequence[pa.Scalar], tests: Sequence[Datum], found: pa.Array, rest: Datum) -> pa.Array:
    """The constant of the first condition that is true, and for the rest what was found: one copy of each value."""
    n = len(constants)
    places = np.cumsum(_mask(rest)) + (n - 1)
    for at in reversed(range(n)):
        places[_mask(tests[at])] = at
    values = pa.concat_arrays([*(pa.repeat(constant, 1) for constant in constants), found])
    return values.take(pa.array(places))


def _mask(values: pa.BooleanArray) -> Mask:
    mask: Mask = values.to_numpy(zero_copy_only=False)
    return mask


def _if_true(condition: Datum, value: Datum, other: Datum) -> Datum:
    # A null condition counts as false, whereas the kernel would make the result null.
    if isinstance(condition, pa.Scalar) or condition.null_count:
        condition = pc.fill_null(condition, False)
    return pc.if_else(condition, value, other)


def _first_known(scope: Scope, tree: Tree) -> Node:
    nodes = unify(scope, [scope.node(part) for part in (tree.this, *tree.expressions)], "cannot coalesce")
    return apply("coalesce", nodes, nodes[0].type, render(tree))


def _null_if(scope: Scope, tree: Tree) -> Node:
    test = exp.EQ(this=tree.this.copy(), expression=tree.expression.copy())
    return _choose(scope, [test], [exp.Null()], tree.this, render(tree))


def _extreme(kernel: str) -> Callable[[Scope, Tree], Node]:
    def build(scope: Scope, tree: Tree) -> Node:
        nodes = unify(scope, [scope.node(part) for part in (tree.this, *tree.expressions)], "cannot compare")
        if kernel == "max_element_wise" and pa.types.is_floating(nodes[0].type):
            return call(greatest, nodes, nodes[0].type, render(tree))
        return apply(kernel, nodes, nodes[0].type, render(tree), pc.ElementWiseAggregateOptions(skip_nulls=True))

    return build


BUILDERS: dict[type, Callable[[Scope, Tree], Node]] = {
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _first_known,
    exp.Nullif: _null_if,
    exp.Greatest: _extreme("max_element_wise"),
    exp.Least: _extreme("min_element_wise"),
}
