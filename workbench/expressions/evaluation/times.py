"""Functions of dates and times, and instants as text; parts of an instant are those of UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from workbench.expressions.evaluation.casts import cast, widen
from workbench.expressions.tree.node import Datum, Node, apply, call, constant
from workbench.expressions.tree.scope import Scope
from workbench.expressions.tree.sql import Tree, render
from workbench.expressions.tree.types import INSTANT, LOCAL, is_time

_INT = pa.int32()
_UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")

Builder = Callable[[Scope, Tree], Node]


def _time(scope: Scope, tree: Tree, what: str) -> Node:
    """An operand that must be a timestamp, a date or constant text with a time."""
    if isinstance(tree, exp.TsOrDsToDate):  # the parser's own addition
        tree = tree.this
    node = scope.node(tree)
    if pa.types.is_null(node.type):
        return widen(node, LOCAL)
    if not is_time(node.type):
        raise scope.needs(what, "a timestamp or date", node, "timestamp")
    return node


def _part(kernel: str, name: str, options: Any = None) -> Builder:
    def build(scope: Scope, tree: Tree) -> Node:
        text = render(tree)
        local = widen(_time(scope, tree.this, name), LOCAL)
        part = apply(kernel, [local], pa.int64(), text, options)
        return apply("cast", [part], _INT, text, pc.CastOptions.unsafe(_INT))

    return build


def _truncate(scope: Scope, tree: Tree) -> Node:
    unit = str(tree.args["unit"].name).lower()
    if unit not in _UNITS:
        raise scope.error(f"{render(tree)} truncates to the unknown unit {unit!r}: valid are {', '.join(_UNITS)}")
    node = _time(scope, tree.this, "date_trunc")
    target = INSTANT if pa.types.is_date(node.type) else node.type
    floored = apply(
        "floor_temporal",
        [widen(node, LOCAL)],
        LOCAL,
        render(tree),
        pc.RoundTemporalOptions(1, unit, week_starts_monday=True),
    )
    return widen(floored, target)


def _to_date(scope: Scope, tree: Tree) -> Node:
    node = scope.node(tree.this)
    day = cast(node, pa.date32(), render(tree))
    if day is None:
        raise scope.needs("to_date", "a timestamp or text", node, "timestamp")
    return day


def _seconds(scope: Scope, tree: Tree) -> Node:
    """Whole seconds since 1970, truncated towards zero as in Spark (a CAST to bigint rounds down)."""
    instant, text = widen(_time(scope, tree.this, "unix_timestamp"), INSTANT), render(tree)
    micros = apply("cast", [instant], pa.int64(), text, pc.CastOptions.unsafe(pa.int64()))
    return apply("divide", [micros, constant(pa.scalar(1_000_000, pa.int64()), "")], pa.int64(), text)


def _extract(scope: Scope, tree: Tree) -> Node:
    """EXTRACT(HOUR FROM t) is hour(t). Spark's seconds have a fraction there, so they are left out."""
    named = str(tree.this.name).upper()
    if named not in _EXTRACTED:
        nearest = (
            "use second(...), which has no fraction" if named == "SECOND" else f"valid are {', '.join(_EXTRACTED)}"
        )
        raise scope.error(f"{render(tree)} takes the part {named!r}: {nearest}")
    return scope.node(_EXTRACTED[named](this=tree.expression))


_EXTRACTED: dict[str, type[exp.Func]] = {
    **{"YEAR": exp.Year, "QUARTER": exp.Quarter, "MONTH": exp.Month, "DAY": exp.Day, "DOY": exp.DayOfYear},
    **{"DAYOFWEEK": exp.DayOfWeek, "HOUR": exp.Hour, "MINUTE": exp.Minute},
}

BUILDERS: dict[type, Builder] = {
    exp.Extract: _extract,
    exp.Year: _part("year", "year"),
    exp.Quarter: _part("quarter", "quarter"),
    exp.Month: _part("month", "month"),
    exp.Day: _part("day", "day"),
    exp.DayOfMonth: _part("day", "dayofmonth"),
    exp.DayOfYear: _part("day_of_year", "dayofyear"),
    exp.DayOfWeek: _part("day_of_week", "dayofweek", pc.DayOfWeekOptions(count_from_zero=False, week_start=7)),
    exp.Hour: _part("hour", "hour"),
    exp.Minute: _part("minute", "minute"),
    exp.Second: _part("second", "second"),
    exp.TimestampTrunc: _truncate,
    exp.TsOrDsToDate: _to_date,
    exp.StrToUnix: _seconds,
}


# instants as text -------------------------------------------------------------------------------------------------

_FORMATS = {
    "yyyy": ("%Y", "day"),
    "MM": ("%m", "day"),
    "dd": ("%d", "day"),
    "DDD": ("%j", "day"),
    "HH": ("%H", "hour"),
    "mm": ("%M", "minute"),
    "ss": ("%S", "second"),
}
"""Letters of a pattern: the same in C's notation, and the unit below which instants are equal in it."""
_WRITTEN_UNITS = ("day", "hour", "minute", "second")
_YEAR_10000_S = 253_402_300_800


def date_format(scope: Scope, tree: Tree) -> Node:
    """``date_format(instant, 'yyyy-MM-dd HH:mm:ss')``: each distinct second, minute or day is written once."""
    if len(tree.expressions) != 2:
        raise scope.error(f"{render(tree)} has {len(tree.expressions)} operands instead of 2")
    operand, wanted = tree.expressions
    while isinstance(operand, exp.TimeStrToTime | exp.TsOrDsToTimestamp | exp.TsOrDsToDate):
        operand = operand.this  # the parser's own addition
    node = scope.node(operand)
    if not is_time(node.type):
        raise scope.needs("date_format", "a timestamp or date", node, "timestamp")
    wanted = scope.constant_text(wanted, "date_format")
    pattern, signed, unit, at = "", "", 0, 0
    for match in re.finditer(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']", wanted):
        found = match.group()
        if found[0] == "'":
            letters = (found[1:-1] or "'").replace("%", "%%")
        elif found in _FORMATS:
            letters, below = _FORMATS[found]
            unit = max(unit, _WRITTEN_UNITS.index(below))
        elif found[0].isalpha():
            raise scope.error(f"{render(tree)} has {found!r} in its pattern: valid are {', '.join(_FORMATS)}")
        else:
            letters = found.replace("%", "%%")
        pattern, signed = pattern + letters, signed + ("+%Y" if found == "yyyy" else letters)
        at = match.end()
    if at < len(wanted):
        raise scope.error(f"{render(tree)}: a quotation mark in its pattern is not closed")
    return call(_formatting(pattern, signed, _WRITTEN_UNITS[unit]), [widen(node, LOCAL)], pa.string(), render(tree))


def _formatting(pattern: str, signed: str, unit: str) -> Callable[[Datum], Datum]:
    """Args: pattern; the same with a sign before the year, as Spark writes those of more than four digits; the unit."""
    flooring = pc.RoundTemporalOptions(1, unit)
    year_10000 = pa.scalar(_YEAR_10000_S, pa.timestamp("s"))  # at an import, it would import pandas
    plain, with_sign = pc.StrftimeOptions(pattern), pc.StrftimeOptions(signed)

    def formatted(seconds: Any) -> Any:
        texts = pc.call_function("strftime", [seconds], plain)
        if signed == pattern:
            return texts
        late = pc.call_function("greater_equal", [seconds, year_10000])
        if not (late.as_py() if isinstance(late, pa.Scalar) else late.true_count):
            return texts
        return pc.if_else(late, pc.call_function("strftime", [seconds], with_sign), texts)

    def written(value: Datum) -> Datum:
        seconds: Any = pc.call_function("floor_temporal", [value], flooring).cast(pa.timestamp("s"))
        if isinstance(seconds, pa.Scalar):
            return formatted(seconds)
        coded = seconds.dictionary_encode()
        return formatted(coded.dictionary).take(coded.indices)

    return written
