"""Limits on the size of texts in SQL, and a parser that writes no warnings.

Parsing, planning and writing a tree call themselves for each of its levels, and Python ends programs that do so too
often, at a depth that depends on the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from workbench.expressions.tree.strict import NotValidError

NESTED_MAX = 50
"""Levels of parentheses, brackets, CASE, NOT and signs."""
LEVELS_MAX = 100
"""Levels of a tree, such as terms of a sum; a chain of AND, or of OR, is balanced before."""
ITEMS_MAX = 500
"""Parts of a list other than values: columns, aggregates, tables, queries, conditions."""
_OTHERS = 20
"""Levels of a tree that are no terms: of the statement, its clauses, and an alias."""
TOO_DEEP = f"{NESTED_MAX} levels of brackets, and {LEVELS_MAX} terms of a sum or a UNION; use IN for many values"
_OPENS = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSES = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_CHAINS = (exp.And, exp.Or)

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def check_nesting(tokens: Sequence[Any]) -> None:
    """Reject a text that is nested deeper than `NESTED_MAX`.

    Args:
        tokens: of the tokenizer.

    Raises:
        NotValidError: names the limit and the first token beyond it.
    """
    depth = prefixes = 0
    for token in tokens:
        kind = token.token_type
        if kind in _PREFIXES:
            prefixes += 1
        else:
            prefixes = 0
            if kind in _CLOSES:
                depth = max(0, depth - 1)
            elif kind in _OPENS:
                depth += 1
        if depth + prefixes > NESTED_MAX:
            raise too_deep(token.start, token.end)


def balanced(tree: Any) -> Any:
    """The tree with each long chain of AND, and of OR, as a tree of few levels; the text and the values stay the same.

    Raises:
        NotValidError: it still has more than `LEVELS_MAX` levels, or a list in it more than `ITEMS_MAX` parts.
    """
    for node in [node for node in tree.walk() if isinstance(node, _CHAINS)]:
        if isinstance(node.parent, type(node)):
            continue  # part of a longer chain
        parts = _parts(node)
        if len(parts) > ITEMS_MAX:
            raise too_many(node, len(parts), f"conditions of {node.key.upper()}")
        if len(parts) > 4:
            made = _joined(type(node), parts)
            node.set("this", made.this)
            node.set("expression", made.expression)
    _check_levels(tree)
    return tree


def _parts(chain: Any) -> list[Any]:
    """The operands of a chain, in order."""
    found, left = [], [chain]
    while left:
        node = left.pop()
        if type(node) is type(chain):
            left += [node.expression, node.this]
        else:
            found.append(node)
    return found


def _joined(kind: Any, parts: list[Any]) -> Any:
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [kind(this=one, expression=other) for one, other in pairs] + parts[len(parts) & ~1 :]
    return parts[0]


def _check_levels(tree: Any) -> None:
    left = [(tree, 0)]
    while left:
        node, depth = left.pop()
        if depth > LEVELS_MAX + _OTHERS:
            place: dict[str, int] = next((part.meta for part in node.walk() if "start" in part.meta), {})
            raise too_deep(place.get("start", -1), place.get("end", -1))
        for name, value in node.args.items():
            children = value if isinstance(value, list) else (value,)
            if len(children) > ITEMS_MAX and not all(isinstance(each, exp.Literal) for each in children):
                raise too_many(node, len(children), f"parts in {'a list' if name == 'expressions' else name.upper()}")
            left += [(child, depth + 1) for child in children if isinstance(child, exp.Expression)]


def too_deep(start: int = -1, end: int = -1) -> NotValidError:
    """The error for a text that is nested too deeply."""
    return NotValidError(
        f"it is nested too deeply: the maximum is {TOO_DEEP}, or several steps",
        start,
        end,
    )


def too_many(node: Any, count: int, what: str) -> NotValidError:
    """The error for a list that is too long."""
    place: dict[str, int] = next((part.meta for part in node.walk() if "start" in part.meta), {})
    return NotValidError(
        f"it has {count:,} {what}, more than the maximum of {ITEMS_MAX:,}: use IN for many values, or several steps",
        place.get("start", -1),
        place.get("end", -1),
    )


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keep the parser's warnings off this thread's standard error: errors say what matters."""
    before = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(before)


logging.getLogger("sqlglot").addFilter(lambda record: not _quiet.get())
