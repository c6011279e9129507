"""Parses the text of a row pattern, such as ``A (B | C){2,5} D+?``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import permutations

from workbench.patterns.shape import Alternatives, Repetition, Sequence, Shape, Variable

_TOKEN = re.compile(
    r"\s+|(?P<name>[^\W\d]\w*|`[^`]+`|\"[^\"]+\")|(?P<number>\d+)|(?P<sign>\{-|-\}|[()|*+?{},^$])|(?P<odd>.)"
)
_DEPTH_MAX = 50
_PERMUTED_MAX = 5
_REPEATED_MAX = 1_000


class PatternSyntaxError(Exception):
    """A pattern that cannot be parsed.

    Attributes:
        message: one sentence.
        start, end: the first and last character of the faulty part, counted from 0.
    """

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message, self.start, self.end = message, start, end


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def end(self) -> int:
        return self.at + len(self.text) - 1


def read_pattern(text: str) -> Shape:
    """Parse a pattern to its tree.

    Args:
        text: variables, ``( )``, ``|``, ``PERMUTE(A, B)`` and the quantifiers ``* + ? {n} {n,} {,m} {n,m}``, optionally
            followed by ``?`` (reluctant: as few rows as possible).

    Raises:
        PatternSyntaxError: the text is empty or not a pattern.

    Example:
        >>> str(read_pattern("A (B|C)*? D{2,}"))
        'A (B | C)*? D{2,}'
    """
    return _Reader(text).whole()


class _Reader:
    """A recursive-descent parser."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [
            _Token(found.lastgroup, found.group(), found.start())
            for found in _TOKEN.finditer(text)
            if found.lastgroup is not None
        ]
        self._at = 0

    def whole(self) -> Shape:
        if not self._tokens:
            raise PatternSyntaxError("the pattern is empty: name its rows, as in A B+", 0, max(len(self._text) - 1, 0))
        shape = self._alternatives(0)
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.text == ")":
                raise self._error(
                    token, "this parenthesis has no opening parenthesis: remove it, or add the opening one"
                )
            raise self._error(token, _meaning(token))
        return shape

    def _next(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _error(self, token: _Token, message: str) -> PatternSyntaxError:
        return PatternSyntaxError(message, token.at, token.end)

    def _alternatives(self, depth: int) -> Shape:
        parts = [self._sequence(depth)]
        while self._next() == "|":
            bar = self._tokens[self._at]
            self._at += 1
            if self._next() in ("", ")", "|"):
                raise self._error(bar, "an alternative is missing after |: name one, or write () for no rows")
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else Alternatives(tuple(parts))

    def _sequence(self, depth: int) -> Shape:
        if self._next() == "|":
            raise self._error(
                self._tokens[self._at], "an alternative is missing before |: name one, or write () for no rows"
            )
        parts: list[Shape] = []
        while self._at < len(self._tokens) and self._next() not in (")", "|", ","):
            parts.append(self._quantified(depth))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quantified(self, depth: int) -> Shape:
        token = self._tokens[self._at]
        self._at += 1
        if token.text == "(":
            part = self._group(token, depth)
        elif token.kind == "name":
            if token.text.upper() == "PERMUTE" and self._next() == "(":
                part = self._permuted(token, depth)
            else:
                part = Variable(token.text.strip('`"'))
        else:
            raise self._error(token, _meaning(token))
        bounds = self._bounds()
        if bounds is None:
            return part
        greedy = self._next() != "?"
        self._at += not greedy
        if self._bounds() is not None:
            behind = self._tokens[self._at - 1]
            raise self._error(behind, "a quantifier follows another one: put parentheses around the inner part")
        return Repetition(part, *bounds, greedy)

    def _group(self, opened: _Token, depth: int) -> Shape:
        if depth == _DEPTH_MAX:
            raise self._error(opened, f"the pattern has more than {_DEPTH_MAX} levels of parentheses: simplify it")
        if self._next() == ")":
            self._at += 1
            return Sequence(())
        shape = self._alternatives(depth + 1)
        if self._next() != ")":
            raise self._error(opened, "this parenthesis is not closed: add )")
        self._at += 1
        return shape

    def _permuted(self, named: _Token, depth: int) -> Shape:
        self._at += 1
        parts = [self._alternatives(depth + 1)]
        while self._next() == ",":
            self._at += 1
            parts.append(self._alternatives(depth + 1))
        if self._next() != ")":
            raise self._error(named, "the parenthesis of PERMUTE is not closed: add )")
        self._at += 1
        if len(parts) > _PERMUTED_MAX:
            raise self._error(named, f"PERMUTE takes up to {_PERMUTED_MAX} parts, not {len(parts)}: use alternatives")
        return Alternatives(tuple(Sequence(order) for order in permutations(parts)))

    def _bounds(self) -> tuple[int, int | None] | None:
        """The quantifier at this position, if any."""
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        sign = self._next()
        if sign in simple:
            self._at += 1
            return simple[sign]
        if sign != "{":
            return None
        opened = self._tokens[self._at]
        found = re.compile(r"\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}").match(self._text, opened.at)
        if found is None or not (found[1] or found[2]):
            raise self._error(opened, "these braces are not a quantifier: write {2}, {2,}, {,5} or {2,5}")
        while self._tokens[self._at].at < found.end() - 1:
            self._at += 1
        self._at += 1
        least = int(found[1] or 0)
        most = (int(found[3]) if found[3] else None) if found[2] else least
        whole = _Token("sign", found[0], opened.at)
        if max(least, most or 0) > _REPEATED_MAX:
            raise self._error(whole, f"a part is repeated up to {_REPEATED_MAX:,} times: use + or *")
        if (most is not None and not least <= most) or most == 0:
            raise self._error(whole, f"{found[0]} allows no row: write the smaller number first, and at least 1 last")
        return least, most


def _meaning(token: _Token) -> str:
    if token.text in ("^", "$"):
        return f"{token.text} is not supported, because a stream has no last row and does not keep its first row: "
        "remove it"
    if token.text in ("{-", "-}"):
        return f"{token.text} is not supported: select the rows after MATCH_RECOGNIZE with WHERE CLASSIFIER() = ..."
    if token.text in "*+?{":
        return f"the quantifier {token.text} has nothing to repeat: put it after a variable"
    return f"{token.text} is not valid here: a pattern consists of variables, ( ) | and the quantifiers * + ? {{n,m}}"
