"""Tests of text against a constant literal or pattern, faster than Arrow's own kernels.

A regular expression often contains text that every match must contain. Most rows do not, so that text is searched
first, and the expression runs on the remaining rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.compiled import find_literal, warm_up
from workbench.elements import Mask
from workbench.expressions.tree.node import Datum, Node, Rows, call

_SPECIAL = frozenset("\\^$.[]|()?*+{}")
_LETTERS_OF_ONE = frozenset("dDwWsSbBAz")
"""After a backslash: classes and positions. Any other letter may begin something longer, such as ``\\x41``."""
_QUANTIFIERS = frozenset("*?+{")


class Search:
    """Whether text contains a literal or matches a regular expression anywhere; null for null.

    Args:
        literal: the text to find, contained in every match of the pattern; not empty.
        pattern: in RE2's syntax, or None for the literal alone.
    """

    def __init__(self, literal: str, pattern: str | None = None) -> None:
        warm_up(find_literal)
        self._literal = np.frombuffer(literal.encode(), np.uint8)
        self._kernel = "match_substring" if pattern is None else "match_substring_regex"
        self._options = pc.MatchSubstringOptions(literal if pattern is None else pattern)
        self._is_literal = pattern is None

    def __call__(self, text: Datum) -> Datum:
        """An array of booleans for an array of text, a scalar for a scalar."""
        if isinstance(text, pa.Scalar):
            return self._match(text)
        found = np.zeros(len(text), np.bool_)
        found[self.rows(text)] = True
        return pa.array(found, mask=text.is_null().to_numpy(zero_copy_only=False) if text.null_count else None)

    def rows(self, text: pa.Array) -> Rows:
        """Shape (k,): the rows that match, in order."""
        rows = self._containing(text)
        if text.null_count and len(rows):
            rows = rows[_as_mask(text.take(pa.array(rows)).is_valid())]
        if self._is_literal or not len(rows):
            return rows
        return rows[_as_mask(self._match(text.take(pa.array(rows))))]

    def _match(self, text: Datum) -> Datum:
        return pc.call_function(self._kernel, [text], self._options)

    def _containing(self, text: pa.Array) -> Rows:
        """Shape (k,): the rows whose text contains the literal; a null text may be among them."""
        _, offsets, data = text.buffers()
        if not len(text) or offsets is None or data is None:
            return np.empty(0, np.int32)
        bounds = np.frombuffer(offsets, np.int32, len(text) + 1, text.offset * 4)
        rows = np.empty(len(text), np.int32)
        return rows[: find_literal(bounds, np.frombuffer(data, np.uint8), self._literal, rows)]


def contains(literal: str) -> Callable[[Datum], Datum]:
    """A function that tests whether text contains `literal`; null for null."""
    return Search(literal) if literal else lambda text: pc.match_substring(text, literal)


def matches(pattern: str, literal: str) -> Callable[[Datum], Datum]:
    """A function that tests whether the regular expression `pattern` matches anywhere in text; null for null.

    Args:
        pattern: in RE2's syntax.
        literal: contained in every match; see `required_literal`.
    """
    if literal:
        return Search(literal, pattern)
    options = pc.MatchSubstringOptions(pattern)
    return lambda text: pc.call_function("match_substring_regex", [text], options)


def search(test: Callable[[Datum], Datum], node: Node, text: str) -> Node:
    """The computation of `contains` or `matches` on a node; it returns rows instead of a mask if it can."""
    found = call(test, [node], pa.bool_(), text)
    if not isinstance(test, Search) or found.constant is not None or found.coded is not None:
        return found
    return replace(found, rows=lambda batch: test.rows(node.evaluate(batch)))


def required_literal(pattern: str) -> str:
    """The longest text that every match of a regular expression contains; empty if none is certain.

    Only the top level is examined: groups, classes and quantifiers break the text.

    Example:
        >>> required_literal("error [0-9]{3}"), required_literal("(?i)error"), required_literal("a|b")
        ('error ', '', '')
    """
    runs, run, at = [""], "", 0
    if "(?" in pattern:  # flags may change what a letter means
        return ""
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            following = pattern[at + 1 : at + 2]
            if following.isalnum() and following not in _LETTERS_OF_ONE:
                return ""
            character, at = following, at + 2
            single = not following.isalnum()
        elif character in "([":
            end = _group_end(pattern, at) if character == "(" else _class_end(pattern, at)
            if end is None:
                return ""
            single, at = False, end
        elif character == "|":
            return ""
        else:
            single, at = character not in _SPECIAL, at + 1
        quantifier = pattern[at : at + 1]
        more = quantifier == "+" and pattern[at + 1 : at + 2] not in _QUANTIFIERS
        if single and (more or quantifier not in _QUANTIFIERS):
            run += character
        if not single or quantifier in _QUANTIFIERS:
            runs.append(run)
            run = ""
        if quantifier == "{":
            closing = pattern.find("}", at)
            if closing < 0:
                return ""
            at = closing + 1
    return max([*runs, run], key=len)


def _class_end(pattern: str, at: int) -> int | None:
    """The position after the class that begins at `at`; None for one that is hard to parse."""
    end = pattern.find("]", at + 2)
    inner = pattern[at + 1 : end]
    return None if end < 0 or "[" in inner or "\\" in inner or inner == "^" else end + 1


def _group_end(pattern: str, at: int) -> int | None:
    """The position after the group that begins at `at`; None for one that is hard to parse."""
    depth = 0
    for position in range(at, len(pattern)):
        if pattern[position] in "\\[":
            return None
        depth += {"(": 1, ")": -1}.get(pattern[position], 0)
        if depth == 0:
            return position + 1
    return None


def _as_mask(test: pa.BooleanArray) -> Mask:
    mask: Mask = test.to_numpy(zero_copy_only=False)
    return mask
