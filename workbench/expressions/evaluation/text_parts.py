"""Functions that take text apart, and find places in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from workbench.expressions.evaluation.json_parts import json_array_length, json_value
from workbench.expressions.evaluation.searching import matches, required_literal
from workbench.expressions.evaluation.times import date_format
from workbench.expressions.tree.node import Datum, Node, apply, call, constant, null_of
from workbench.expressions.tree.scope import Scope
from workbench.expressions.tree.sql import Tree, render

_INT, _LONG, _TEXT = pa.int32(), pa.int64(), pa.string()
_LONGEST = 10_000
"""The longest text that lpad, rpad and repeat make."""

Builder = Callable[[Scope, Tree], Node]


# parts between delimiters -----------------------------------------------------------------------------------------


def _split_part(scope: Scope, tree: Tree) -> Node:
    """``split_part(text, delimiter, n)``: from 1, or from the end; empty where there are fewer parts."""
    node = scope.string(tree.this, "split_part")
    delimiter = scope.constant_text(tree.args["delimiter"], "split_part")
    place = scope.constant_int(tree.args["part_index"], "split_part")
    if place == 0:
        raise scope.error(f"{render(tree)}: the first part has the number 1, and the last one -1")
    return _part(node, delimiter, place - 1 if place > 0 else place, "", render(tree))


def _split(scope: Scope, tree: Tree) -> Node:
    """``split(text, pattern)``: a list of the parts between matches."""
    if tree.args.get("limit") is not None:
        raise scope.unsupported(tree)
    node, pattern = scope.string(tree.this, "split"), scope.constant_text(tree.expression, "split")
    if not pattern:
        raise scope.error(f"{render(tree)}: an empty pattern has no matches between which text could be split")
    options = pc.SplitPatternOptions(pattern if re.escape(pattern) == pattern else _regular(scope, pattern))
    name = "split_pattern" if re.escape(pattern) == pattern else "split_pattern_regex"
    return call(lambda text: pc.call_function(name, [text], options), [node], pa.list_(_TEXT), render(tree))


def _bracket(scope: Scope, tree: Tree) -> Node:
    """``split(text, pattern)[n]``, from 0; null where there are fewer parts."""
    split, places = tree.this, tree.expressions
    if not isinstance(split, exp.RegexpSplit) or len(places) != 1 or split.args.get("limit") is not None:
        raise scope.unsupported(tree)
    node, pattern = scope.string(split.this, "split"), scope.constant_text(split.expression, "split")
    place = scope.constant_int(places[0], "split") - int(tree.args.get("offset") or 0)
    if place < 0:
        raise scope.error(f"{render(tree)}: the first part has the number 0")
    if re.escape(pattern) == pattern:
        return _part(node, pattern, place, None, render(tree))
    options = pc.SplitPatternOptions(_regular(scope, pattern))
    return _part_of(lambda text: pc.call_function("split_pattern_regex", [text], options), node, place, None, tree)


def _split_index(scope: Scope, tree: Tree) -> Node:
    """Flink's ``SPLIT_INDEX(text, delimiter, n)``, from 0; null where there are fewer parts."""
    text, delimiter, place = _operands(scope, tree, 3)
    number = scope.constant_int(place, "split_index")
    wanted = scope.constant_text(delimiter, "split_index")
    return _part(scope.string(text, "split_index"), wanted, max(number, -1), None, render(tree), never=number < 0)


def _part(node: Node, delimiter: str, place: int, missing: str | None, text: str, never: bool = False) -> Node:
    if not delimiter and missing is not None and place in (0, -1):
        return node  # nothing divides the text, so it is its only part
    if never or not delimiter:
        return call(lambda value: _without(value, missing), [node], _TEXT, text)
    # The last part needs all splits, and the n-th one only those around it.
    options = pc.SplitPatternOptions(delimiter, max_splits=place + 1 if place >= 0 else -1)
    return call(
        lambda value: _at(pc.call_function("split_pattern", [value], options), place, missing), [node], _TEXT, text
    )


def _part_of(split: Callable[[Datum], Datum], node: Node, place: int, missing: str | None, tree: Tree) -> Node:
    return call(lambda value: _at(split(value), place, missing), [node], _TEXT, render(tree))


def _at(parts: Datum, place: int, missing: str | None) -> Datum:
    """One element of each list."""
    counts = pc.list_value_length(parts)
    if place >= 0:
        there = pc.greater(counts, place)
        if isinstance(parts, pa.Scalar):
            return pa.scalar(parts.as_py()[place], _TEXT) if there.as_py() else _without(parts, missing)
        starts = parts.offsets.slice(0, len(parts))
        rows = pc.if_else(there, pc.add(starts, pa.scalar(place, _INT)), pa.scalar(None, _INT))
    else:
        there = pc.greater_equal(counts, -place)
        if isinstance(parts, pa.Scalar):
            return pa.scalar(parts.as_py()[place], _TEXT) if there.as_py() else _without(parts, missing)
        ends = parts.offsets.slice(1, len(parts))
        rows = pc.if_else(there, pc.add(ends, pa.scalar(place, _INT)), pa.scalar(None, _INT))
    found = parts.values.take(rows)
    return found if missing is None else pc.if_else(pc.equal(there, False), missing, found)


def _without(value: Datum, missing: str | None) -> Datum:
    """The value for text without such a part; null for null."""
    if isinstance(value, pa.Scalar):
        return pa.scalar(missing if value.is_valid else None, _TEXT)
    return pc.if_else(value.is_valid(), pa.scalar(missing, _TEXT), pa.scalar(None, _TEXT))


# regular expressions ----------------------------------------------------------------------------------------------


def _extract(scope: Scope, tree: Tree) -> Node:
    """``regexp_extract(text, pattern, group)``: the first match; null where nothing matches, as in Flink."""
    node, pattern = scope.string(tree.this, "regexp_extract"), scope.constant_text(tree.expression, "regexp_extract")
    number = tree.args.get("group")
    group = 1 if number is None else scope.constant_int(number, "regexp_extract")
    plain = _regular(scope, pattern)
    wanted, groups = capturing(plain, group)
    if not 0 <= group <= groups:
        raise scope.error(f"{render(tree)}: the pattern has {groups} groups in parentheses, and no group {group}")
    options, matching = pc.ExtractRegexOptions(wanted), matches(plain, required_literal(plain))

    def extracted(value: Datum) -> Datum:
        return pc.struct_field(pc.call_function("extract_regex", [value], options), _WANTED)

    def matched(batch: pa.RecordBatch) -> Datum:
        return pc.fill_null(matching(node.evaluate(batch)), False)

    made = call(extracted, [node], _TEXT, render(tree))
    return made if made.constant is not None or made.coded is not None else replace(made, known=matched)


_WANTED = "wanted"


def capturing(pattern: str, group: int) -> tuple[str, int]:
    """A pattern that captures only one of its groups, by the name ``wanted``, and the number of its groups.

    Example:
        >>> capturing(r"(a|b)[(](?:c)(d)\\(", 2)
        ('(?:a|b)[(](?:c)(?P<wanted>d)\\\\(', 2)
    """
    made, count, escaped, in_class = [], 0, False, False
    for at, character in enumerate(pattern):
        if not escaped and not in_class and character == "(" and pattern[at + 1 : at + 2] != "?":
            count += 1
            made.append(f"(?P<{_WANTED}>" if count == group else "(?:")
        else:
            made.append(character)
        if not escaped:
            in_class = (in_class or character == "[") and not (in_class and character == "]")
        escaped = not escaped and character == "\\"
    whole = "".join(made)
    return whole if group else f"(?P<{_WANTED}>{whole})", count


def _replaced(scope: Scope, tree: Tree) -> Node:
    node, pattern = scope.string(tree.this, "regexp_replace"), scope.constant_text(tree.expression, "regexp_replace")
    new = _rewritten(scope, tree, scope.constant_text(tree.args["replacement"], "regexp_replace"), pattern)
    replace_all = _replacing(scope, tree, _regular(scope, pattern), new)
    if (position := tree.args.get("position")) is None:
        return call(replace_all, [node], _TEXT, render(tree))
    if isinstance(position, exp.Null):
        return null_of(_TEXT, render(tree))
    first = scope.constant_int(position, "regexp_replace")
    if first < 1:
        raise scope.error(f"{render(tree)}: regexp_replace begins at the position {first}, but the first one is 1")

    def replaced(value: Datum) -> Datum:
        before = pc.utf8_slice_codeunits(value, 0, first - 1)
        rest = replace_all(pc.utf8_slice_codeunits(value, first - 1, None))
        made = pc.binary_join_element_wise(before, rest, "")
        return pc.if_else(pc.less(pc.utf8_length(value), first), value, made)

    return call(replaced, [node], _TEXT, render(tree))


def _rewritten(scope: Scope, tree: Tree, new: str, pattern: str) -> str:
    """A replacement in Java's notation, ``$1`` and ``\\$``, in RE2's."""
    made, groups = "", capturing(pattern, 0)[1]
    for found in re.finditer(r"\\(.)|\$([0-9])|(.)", new, re.DOTALL):
        escaped, group, plain = found.groups()
        if group is not None and int(group) <= groups:
            made += f"\\{group}"
        elif group is not None or plain in ("$", "\\"):
            raise scope.error(f"{render(tree)}: the replacement refers to no group of the pattern: write \\\\$ for $")
        else:
            made += (escaped or plain).replace("\\", "\\\\")
    return made


def _replacing(scope: Scope, tree: Tree, pattern: str, new: str) -> Callable[[Datum], Datum]:
    """Replaces all matches. Of empty matches, RE2 finds others than Java, so Python finds them."""
    options = pc.ReplaceSubstringOptions(pattern, new)
    if not pc.match_substring_regex(pa.scalar(""), f"^(?:{pattern})$").as_py():
        return lambda value: pc.call_function("replace_substring_regex", [value], options)
    try:
        found = re.compile(pattern, re.ASCII)
        found.sub(new, "")
    except (re.error, IndexError):
        raise scope.error(f"{render(tree)}: the pattern matches empty text, where it cannot be replaced") from None

    def replaced(value: Datum) -> Datum:
        if isinstance(value, pa.Scalar):
            return pa.scalar(found.sub(new, value.as_py()) if value.is_valid else None, _TEXT)
        distinct = value.dictionary_encode()
        texts = pa.array([found.sub(new, text) for text in distinct.dictionary.to_pylist()], _TEXT)
        return texts.take(distinct.indices)

    return replaced


def _regexp_count(scope: Scope, tree: Tree) -> Node:
    node, pattern = scope.string(tree.this, "regexp_count"), scope.constant_text(tree.expression, "regexp_count")
    options = pc.MatchSubstringOptions(_regular(scope, pattern))
    counted = apply("count_substring_regex", [node], _INT, "", options)
    return apply("cast", [counted], _INT, render(tree), pc.CastOptions.safe(_INT))


def _count_char(scope: Scope, tree: Tree) -> Node:
    """How often a character occurs: the function of the benchmark Nexmark."""
    text, character = _operands(scope, tree, 2)
    node, wanted = scope.string(text, "count_char"), scope.constant_text(character, "count_char")
    if len(wanted) != 1:
        raise scope.error(f"{render(tree)} counts one character, and {wanted!r} has {len(wanted)}")
    counted = apply("count_substring", [node], _INT, "", pc.MatchSubstringOptions(wanted))
    return apply("cast", [counted], _LONG, render(tree), pc.CastOptions.safe(_LONG))


def _regular(scope: Scope, pattern: str) -> str:
    try:
        pc.match_substring_regex(pa.scalar(""), pattern)
    except pa.ArrowInvalid:
        raise scope.error(
            f"the regular expression {pattern!r} is not valid: write it in RE2's syntax, without look-around"
        ) from None
    return pattern


# lengths and places -----------------------------------------------------------------------------------------------


def _place(scope: Scope, tree: Tree) -> Node:
    """``instr(text, part)``, from 1; 0 where it does not occur."""
    node, part = scope.string(tree.this, "instr"), scope.constant_text(tree.args["substr"], "instr")
    if tree.args.get("position") is not None or tree.args.get("occurrence") is not None:
        raise scope.unsupported(tree)

    def found(value: Datum) -> Datum:
        if isinstance(value, pa.Scalar):
            return pa.scalar(value.as_py().find(part) + 1 if value.is_valid else None, _INT)
        bytes_before = pc.find_substring(value, part)
        if pc.all(pc.equal(pc.binary_length(value), pc.utf8_length(value))).as_py() is not False:
            return pc.add(bytes_before, pa.scalar(1, _INT))
        return pa.array([None if text is None else text.find(part) + 1 for text in value.to_pylist()], _INT)

    return call(found, [node], _INT, render(tree))


def _left(scope: Scope, tree: Tree) -> Node:
    node, count = scope.string(tree.this, "left"), max(0, scope.constant_int(tree.expression, "left"))
    return apply("utf8_slice_codeunits", [node], _TEXT, render(tree), pc.SliceOptions(0, count))


def _right(scope: Scope, tree: Tree) -> Node:
    node, count = scope.string(tree.this, "right"), max(0, scope.constant_int(tree.expression, "right"))
    if count == 0:
        return apply("utf8_slice_codeunits", [node], _TEXT, render(tree), pc.SliceOptions(0, 0))
    return call(lambda value: pc.utf8_slice_codeunits(value, -count, None), [node], _TEXT, render(tree))


def _pad(scope: Scope, tree: Tree) -> Node:
    node, width = scope.string(tree.this, "lpad"), scope.constant_int(tree.expression, "lpad")
    fill = tree.args.get("fill_pattern")
    padding = " " if fill is None else scope.constant_text(fill, "lpad")
    if len(padding) != 1 or not 0 <= width <= _LONGEST:
        raise scope.error(f"{render(tree)} pads with one character to at most {_LONGEST} characters")
    kernel = "utf8_lpad" if tree.args.get("is_left") else "utf8_rpad"
    padded = apply(kernel, [node], _TEXT, "", pc.PadOptions(width, padding))
    return apply("utf8_slice_codeunits", [padded], _TEXT, render(tree), pc.SliceOptions(0, width))


def _repeat(scope: Scope, tree: Tree) -> Node:
    node, times = scope.string(tree.this, "repeat"), scope.constant_int(tree.args["times"], "repeat")
    if times > _LONGEST:
        raise scope.error(f"{render(tree)} repeats at most {_LONGEST} times")
    return apply("binary_repeat", [node, constant(pa.scalar(max(0, times), _LONG), "")], _TEXT, render(tree))


def _reverse(scope: Scope, tree: Tree) -> Node:
    return apply("utf8_reverse", [scope.string(tree.this, "reverse")], _TEXT, render(tree))


# names ------------------------------------------------------------------------------------------------------------


def _positive(scope: Scope, tree: Tree) -> Node:
    """The sign ``+`` before an operand, which the parser has kept."""
    (operand,) = _operands(scope, tree, 1)
    return scope.number(operand, "+")


def _operands(scope: Scope, tree: Tree, count: int) -> list[Tree]:
    if len(tree.expressions) != count:
        raise scope.error(f"{render(tree)} has {len(tree.expressions)} operands instead of {count}")
    return list(tree.expressions)


_BY_NAME: dict[str, Builder] = {
    "SPLIT_INDEX": _split_index,
    "COUNT_CHAR": _count_char,
    "DATE_FORMAT": date_format,
    "JSON_ARRAY_LENGTH": json_array_length,
    "JSON_VALUE": json_value,
    "POSITIVE": _positive,
}
"""Functions that sqlglot does not know by a class of their own; Spark has only JSON_ARRAY_LENGTH."""


def _named(scope: Scope, tree: Tree) -> Node:
    builder = _BY_NAME.get(str(tree.this).upper())
    if builder is None:
        raise scope.unsupported(tree)
    return builder(scope, tree)


BUILDERS: dict[type, Builder] = {
    exp.Anonymous: _named,
    exp.Bracket: _bracket,
    exp.Left: _left,
    exp.Pad: _pad,
    exp.RegexpCount: _regexp_count,
    exp.RegexpExtract: _extract,
    exp.RegexpReplace: _replaced,
    exp.RegexpSplit: _split,
    exp.Repeat: _repeat,
    exp.Reverse: _reverse,
    exp.Right: _right,
    exp.SplitPart: _split_part,
    exp.StrPosition: _place,
}

FUNCTIONS = (
    *("count_char", "date_format", "instr", "left", "lpad", "regexp_count", "regexp_extract", "regexp_replace"),
    *("positive", "repeat", "reverse", "right", "rpad", "split", "split_index", "split_part"),
)
"""Their names."""
