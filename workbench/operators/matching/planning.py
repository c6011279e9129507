"""Turns a pattern and its measures into the operator that finds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from workbench.arguments import as_given
from workbench.errors import PlanError, unknown
from workbench.expressions import Expression
from workbench.operators.matching.match import MatchRows, RowsPerMatch
from workbench.operators.matching.partials import Rules
from workbench.origin import Origin
from workbench.patterns.automaton import CONDITIONS_MAX
from workbench.patterns.contiguity import stage_automaton
from workbench.patterns.pattern import Pattern
from workbench.patterns.stages import Stage, flat
from workbench.patterns.terms import Term, TermError, Terms, parse_term
from workbench.state.key_columns import check_keys

PARTIALS_MAX = 10_000
"""The default limit of the partial matches of a key."""


def match_stages(
    pattern: Pattern,
    measures: Mapping[str, str | Expression],
    keys: tuple[str, ...],
    schema: pa.Schema,
    rows: RowsPerMatch,
    partials_max: int,
    origin: Origin | None,
) -> MatchRows:
    """The operator for a chain of stages.

    Raises:
        PlanError: a name, a condition or a measure does not fit the columns, or the pattern cannot end.
    """
    check_keys(keys, schema)
    if not isinstance(pattern, Pattern):
        raise PlanError(
            f"match got {as_given(pattern)}: pass a pattern, such as wb.pattern('a', 'n > 1')", origin=origin
        )
    if rows not in ("one", "all"):
        raise PlanError(unknown("choice of rows", rows, ("one", "all")), origin=origin)
    if not isinstance(partials_max, int) or isinstance(partials_max, bool) or not 1 <= partials_max <= 10_000_000:
        raise PlanError(f"partials_max is {as_given(partials_max)}: it must be from 1 to 10,000,000", origin=origin)
    _check_end(pattern, origin)
    stages = flat(pattern.stages)
    variables = [stage.name for stage in stages]
    terms = Terms({name: 1 << at for at, name in enumerate(variables)}, schema)
    if len(variables) > CONDITIONS_MAX:
        raise PlanError(
            f"the pattern has {len(variables)} stages, more than {CONDITIONS_MAX}: use groups", origin=origin
        )
    conditions: list[tuple[int, int, Term]] = []
    bits: dict[str, int] = {}
    for name, variable, expressions in _conditions(pattern.stages, variables):
        whole = expressions[0]
        for other in expressions[1:]:
            whole = whole & other
        bits[name] = len(conditions)
        conditions.append((len(conditions), variable, _term(terms, whole, name, origin, is_condition=True)))
    if len(conditions) > CONDITIONS_MAX:
        raise PlanError(f"the pattern has {len(conditions)} conditions, more than {CONDITIONS_MAX}", origin=origin)
    made = tuple((name, _term(terms, value, name, origin)) for name, value in measures.items())
    mask = 1 << variables.index(pattern.after_stage) if pattern.after_stage else 0
    rules = Rules(True, pattern.after, mask, pattern.within_us, is_asked(conditions), partials_max)
    automaton = stage_automaton(pattern.stages, variables, bits)
    return MatchRows(keys, pattern.text, automaton, tuple(conditions), made, rules, rows, pattern.within_us > 0, origin)


def is_asked(conditions: Sequence[tuple[int, int, Term]]) -> bool:
    """Whether a condition depends on rows bound before."""
    return not all(term.depends_on_row(variable) for _, variable, term in conditions)


def _check_end(pattern: Pattern, origin: Origin | None) -> None:
    last = pattern.stages[-1]
    if len(pattern.stages) > 1 and last.contiguity == "not_followed_by" and not pattern.within_us:
        raise PlanError(
            f"the pattern ends with not_followed_by({last.name!r}), so a match is never certain: add within('10min')",
            origin=origin,
        )


def _conditions(stages: Sequence[Stage], variables: Sequence[str]) -> list[tuple[str, int, list[Expression]]]:
    """The name of each condition, the variable that it belongs to, and its parts."""
    found: list[tuple[str, int, list[Expression]]] = []
    for stage in stages:
        if stage.group:
            found += _conditions(stage.group, variables)
        elif stage.conditions:
            found.append((stage.name, variables.index(stage.name), list(stage.conditions)))
        if stage.until is not None:
            found.append((stage.until_name, variables.index(flat((stage,))[0].name), [stage.until]))
    return found


def _term(
    terms: Terms, value: str | Expression, name: str, origin: Origin | None, *, is_condition: bool = False
) -> Term:
    what = f"condition of {name!r}" if is_condition else f"measure {name!r}"
    if not isinstance(value, str | Expression):
        raise PlanError(f"the {what} is {as_given(value)}: write SQL such as 'LAST(a.price)'", origin=origin)
    try:
        tree = parse_term(value) if isinstance(value, str) else value.tree
        return terms.condition(tree, repr(name)) if is_condition else terms.term(tree)
    except TermError as error:
        raise PlanError(f"the {what}: {error.message}", origin=origin) from None
