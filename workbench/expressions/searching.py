"""Tests of text against a constant literal or pattern, faster than Arrow's own kernels.

A regular expression often contains text that every match must contain. Most rows do not, so that text is searched
first, and the expression runs on the rows that are left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.expressions.node import Datum
from workbench.kernels import contains_literal, warm_up

_SPECIAL = frozenset("\\^$.[]|()?*+{}")
_LETTERS_OF_ONE = frozenset("dDwWsSbBAz")
"""After a backslash: classes and positions. Any other letter may begin something longer, such as ``\\x41``."""
_QUANTIFIERS = frozenset("*?+{")

Mask = npt.NDArray[np.bool_]


def contains(literal: str) -> Callable[[Datum], Datum]:
    """A function from text to whether it contains `literal`; null of null."""
    if not literal:
        return lambda text: pc.match_substring(text, literal)
    warm_up()
    wanted = np.frombuffer(literal.encode(), np.uint8)

    def run(text: Datum) -> Datum:
        if isinstance(text, pa.Scalar):
            return pc.match_substring(text, literal)
        return _as_mask(_contains(text, wanted), text)

    return run


def matches(pattern: str, literal: str) -> Callable[[Datum], Datum]:
    """A function from text to whether the regular expression `pattern` matches anywhere in it; null of null.

    Args:
        pattern: in RE2's syntax.
        literal: what every match contains; see `required_literal`.
    """
    options = pc.MatchSubstringOptions(pattern)
    if not literal:
        return lambda text: pc.call_function("match_substring_regex", [text], options)
    warm_up()
    wanted = np.frombuffer(literal.encode(), np.uint8)

    def run(text: Datum) -> Datum:
        if isinstance(text, pa.Scalar):
            return pc.call_function("match_substring_regex", [text], options)
        found = _contains(text, wanted)
        rows = np.flatnonzero(found)
        if len(rows):
            hits = pc.call_function("match_substring_regex", [text.take(pa.array(rows))], options)
            found[rows] = hits.fill_null(False).to_numpy(zero_copy_only=False)
        return _as_mask(found, text)

    return run


def required_literal(pattern: str) -> str:
    """The longest text that every match of a regular expression contains; empty where none is sure.

    Only what stands at the top level is looked at: anything in groups, classes or behind a quantifier breaks the text.

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
    """Behind the class that begins at `at`; None for one that is hard to read."""
    end = pattern.find("]", at + 2)
    inner = pattern[at + 1 : end]
    return None if end < 0 or "[" in inner or "\\" in inner or inner == "^" else end + 1


def _group_end(pattern: str, at: int) -> int | None:
    """Behind the group that begins at `at`; None for one that is hard to read."""
    depth = 0
    for position in range(at, len(pattern)):
        if pattern[position] in "\\[":
            return None
        depth += {"(": 1, ")": -1}.get(pattern[position], 0)
        if depth == 0:
            return position + 1
    return None


def _contains(text: pa.Array, wanted: npt.NDArray[np.uint8]) -> Mask:
    """Shape (n,): whether each text contains the bytes; of a null text unspecified."""
    found = np.zeros(len(text), np.uint8)
    _, offsets, data = text.buffers()
    if len(text) and offsets is not None and data is not None:
        bounds = np.frombuffer(offsets, np.int32, len(text) + 1, text.offset * 4)
        contains_literal(bounds, np.frombuffer(data, np.uint8), wanted, found)
    mask: Mask = found.view(np.bool_)
    return mask


def _as_mask(found: Mask, text: pa.Array) -> pa.Array:
    return pa.array(found, mask=text.is_null().to_numpy(zero_copy_only=False) if text.null_count else None)
