"""The conditions of a join: keys, bounds on event time, filters of one side, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from workbench.expressions import compile_expression
from workbench.expressions.tree.sql import Tree
from workbench.queries.reading.binding import bound, check_part, constant_us
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation

LEFT, RIGHT = 0, 1
_FLIPPED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}


def conjuncts(tree: Tree | None) -> list[Tree]:
    """The operands of AND; BETWEEN counts as two conditions."""
    if tree is None:
        return []
    if isinstance(tree, exp.Paren):
        return conjuncts(tree.this)
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        value, low, high = tree.this, tree.args["low"], tree.args["high"]
        above = exp.GTE(this=value.copy(), expression=low.copy())
        return [above, exp.LTE(this=value.copy(), expression=high.copy())]
    return [tree]


@dataclass
class JoinConditions:
    """The conditions of a join, by their use."""

    keys: list[tuple[Tree, Tree, Tree]] = field(default_factory=list)  # the left value, the right value, the condition
    before_us: int | None = None
    after_us: int | None = None
    until: Tree | None = None  # the latest time of a right record, computed from columns of the left one
    latest: bool = False  # whether the join is with the latest right record up to the left record's time
    own: tuple[list[Tree], list[Tree]] = field(default_factory=lambda: ([], []))
    rest: list[Tree] = field(default_factory=list)
    bounding: list[Tree] = field(default_factory=list)

    @property
    def bounded(self) -> bool:
        """Whether the event time of one side bounds that of the other."""
        return self.before_us is not None and (self.after_us is not None or self.until is not None)


def sorted_conditions(
    conditions: Sequence[Tree], left: Relation, right: Relation, both: Relation, text: Text
) -> JoinConditions:
    """Sort the conditions of a join by their use.

    Raises:
        QueryError: an unknown column or function.
    """
    plan = JoinConditions()
    for condition in conditions:
        for part in condition.walk():
            if not isinstance(part, exp.Column):
                check_part(part, text)
        sides = {_side(column, left) for column in both.stored([condition], text)}
        if len(sides) == 1:
            plan.own[sides.pop()].append(condition)
            continue
        used = False
        if type(condition) in _FLIPPED:
            used = _bounds(condition, plan, left, right, both, text)
            pair = (condition.this, condition.expression)
            first, second = ({_side(column, left) for column in both.stored([part], text)} for part in pair)
            if isinstance(condition, exp.EQ) and len(first) == len(second) == 1:
                plan.keys.append((*(pair if first == {LEFT} else pair[::-1]), condition))
            elif used:
                plan.bounding.append(condition)
            used = used or (isinstance(condition, exp.EQ) and len(first) == len(second) == 1)
        if not used:
            plan.rest.append(condition)
    return plan


def record_bounds(
    conditions: Sequence[Tree], left: Relation, right: Relation, both: Relation, plan: JoinConditions | None, text: Text
) -> JoinConditions:
    """Handle a left record that contains the latest time of its partners; otherwise return the plan unchanged.

    Such a condition is ``right.ts <= left.expires``, with the plain event time of the right side.
    """
    found = sorted_conditions(conditions, left, right, both, text)
    if found.before_us is None:
        return plan or found
    for condition in found.rest:
        sides = (condition.this, condition.args.get("expression"))
        if isinstance(condition, exp.GTE):
            sides = sides[::-1]
        elif not isinstance(condition, exp.LTE):
            continue
        time, until = sides
        columns = [{_side(column, left) for column in both.stored([side], text)} for side in sides]
        event_time = isinstance(time, exp.Column) and both.of(time, text).ahead_us == 0
        if event_time and columns == [{RIGHT}, {LEFT}] and _is_time(until, left, text):
            found.until, found.after_us = until, None
            found.rest.remove(condition)
            found.bounding.append(condition)
            return found
    return plan or found


def _is_time(tree: Tree, side: Relation, text: Text) -> bool:
    kind = compile_expression(bound(tree, side, text), side.records.schema).type
    return bool(pa.types.is_timestamp(kind)) and kind.unit != "ns"


def _side(column: Column, left: Relation) -> int:
    return LEFT if any(column is other for other in left.columns) else RIGHT


def _bounds(condition: Tree, plan: JoinConditions, left: Relation, right: Relation, both: Relation, text: Text) -> bool:
    """Use a comparison of event times as a bound; False if it is not an exact bound."""
    ends = [_instant(part, both, text) for part in (condition.this, condition.expression)]
    if ends[0] is None or ends[1] is None:
        return False
    (first, a), (second, b), kind = ends[0], ends[1], type(condition)
    if _side(first, left) == RIGHT:
        first, second, a, b, kind = second, first, b, a, _FLIPPED[kind]
    if first.ahead_us is None or second.ahead_us is None:
        return False
    gap = first.ahead_us + a - second.ahead_us - b  # right time - left time, if both sides are equal
    if kind in (exp.LT, exp.LTE, exp.EQ):
        low = gap + (kind is exp.LT)
        plan.before_us = low if plan.before_us is None else max(plan.before_us, low)
    if kind in (exp.GT, exp.GTE, exp.EQ):
        high = gap - (kind is exp.GT)
        plan.after_us = high if plan.after_us is None else min(plan.after_us, high)
    kinds = [side.records.schema.field(c.stored).type for side, c in ((left, first), (right, second))]
    return all(not pa.types.is_timestamp(kind) or kind.unit != "ns" for kind in kinds)


def _instant(tree: Tree, both: Relation, text: Text) -> tuple[Column, int] | None:
    """A column plus a constant number of microseconds; None for any other expression."""
    if isinstance(tree, exp.Paren):
        return _instant(tree.this, both, text)
    if isinstance(tree, exp.Column):
        return both.of(tree, text), 0
    if isinstance(tree, exp.Add | exp.Sub):
        parts = (tree.this, tree.expression)
        if isinstance(tree, exp.Add) and isinstance(parts[0], exp.Interval):
            parts = parts[::-1]
        inner = _instant(parts[0], both, text)
        if inner is not None and isinstance(parts[1], exp.Interval):
            length = constant_us(parts[1], text)
            return inner[0], inner[1] + (length if isinstance(tree, exp.Add) else -length)
    return None
