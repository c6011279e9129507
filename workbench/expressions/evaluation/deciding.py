"""AND and OR: a side that is costly is computed only for the rows that the other side does not decide."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from workbench.expressions.tree.node import Datum, Evaluate, Node, SomeRows, apply
from workbench.expressions.tree.scope import Scope
from workbench.expressions.tree.sql import Tree, render

_BOOL = pa.bool_()
_COSTLY = (exp.RegexpLike, exp.RegexpExtract, exp.RegexpCount, exp.RegexpReplace, exp.JSONExtractScalar, exp.Split)
"""What takes many times as long as a comparison."""
_FEW = 0.8
"""The share of rows up to which it is cheaper to compute the costly side for them alone."""


def logic(kernel: str, word: str, decisive: bool) -> Callable[[Scope, Tree], Node]:
    """The builder of AND or OR.

    Args:
        kernel: of Arrow, in three-valued logic.
        word: for errors.
        decisive: the value of one side that decides.
    """

    def build(scope: Scope, tree: Tree) -> Node:
        left, right = scope.boolean(tree.this, word), scope.boolean(tree.expression, word)
        made = apply(kernel, [left, right], _BOOL, render(tree))
        costly = [side.find(*_COSTLY) is not None for side in (tree.this, tree.expression)]
        if made.constant is not None or made.coded is not None or costly[0] == costly[1]:
            return made
        cheap, other = (right, left) if costly[0] else (left, right)
        return Node(_BOOL, _in_turn(cheap, other, kernel, decisive), made.text)

    return build


def _in_turn(cheap: Node, costly: Node, kernel: str, decisive: bool) -> Evaluate:
    def evaluate(batch: pa.RecordBatch) -> Datum:
        known = cheap.evaluate(batch)
        if not isinstance(known, pa.Scalar):
            rest = pc.invert(pc.fill_null(known, False)) if decisive else pc.fill_null(known, True)
            if rest.true_count <= _FEW * len(rest):
                found = pc.call_function(kernel, [known.filter(rest), costly.evaluate(SomeRows(batch, rest))])
                return pc.replace_with_mask(known, rest, found)
        return pc.call_function(kernel, [known, costly.evaluate(batch)])

    return evaluate
