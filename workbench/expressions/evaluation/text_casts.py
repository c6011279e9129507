"""Values to text and back, in the formats of Spark SQL."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from workbench.expressions.tree.node import Datum, Node, apply, apply_or_null, call, null_of
from workbench.expressions.tree.types import INSTANT, LOCAL

_SPACE = " \t\n\r\f\v"
_INTEGER = r"^[+-]?[0-9]+$"
_DOUBLE = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")
_SPECIAL = {"nan": math.nan} | {
    f"{sign}{name}": float(f"{sign}inf") for name in ("inf", "infinity") for sign in ("", "-", "+")
}


def parse_text(node: Node, type_: pa.DataType, text: str) -> Node | None:
    """Text parsed as a value of `type_`, null if it is invalid; None if the type cannot be parsed from text.

    Times are ISO: ``2013-01-31``, ``2013-01-31 06:00:00.25``, with ``T`` for the blank, with a zone (``Z``, ``+02:00``)
    or else in UTC.
    """
    trimmed = apply("utf8_trim", [node], pa.string(), text, pc.TrimOptions(_SPACE))
    if pa.types.is_boolean(type_):
        return call(_parse_boolean, [trimmed], type_, text)
    if pa.types.is_integer(type_):
        return _read(_replace(_matching(trimmed, _INTEGER), "^[+]", ""), type_, text)
    if pa.types.is_floating(type_):
        plain = _read(_replace(_matching(trimmed, _DOUBLE), "^[+]", ""), type_, text)
        return call(_with_special_floats(type_), [plain, trimmed], type_, text)
    if pa.types.is_date(type_):
        return _read(_replace(_matching(trimmed, f"^{_DAY}(?:[T ].*)?$"), "[T ].*$", ""), type_, text)
    if type_ in (INSTANT, LOCAL):
        moment = _matching(trimmed, f"^{_DAY}(?:[T ]{_CLOCK}{_ZONE}?)?$")
        timed = _replace(moment, f"^({_DAY})$", r"\1 00:00:00")
        zoned = _replace(timed, f"^({_DAY}[T ]{_CLOCK})$", r"\1Z")
        instant = _read(zoned, INSTANT, text)
        return instant if type_ == INSTANT else apply("cast", [instant], LOCAL, text, pc.CastOptions.unsafe(LOCAL))
    return None


def format_text(node: Node, text: str) -> Node | None:
    """A value as Spark writes it; None if the type cannot be written."""
    type_ = node.type
    if pa.types.is_floating(type_):
        return call(_per_value(format_float), [node], pa.string(), text)
    if pa.types.is_timestamp(type_):
        local = apply("cast", [node], LOCAL, text, pc.CastOptions.unsafe(LOCAL))
        written = apply("strftime", [local], pa.string(), text, pc.StrftimeOptions("%Y-%m-%d %H:%M:%S"))
        return _replace(_replace(written, r"(\.[0-9]*?)0+$", r"\1"), r"\.$", "")
    tests = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_decimal)
    if any(test(type_) for test in tests):
        return apply("cast", [node], pa.string(), text, pc.CastOptions.safe(pa.string()))
    return None


def _matching(node: Node, pattern: str) -> Node:
    """The text if it matches, else null."""
    match = apply("match_substring_regex", [node], pa.bool_(), node.text, pc.MatchSubstringOptions(pattern))
    return apply("if_else", [match, node, null_of(pa.string())], pa.string(), node.text)


def _replace(node: Node, pattern: str, by: str) -> Node:
    return apply("replace_substring_regex", [node], pa.string(), node.text, pc.ReplaceSubstringOptions(pattern, by))


def _read(node: Node, type_: pa.DataType, text: str) -> Node:
    return apply_or_null("cast", [node], type_, text, pc.CastOptions.safe(type_))


def _parse_boolean(value: Datum) -> Datum:
    word = pc.utf8_lower(value)
    yes, no = _booleans()
    known = pc.or_(pc.is_in(word, yes), pc.is_in(word, no))
    return pc.if_else(known, pc.is_in(word, yes), pa.scalar(None, pa.bool_()))


@cache
def _booleans() -> tuple[pa.Array, pa.Array]:
    """The words for true and for false; created on demand, because ``pa.array`` imports pandas."""
    return pa.array(_TRUE), pa.array(_FALSE)


def _with_special_floats(type_: pa.DataType) -> Callable[[Datum, Datum], Datum]:
    def fill(plain: Datum, word: Datum) -> Datum:
        if isinstance(plain, pa.Array) and plain.null_count == word.null_count:
            return plain
        word = pc.utf8_lower(word)
        for name, value in _SPECIAL.items():
            plain = pc.if_else(pc.fill_null(pc.equal(word, name), False), pa.scalar(value, type_), plain)
        return plain

    return fill


def _per_value(function: Callable[[float], str]) -> Callable[[Datum], Datum]:
    def run(value: Datum) -> Datum:
        if isinstance(value, pa.Scalar):
            return pa.scalar(function(value.as_py()) if value.is_valid else None, pa.string())
        distinct = value.dictionary_encode()
        texts = pa.array([function(item) for item in distinct.dictionary.to_pylist()], pa.string())
        return texts.take(distinct.indices)

    return run


def format_float(value: float) -> str:
    """A double as Java writes it: ``1.0``, ``0.001``, ``1.0E7``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, exponent = f"{value!r}".split("e") if "e" in f"{value!r}" else _scientific(value)
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _scientific(value: float) -> tuple[str, str]:
    """The shortest exact digits, with one before the decimal point, and the exponent of ten."""
    sign, digits = "-" * (value < 0), f"{abs(value)!r}"
    whole, _, fraction = digits.partition(".")
    if whole == "0":
        stripped = fraction.lstrip("0")
        exponent = -(len(fraction) - len(stripped) + 1)
    else:
        stripped, exponent = (whole + fraction), len(whole) - 1
    stripped = stripped.rstrip("0") or "0"
    return f"{sign}{stripped[0]}.{stripped[1:] or '0'}", str(exponent)
