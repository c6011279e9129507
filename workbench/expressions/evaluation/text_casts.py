"""Values to text and back, in the formats of Spark SQL."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.expressions.tree.node import Datum, Node, apply, apply_or_null, call, null_of
from workbench.expressions.tree.strict import NotValidError
from workbench.expressions.tree.text_times import TIME_ALONE, days_of_text, micros_of_text
from workbench.expressions.tree.types import INSTANT, LOCAL

_SPACE = " \t\n\r\f\v"
_INTEGER = r"^[+-]?[0-9]+$"
_DOUBLE = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?")
_UNUSUAL = r"^(?:[+-]?(?:[iI][nN][fF]|0[xX]|[0-9.].*[dDfF]$)|[nN][aA][nN]$)"
_YEAR = r"^[+-]?[0-9]{4}"
_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")
_SPECIAL = {"nan": math.nan} | {
    f"{sign}{name}": float(f"{sign}inf") for name in ("inf", "infinity") for sign in ("", "-", "+")
}


def parse_text(node: Node, type_: pa.DataType, text: str) -> Node | None:
    """Text parsed as a value of `type_`, null if it is invalid; None if the type cannot be parsed from text.

    Arrow reads the usual forms, such as ``2013-01-31 06:00:00.25``; what it leaves is read once for each distinct text.
    """
    trimmed = apply("utf8_trim", [node], pa.string(), text, pc.TrimOptions(_SPACE))
    if pa.types.is_boolean(type_):
        return call(_parse_boolean, [trimmed], type_, text)
    if pa.types.is_integer(type_):
        return _read(_replace(_matching(trimmed, _INTEGER), "^[+]", ""), type_, text)
    if pa.types.is_floating(type_):
        plain = _read(_replace(_matching(trimmed, _DOUBLE), "^[+]", ""), type_, text)
        return call(_completed(float_of_text, type_, _UNUSUAL), [plain, trimmed], type_, text)
    if pa.types.is_date(type_) or type_ in (INSTANT, LOCAL):
        _check_is_no_clock(node, type_)
    if pa.types.is_date(type_):
        usual = f"^{_DAY}$"
        plain = _read(_matching(trimmed, usual), type_, text)
        return call(_completed(days_of_text, pa.int32(), _YEAR, usual), [plain, trimmed], type_, text)
    if type_ in (INSTANT, LOCAL):
        usual = f"^{_DAY}[T ]{_CLOCK}$"
        plain = _read(_matching(trimmed, usual), LOCAL, text)
        parse = partial(micros_of_text, zoned=type_ == INSTANT)
        moment = call(_completed(parse, pa.int64(), _YEAR, usual), [plain, trimmed], LOCAL, text)
        return apply("cast", [moment], type_, text, pc.CastOptions.unsafe(type_))
    return None


def _check_is_no_clock(node: Node, type_: pa.DataType) -> None:
    """Refuse a constant text for which Spark asks its clock, or that it takes for a special value.

    Raises:
        NotValidError: for example ``'now'``.
    """
    if node.constant is None or not node.constant.is_valid:
        return
    given = str(node.constant.as_py()).strip()
    if given.lower() in _SPECIAL_TIMES or (not pa.types.is_date(type_) and TIME_ALONE.fullmatch(given)):
        raise NotValidError(
            f"{node.text} is a time of the day on which the query runs, or a special value: write the date, as in "
            "'2013-01-31 06:00:00'"
        )


_SPECIAL_TIMES = ("epoch", "now", "today", "tomorrow", "yesterday")


def _completed(
    parse: Callable[[str], float | None], stored: pa.DataType, shape: str, usual: str | None = None
) -> Callable[[Datum, Datum], Datum]:
    """Reads the texts that have no value yet.

    Args:
        parse: makes a value of one text, or None.
        stored: the type of the numbers that it makes, as which the values are stored.
        shape: what texts look like that may have a value; the others are not read one by one.
        usual: what those look like that would have a value already if they had one.
    """

    def matches(given: Datum, pattern: str) -> Datum:
        return pc.call_function("match_substring_regex", [given], pc.MatchSubstringOptions(pattern))

    def complete(plain: Datum, given: Datum) -> Datum:
        if isinstance(plain, pa.Scalar):
            if plain.is_valid or not given.is_valid:
                return plain
            return pa.scalar(parse(given.as_py()), stored).cast(plain.type)
        if plain.null_count == given.null_count:
            return plain
        missing = pc.and_(plain.is_null(), given.is_valid())
        texts = given.filter(missing)
        wanted = matches(texts, shape)
        if usual is not None:
            wanted = pc.and_not(wanted, matches(texts, usual))
        if not wanted.true_count:
            return plain
        rest = pc.replace_with_mask(missing, missing, wanted)
        texts = texts.filter(wanted).dictionary_encode()
        values = pa.array([parse(text) for text in texts.dictionary.to_pylist()], stored).cast(plain.type)
        return pc.replace_with_mask(plain, rest, values.take(texts.indices))

    return complete


def float_of_text(text: str) -> float | None:
    """The number that Java reads in a text that has no usual form; None if there is none.

    Example:
        >>> float_of_text("1.5e3d"), float_of_text("-Infinity"), float_of_text("0x1p3"), float_of_text("1_000")
        (1500.0, -inf, 8.0, None)
    """
    special = _SPECIAL.get(text.lower())
    if special is not None:
        return special
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text.rstrip("dDfF"))
        except (OverflowError, ValueError):
            return None
    return float(text[:-1]) if re.fullmatch(f"{_DOUBLE[1:-1]}[dDfF]", text) else None


def format_text(node: Node, text: str) -> Node | None:
    """A value as Spark writes it; None if the type cannot be written."""
    type_ = node.type
    if pa.types.is_float32(type_):
        return call(_per_value(lambda value: format_float(float(str(np.float32(value))))), [node], pa.string(), text)
    if pa.types.is_floating(type_):
        return call(_per_value(format_float), [node], pa.string(), text)
    if pa.types.is_timestamp(type_):
        local = apply("cast", [node], LOCAL, text, pc.CastOptions.unsafe(LOCAL))
        written = apply("strftime", [local], pa.string(), text, pc.StrftimeOptions("%Y-%m-%d %H:%M:%S"))
        return _signed(_replace(_replace(written, r"(\.[0-9]*?)0+$", r"\1"), r"\.$", ""))
    tests = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_decimal)
    if any(test(type_) for test in tests):
        written = apply("cast", [node], pa.string(), text, pc.CastOptions.safe(pa.string()))
        return _signed(written) if pa.types.is_date(type_) else written
    return None


def _signed(node: Node) -> Node:
    """Dates with the sign that Spark writes before a year of more than four digits."""
    return _replace(node, r"^([0-9]{5,}-)", r"+\1")


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
