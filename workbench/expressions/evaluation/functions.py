"""Functions of numbers and text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from workbench.expressions.evaluation.casts import cast, widen
from workbench.expressions.evaluation.decimals import round_decimal, whole_decimal
from workbench.expressions.evaluation.searching import contains, matches, required_literal, search
from workbench.expressions.tree.node import Datum, Node, apply, apply_or_null, call, constant, null_of
from workbench.expressions.tree.scope import Scope
from workbench.expressions.tree.sql import Tree, render

_BOOL, _DOUBLE, _INT, _TEXT = pa.bool_(), pa.float64(), pa.int32(), pa.string()
_LONGEST_TEXT = 2**31 - 1

Builder = Callable[[Scope, Tree], Node]


def _abs(scope: Scope, tree: Tree) -> Node:
    node = scope.number(tree.this, "abs")
    if pa.types.is_decimal(node.type):
        return apply("abs", [node], node.type, render(tree))
    return apply_or_null("abs_checked", [node], node.type, render(tree))


def _round(scope: Scope, tree: Tree) -> Node:
    node, places = scope.number(tree.this, "round"), tree.args.get("decimals")
    decimals = 0 if places is None else scope.constant_int(places, "round")
    if pa.types.is_decimal(node.type):
        return round_decimal(node, decimals, render(tree))
    if pa.types.is_floating(node.type) and abs(decimals) > _PLACES_MAX:
        raise scope.error(f"{render(tree)} rounds to {decimals} places: write -{_PLACES_MAX} to {_PLACES_MAX}")
    options = pc.RoundOptions(decimals, round_mode="half_towards_infinity")
    if pa.types.is_floating(node.type) and decimals > 0:
        return call(_as_written(decimals, options), [node], node.type, render(tree))
    return apply_or_null("round", [node], node.type, render(tree), options)


def _as_written(decimals: int, options: pc.RoundOptions) -> Callable[[Datum], Datum]:
    """ROUND of a double as the shortest decimal that it is written as: 1.005 becomes 1.01, though it is below 1.005."""

    def one(value: float) -> float:
        with localcontext() as context:
            context.prec = 400
            return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))

    def run(value: Datum) -> Datum:
        if isinstance(value, pa.Scalar):
            known = value.is_valid and math.isfinite(value.as_py())
            return pa.scalar(one(value.as_py()), value.type) if known else value
        made = pc.call_function("round", [value], options)
        if made.null_count == len(made):
            return made
        numbers, values = value.to_numpy(zero_copy_only=False), made.to_numpy(zero_copy_only=False)
        ends = pc.min_max(value)
        unsure = max(abs(ends["min"].as_py()), abs(ends["max"].as_py())) * _NEAR
        with np.errstate(invalid="ignore"):
            rows = np.flatnonzero(np.abs(numbers - values) >= 0.5 * 10.0**-decimals - unsure)
        rows = rows[np.isfinite(numbers[rows])]
        if not len(rows):
            return made
        values = values.copy()
        values[rows] = [one(number) for number in numbers[rows].tolist()]
        return pa.array(values, value.type, mask=value.is_null().to_numpy(zero_copy_only=False))

    return run


_PLACES_MAX = 308
"""The places of a double, before its point and behind it."""
_NEAR = 2.0**-50
"""How far, relative to a number, the rounding of products can move it past a half."""


def _whole(kernel: str) -> Builder:
    """FLOOR and CEIL: a bigint."""

    def build(scope: Scope, tree: Tree) -> Node:
        text = render(tree)
        if tree.args.get("decimals") is not None:
            raise scope.error(f"{text} is not supported with decimals: use round")
        node = scope.number(tree.this, kernel)
        if pa.types.is_decimal(node.type):
            return whole_decimal(kernel, node, text)
        if pa.types.is_integer(node.type):
            return widen(node, pa.int64())
        whole = cast(apply(kernel, [node], node.type, text), pa.int64(), text)
        assert whole is not None, "doubles convert to bigint"
        return call(_zero_of_nan, [whole, node], pa.int64(), text)

    return build


def _zero_of_nan(whole: Datum, number: Datum) -> Datum:
    """Zero where a number is NaN, as in Spark."""
    if isinstance(whole, pa.Array) and whole.null_count == number.null_count:
        return whole
    return pc.if_else(pc.fill_null(pc.is_nan(number), False), pa.scalar(0, pa.int64()), whole)


def _of_double(kernel: str, name: str) -> Builder:
    def build(scope: Scope, tree: Tree) -> Node:
        return apply(kernel, [widen(scope.number(tree.this, name), _DOUBLE)], _DOUBLE, render(tree))

    return build


def _logarithm(scope: Scope, tree: Tree) -> Node:
    """The natural logarithm; null for zero and below, and NaN for NaN, as in Spark."""
    node = widen(scope.number(tree.this, "ln"), _DOUBLE)
    below = apply("less_equal", [node, constant(pa.scalar(0.0), "0")], _BOOL, "")
    kept = apply("if_else", [below, null_of(_DOUBLE), node], _DOUBLE, "")
    return apply("ln", [kept], _DOUBLE, render(tree))


def _power(scope: Scope, tree: Tree) -> Node:
    operands = [widen(scope.number(part, "power"), _DOUBLE) for part in (tree.this, tree.expression)]
    return apply("power", operands, _DOUBLE, render(tree))


def _is_nan(scope: Scope, tree: Tree) -> Node:
    node = widen(scope.number(tree.this, "isnan"), _DOUBLE)
    test = apply("is_nan", [node], _BOOL, "")
    return apply("coalesce", [test, constant(pa.scalar(False), "")], _BOOL, render(tree))


def _of_text(kernel: str, name: str, type_: pa.DataType = _TEXT) -> Builder:
    def build(scope: Scope, tree: Tree) -> Node:
        return apply(kernel, [scope.string(tree.this, name)], type_, render(tree))

    return build


def _in_case(kernel: str, name: str, change: Callable[[str], str]) -> Builder:
    """UPPER and LOWER: Arrow changes single characters, but some become several (ß, SS) or depend on others (Σ)."""

    def changed(value: Datum) -> Datum:
        if isinstance(value, pa.Scalar):
            return pa.scalar(change(value.as_py()) if value.is_valid else None, _TEXT)
        plain = pc.call_function(kernel, [value])
        if _is_ascii(value):
            return plain
        others = pc.fill_null(pc.not_equal(pc.binary_length(value), pc.utf8_length(value)), False)
        texts = value.filter(others).dictionary_encode()
        made = pa.array([change(text) for text in texts.dictionary.to_pylist()], _TEXT)
        return pc.replace_with_mask(plain, others, made.take(texts.indices))

    def build(scope: Scope, tree: Tree) -> Node:
        return call(changed, [scope.string(tree.this, name)], _TEXT, render(tree))

    return build


def _is_ascii(value: pa.StringArray) -> bool:
    _, offsets, data = value.buffers()
    if not len(value) or data is None:
        return True
    first, last = np.frombuffer(offsets, np.int32)[[value.offset, value.offset + len(value)]]
    return int(np.frombuffer(data, np.uint8)[first:last].max(initial=0)) < 128


def _contains(scope: Scope, tree: Tree) -> Node:
    node = scope.string(tree.this, "contains")
    return search(contains(scope.constant_text(tree.expression, "contains")), node, render(tree))


def _find(kernel: str, name: str) -> Builder:
    """A test of text against constant text."""

    def build(scope: Scope, tree: Tree) -> Node:
        node = scope.string(tree.this, name)
        wanted = scope.constant_text(tree.expression, name)
        return apply(kernel, [node], _BOOL, render(tree), pc.MatchSubstringOptions(wanted))

    return build


def _like(ignore_case: bool) -> Builder:
    def build(scope: Scope, tree: Tree) -> Node:
        node = scope.string(tree.this, "LIKE")
        pattern = like_pattern(scope, scope.constant_text(tree.expression, "LIKE"), "\\")
        return _match(node, pattern, render(tree), ignore_case)

    return build


def _escape(scope: Scope, tree: Tree) -> Node:
    like, escape = tree.this, scope.constant_text(tree.expression, "ESCAPE")
    if len(escape) != 1 or not isinstance(like, exp.Like | exp.ILike):
        raise scope.error(f"{render(tree)}: ESCAPE takes one character after LIKE")
    node = scope.string(like.this, "LIKE")
    pattern = like_pattern(scope, scope.constant_text(like.expression, "LIKE"), escape)
    result = _match(node, pattern, render(tree), isinstance(like, exp.ILike))
    return apply("invert", [result], _BOOL, render(tree)) if like.args.get("negate") else result


def like_pattern(scope: Scope, pattern: str, escape: str) -> str:
    """A LIKE pattern as an anchored regular expression."""
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following not in ("%", "_", escape):
                raise scope.error(
                    f"the LIKE pattern {pattern!r} has {escape!r} before neither % nor _: "
                    f"write {escape * 2} for the character itself"
                )
            parts.append(re.escape(following))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return f"(?s)^{''.join(parts)}$"


def _match(node: Node, pattern: str, text: str, ignore_case: bool = False) -> Node:
    if ignore_case:
        options = pc.MatchSubstringOptions(pattern, ignore_case=True)
        return apply("match_substring_regex", [node], _BOOL, text, options)
    return search(matches(pattern, required_literal(pattern.removeprefix("(?s)"))), node, text)


def _rlike(scope: Scope, tree: Tree) -> Node:
    node, pattern = scope.string(tree.this, "RLIKE"), scope.constant_text(tree.expression, "RLIKE")
    try:
        pc.match_substring_regex(pa.scalar(""), pattern)
    except pa.ArrowInvalid:
        raise scope.error(
            f"the regular expression {pattern!r} is not valid: write it in RE2's syntax, without look-around"
        ) from None
    return _match(node, pattern, render(tree))


def _concat(scope: Scope, tree: Tree) -> Node:
    nodes = []
    for part in tree.expressions or [tree.this, tree.expression]:
        node = scope.node(part)
        text = cast(node, _TEXT, node.text)
        if text is None:
            raise scope.needs("concat", "text", node, "string")
        nodes.append(text)
    separator = constant(pa.scalar(""), "''")
    return apply("binary_join_element_wise", [*nodes, separator], _TEXT, render(tree))


def _substring(scope: Scope, tree: Tree) -> Node:
    """Positions count from 1, and from the end when negative."""
    node, text = scope.string(tree.this, "substring"), render(tree)
    if tree.args.get("start") is None:
        raise scope.error(f"{text} needs the position of the first character: substring(text, position, length)")
    start = scope.constant_int(tree.args["start"], "substring")
    length = tree.args.get("length")
    count = _LONGEST_TEXT if length is None else max(0, scope.constant_int(length, "substring"))
    return call(_slice(start, count), [node], _TEXT, text)


def _slice(start: int, count: int) -> Callable[[Datum], Datum]:
    if start >= 0:
        first = max(0, start - 1)
        options = pc.SliceOptions(first, min(first + count, _LONGEST_TEXT))
        return lambda value: pc.call_function("utf8_slice_codeunits", [value], options)
    return lambda value: pc.utf8_slice_codeunits(value, start, start + count if start + count < 0 else None)


def _trim(scope: Scope, tree: Tree) -> Node:
    if tree.expression is not None:
        raise scope.error(f"{render(tree)} is not supported: trim removes blanks only")
    node = scope.string(tree.this, "trim")
    kernel = {"LEADING": "utf8_ltrim", "TRAILING": "utf8_rtrim"}.get(
        str(tree.args.get("position") or "").upper(), "utf8_trim"
    )
    return apply(kernel, [node], _TEXT, render(tree), pc.TrimOptions(" "))


def _replace(scope: Scope, tree: Tree) -> Node:
    old = scope.constant_text(tree.expression, "replace")
    if not old:  # Arrow would find it everywhere, endlessly; Spark returns the text unchanged
        return scope.string(tree.this, "replace")
    new = tree.args.get("replacement")
    options = pc.ReplaceSubstringOptions(old, "" if new is None else scope.constant_text(new, "replace"))
    return apply("replace_substring", [scope.string(tree.this, "replace")], _TEXT, render(tree), options)


BUILDERS: dict[type, Builder] = {
    exp.Abs: _abs,
    exp.Round: _round,
    exp.Floor: _whole("floor"),
    exp.Ceil: _whole("ceil"),
    exp.Sqrt: _of_double("sqrt", "sqrt"),
    exp.Exp: _of_double("exp", "exp"),
    exp.Ln: _logarithm,
    exp.Pow: _power,
    exp.IsNan: _is_nan,
    exp.Lower: _in_case("utf8_lower", "lower", str.lower),
    exp.Upper: _in_case("utf8_upper", "upper", str.upper),
    exp.Length: _of_text("utf8_length", "length", _INT),
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Replace: _replace,
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.Contains: _contains,
    exp.StartsWith: _find("starts_with", "startswith"),
    exp.EndsWith: _find("ends_with", "endswith"),
    exp.Like: _like(ignore_case=False),
    exp.ILike: _like(ignore_case=True),
    exp.Escape: _escape,
    exp.RegexpLike: _rlike,
}
