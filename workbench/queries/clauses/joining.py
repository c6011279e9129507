"""Joins: conditions become keys, bounds on event time, and filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from sqlglot import exp

from workbench.api.streams.joining import AnyHow
from workbench.errors import PlanError, QueryError, SettingError
from workbench.expressions import Expression, coalesce, col, plain_name
from workbench.expressions.tree.sql import Tree
from workbench.operators.changelogs.row_kinds import KIND, is_changelog
from workbench.queries.clauses.join_conditions import (
    LEFT,
    RIGHT,
    JoinConditions,
    conjuncts,
    record_bounds,
    sorted_conditions,
)
from workbench.queries.clauses.looking_up import looked_up
from workbench.queries.reading.binding import bound, bound_condition
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import INSTANT, free_name, materialized


def joined(left: Relation, right: Relation, join: Tree, pool: list[Tree], text: Text) -> tuple[Relation, list[Tree]]:
    """Join two relations.

    Args:
        left, right: both sides.
        join: the clause.
        pool: conditions of WHERE that an inner join can use.
        text: the query, for errors.

    Returns:
        The pairs, and the remaining conditions of the pool.

    Raises:
        QueryError: a join without an equality, or with unsupported conditions.
    """
    how = _how(join, text)
    turned = str(join.args.get("side") or "").upper() == "RIGHT"
    if turned:
        left, right = right, left
    left, right = materialized(left, text), materialized(right, text)
    if left.stream is None:
        if how != "inner" or right.stream is None:
            raise text.error(join, "the left side is a table without event time: make it a stream, or swap the sides")
        left, right = right, left
    both = Relation(None, left.columns + right.columns)
    for condition in (*conjuncts(join.args.get("on")), *pool):
        for column in condition.find_all(exp.Column):
            if _readable(column, both) and both.of(column, text).bound == "proctime":
                both.value_of(column, text)  # says why there is none
    left, right = left.plain, right.plain
    both = both.plain
    using = [_equal(name, left, right) for name in join.args.get("using") or ()]
    own = [*conjuncts(join.args.get("on")), *using]
    left_over: list[Tree] = []
    if how == "inner":
        for condition in pool:
            (own if _readable(condition, both) else left_over).append(condition)
    else:
        left_over = pool
    plan = sorted_conditions(own, left, right, both, text)
    if right.lookup is not None:
        left = _filtered(left, plan.own[LEFT] if how == "inner" else (), text)
        others = [*plan.own[RIGHT], *(plan.own[LEFT] if how != "inner" else ()), *plan.bounding, *plan.rest]
        pairs = looked_up(left, right, how, plan.keys, others, join, text)
        return _in_order(pairs, left, join, how, turned), left_over
    plan.latest = _is_as_of(join, left, right, text)
    if how == "inner" and not plan.latest and not plan.bounded and right.stream is not None:
        plan = record_bounds(own, left, right, both, plan, text)
        if not plan.bounded and (other := record_bounds(own, right, left, both, None, text)).bounded:
            swapped = _pairs(right, left, how, other, join, text)
            count = len(right.columns)
            pairs = replace(swapped, columns=swapped.columns[count:] + swapped.columns[:count])
            return _in_order(pairs, left, join, how, turned), left_over
    pairs = _pairs(left, right, how, plan, join, text)
    return _in_order(pairs, left, join, how, turned), left_over


def _is_as_of(join: Tree, left: Relation, right: Relation, text: Text) -> bool:
    """Whether a join is with a stream ``FOR SYSTEM_TIME AS OF left.ts``.

    Raises:
        QueryError: it does not name the event time of the left side, or the right side is a changelog.
    """
    version = join.this.args.get("version") if isinstance(join.this, exp.Table) else None
    if version is None or right.stream is None:
        return False
    time = version.expression
    if not isinstance(time, exp.Column) or left.of(time, text).ahead_us != 0:
        known = [column.name for column in left.columns if column.ahead_us == 0]
        fix = f"use {known[0]}" if known else "give its source event_time=..."
        raise text.error(time, f"{time.sql('spark')} is not the event time of the left rows: {fix}")
    if is_changelog(right.records.schema):
        raise text.error(
            join.this,
            "its rows replace earlier ones: join with the append-only stream of versions",
        )
    return True


def _in_order(pairs: Relation, left: Relation, join: Tree, how: AnyHow, turned: bool) -> Relation:
    """The pairs with the keys of USING, once, then the columns of the side that is written first, then the others.

    Args:
        pairs: the columns of `left`, then those of the other side.
        left: the side that was joined as the left one.
        join: the clause.
        how: the kind of join.
        turned: whether `left` is written second, as in a RIGHT JOIN.
    """
    count, keys = len(left.columns), []
    sides = [list(pairs.columns[:count]), list(pairs.columns[count:])]
    for name in (str(part.name).lower() for part in join.args.get("using") or ()):
        own, other = (next((c for c in side if c.name.lower() == name), None) for side in sides)
        if own is None:
            continue
        if how == "outer" and other is not None:
            stored = free_name(f"${own.name}", pairs.records.columns)
            value = coalesce(col(own.stored or ""), col(other.stored or ""))
            pairs = replace(pairs, stream=pairs.records.with_columns(**{stored: value}))
            keys.append(Column(None, own.name, stored))
            sides[LEFT] = [replace(c, qualified=True) if c is own else c for c in sides[LEFT]]
        else:
            keys.append(own)
            sides[LEFT] = [c for c in sides[LEFT] if c is not own]
        sides[RIGHT] = [replace(c, qualified=True) if c is other else c for c in sides[RIGHT]]
    first, second = reversed(sides) if turned else sides
    return replace(pairs, columns=(*keys, *first, *second))


def _how(join: Tree, text: Text) -> AnyHow:
    for name in ("method", "global", "hint", "match_condition", "pivots"):
        if join.args.get(name):
            raise text.error(join, f"a join with {join.args[name]} is not supported: write JOIN ... ON")
    kind, side = (str(join.args.get(name) or "").upper() for name in ("kind", "side"))
    if kind in ("SEMI", "ANTI"):
        return "semi" if kind == "SEMI" else "anti"
    return {"": "inner", "LEFT": "left", "RIGHT": "left", "FULL": "outer"}[side]  # type: ignore[return-value]


def _equal(name: Tree, left: Relation, right: Relation) -> Tree:
    """USING (name) as a condition that names the tables of both sides."""
    sides = []
    for side in (left, right):
        tables = [column.table for column in side.columns if column.name.lower() == name.name.lower()]
        column = exp.column(name.name, tables[0] if tables else None)
        column.this.meta.update(name.meta)
        sides.append(column)
    return exp.EQ(this=sides[0], expression=sides[1])


def _readable(condition: Tree, both: Relation) -> bool:
    try:
        both.stored([condition], Text(""))
    except QueryError:
        return False
    return True


def _pairs(left: Relation, right: Relation, how: AnyHow, plan: JoinConditions, join: Tree, text: Text) -> Relation:
    if plan.latest:
        plan.rest += plan.bounding
        plan.before_us = plan.after_us = None
    elif right.table is None and not _is_bounded(left, right, plan, how, join, text):
        plan.rest += plan.bounding
        plan.before_us = plan.after_us = plan.until = None
    if how != "inner":
        _check_outer(plan, how, text)
    sides = [_filtered(side, own, text) for side, own in zip((left, right), plan.own, strict=True)]
    rest = list(plan.rest)
    if right.table is not None:
        sides[RIGHT] = right
        if plan.own[RIGHT] and how != "inner":
            raise text.error(plan.own[RIGHT][0], "this condition is only about the table: filter the table first")
        rest += plan.own[RIGHT]
    if not plan.keys:
        raise text.error(join, "a join needs an equality between both sides: add a condition such as a.id = b.id to ON")
    sides, keys = _with_keys(sides, plan.keys, how, text)
    pairs = _joined(sides, keys, how, plan, join, text)
    for one in rest:
        pairs = replace(pairs, stream=pairs.records.filter(bound_condition(one, pairs, text)))
    return pairs


def _check_outer(plan: JoinConditions, how: AnyHow, text: Text) -> None:
    unfit = plan.rest + (plan.own[LEFT] if how != "semi" else []) + (plan.own[RIGHT] if how == "outer" else [])
    if unfit:
        raise text.error(
            unfit[0],
            f"{'an' if how == 'outer' else 'a'} {how} join has only equalities between both sides in ON, and "
            f"{unfit[0].sql('spark')} is none: a filter after the join gives another result"
            + (", because a record that fails the condition is kept" if how != "semi" else ""),
        )


def _filtered(side: Relation, conditions: Sequence[Tree], text: Text) -> Relation:
    if not conditions or side.stream is None:
        return side
    return replace(side, stream=side.stream.filter(*(bound_condition(one, side, text) for one in conditions)))


def _is_bounded(left: Relation, right: Relation, plan: JoinConditions, how: AnyHow, join: Tree, text: Text) -> bool:
    """Whether the join keeps records for a limited time only; otherwise it keeps all of them."""
    changes = is_changelog(left.records.schema) or is_changelog(right.records.schema)
    if changes or not plan.bounded or how in ("semi", "anti"):
        return False
    assert plan.before_us is not None
    if plan.until is not None:
        return True
    assert plan.after_us is not None
    if plan.before_us > plan.after_us:
        raise text.error(
            join, "no pair of event times satisfies the join conditions: check the direction of the comparisons"
        )
    return how != "outer" or plan.before_us == plan.after_us


def _with_keys(
    sides: list[Relation], pairs: Sequence[tuple[Tree, Tree, Tree]], how: AnyHow, text: Text
) -> tuple[list[Relation], tuple[list[str], list[str]]]:
    """Add key columns to both sides.

    The right keys are not in the result, so an outer join uses copies; computed and repeated keys are copies too.
    """
    names: tuple[list[str], list[str]] = ([], [])
    for at in (LEFT, RIGHT):
        side = sides[at]
        copies = how == "outer" or (how == "left" and at == RIGHT)
        added: dict[str, Expression] = {}
        taken = side.table.column_names if side.table is not None else side.records.columns
        other = sides[LEFT].records.columns if at == RIGHT else []
        for pair in pairs:
            value = _bound_to(pair[at], side, text)
            name = plain_name(value)
            if name is None or copies or name in names[at]:
                name = free_name(f"${value.sql}", [*taken, *other, *added])
                added[name] = value
            names[at].append(name)
        if added and side.table is not None:
            table = side.table
            for name, value in added.items():
                plain = plain_name(value)
                if plain is None:
                    raise text.error(pairs[0][2], "a table is joined by its columns: compute the value first")
                table = table.append_column(name, table[plain])
            sides[at] = replace(side, table=table)
        elif added:
            sides[at] = replace(side, stream=side.records.with_columns(**added))
    return sides, names


def _bound_to(tree: Tree, side: Relation, text: Text) -> Expression:
    if side.table is None:
        return bound(tree, side, text)
    if not isinstance(tree, exp.Column):
        raise text.error(tree, "a table is joined by its columns: compute the value in the table first")
    return col(side.of(tree, text).stored or "")


def _joined(
    sides: list[Relation], keys: tuple[list[str], list[str]], how: AnyHow, plan: JoinConditions, join: Tree, text: Text
) -> Relation:
    left, right = sides
    if plan.until is not None:
        left, until = _with_until(left, plan.until, text)
    on = dict(zip(*keys, strict=True))
    there = left.records.columns
    columns = right.table.column_names if right.table is not None else right.records.columns
    columns = [name for name in columns if name != KIND]
    suffix = "_right"
    while any(name in there and (name + suffix in there or name + suffix in columns) for name in columns):
        suffix += "_right"
    place = {name: name + suffix if name in there else name for name in columns}
    place |= {name: own for own, name in on.items()} if how == "inner" else {}
    try:
        if right.table is not None:
            if how == "semi" or how == "anti":
                raise text.error(join, f"a {how} join needs a stream: convert the table with wb.Stream.from_table")
            stream = left.records.join(right.table, on, how=how, suffix=suffix)
        elif plan.latest:
            if how == "semi" or how == "anti":
                raise text.error(
                    join, f"a {how} join cannot be combined with FOR SYSTEM_TIME AS OF: write JOIN or LEFT JOIN"
                )
            stream = left.records.join(right.records, on, between="latest", how=how, suffix=suffix)
        elif how == "semi" or how == "anti" or not plan.bounded:
            stream = left.records.join(right.records, on, how=how, suffix=suffix)
        elif how == "outer":
            stream = left.records.join(right.records, on, window=INSTANT, how=how, suffix=suffix)
        elif plan.until is not None:
            assert plan.before_us is not None
            since = timedelta(microseconds=plan.before_us)
            stream = left.records.join(right.records, on, between=(since, col(until)), how=how, suffix=suffix)
        else:
            assert plan.before_us is not None
            assert plan.after_us is not None
            between = timedelta(microseconds=plan.before_us), timedelta(microseconds=plan.after_us)
            stream = left.records.join(right.records, on, between=between, how=how, suffix=suffix)
    except (PlanError, SettingError) as error:
        raise text.error(join, error.message) from None
    if how in ("semi", "anti"):
        return Relation(stream, tuple(replace(column, ahead_us=None) for column in left.columns))
    shift = (0, None) if right.table is not None or plan.latest else _shifts(plan)
    made = [replace(column, ahead_us=_sum(column.ahead_us, shift[LEFT])) for column in left.columns]
    made += [
        replace(column, stored=place[column.stored or ""], ahead_us=_sum(column.ahead_us, shift[RIGHT]))
        for column in right.columns
    ]
    return Relation(stream, tuple(made))


def _with_until(left: Relation, until: Tree, text: Text) -> tuple[Relation, str]:
    """The left side with a column for the latest time of partners."""
    value = bound(until, left, text)
    name = plain_name(value)
    if name is not None:
        return left, name
    name = free_name("$until", left.records.columns)
    return replace(left, stream=left.records.with_columns(**{name: value})), name


def _shifts(plan: JoinConditions) -> tuple[int | None, int | None]:
    """A record's event time minus a pair's, for both sides; a pair has the later one of its records. None: unknown."""
    before, after = plan.before_us, plan.after_us
    if before is not None and plan.until is not None:
        return None, 0 if before >= 0 else None
    if before is None or after is None:
        return None, None
    left = 0 if after <= 0 else -after if before == after else None
    right = 0 if before >= 0 else after if before == after else None
    return left, right


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
