"""The clauses of MATCH_RECOGNIZE, cut out of the text of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from workbench.errors import unknown
from workbench.expressions.tree.sql import Tree
from workbench.queries.reading.places import Text

_BEGINS: dict[str, tuple[str, ...]] = {
    "partition": ("PARTITION BY",),
    "order": ("ORDER BY",),
    "measures": ("MEASURES",),
    "one": ("ONE", "ROW", "PER", "MATCH"),
    "all": ("ALL", "ROWS", "PER", "MATCH"),
    "after": ("AFTER", "MATCH", "SKIP"),
    "pattern": ("PATTERN",),
    "within": ("WITHIN",),
    "subset": ("SUBSET",),
    "define": ("DEFINE",),
}
"""The words that begin each clause; two words can be one token."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the query's text.

    Attributes:
        text: the piece.
        start: the index of its first character.
    """

    text: str
    start: int

    @property
    def end(self) -> int:
        """The index of its last character."""
        return self.start + max(len(self.text) - 1, 0)


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses.

    Attributes:
        place: MATCH_RECOGNIZE itself.
        said: the text of each clause by its name, without the words that it begins with.
    """

    place: Part
    said: dict[str, Part] = field(default_factory=dict)


def clauses(tree: Tree, text: Text) -> Clauses:
    """Split the clauses of a node from the parser.

    Raises:
        QueryError: an unknown clause, or one that comes twice; with a caret.
    """
    opened, closed = tree.meta["opened"], tree.meta["closed"]
    place = Part(text.sql[tree.meta["start"] : tree.meta["end"] + 1], tree.meta["start"])
    tokens = _tokens(Part(text.sql[opened + 1 : closed], opened + 1), text)
    begins: list[tuple[int, str, int]] = []
    depth = at = 0
    while at < len(tokens):
        depth += (tokens[at].text == "(") - (tokens[at].text == ")")
        found = None if depth else _begins(tokens, at)
        if found is None:
            at += 1
            continue
        name, length = found
        begins.append((at, name, at + length))
        at += length
    said: dict[str, Part] = {}
    first = begins[0][0] if begins else len(tokens)
    if first > 0:
        token, known = tokens[0], [" ".join(begin) for begin in _BEGINS.values()]
        raise text.error_at(token.start, token.end, unknown("clause", token.text, known))
    for number, (at, name, inside) in enumerate(begins):
        end = begins[number + 1][0] if number + 1 < len(begins) else len(tokens)
        start = tokens[inside].start if inside < end else tokens[inside - 1].end + 1
        stop = tokens[end - 1].end + 1 if inside < end else start
        if name in said:
            twice = f"{' '.join(_BEGINS[name])} is given twice: write it once"
            raise text.error_at(tokens[at].start, tokens[at].end, twice)
        said[name] = Part(text.sql[start:stop], start)
    return Clauses(place, said)


def _tokens(part: Part, text: Text) -> list[Any]:
    try:
        return list(Spark().tokenize(" " * part.start + part.text))
    except TokenError:
        raise text.error_at(part.start, part.end, "a quote is not closed: close it") from None


def _begins(tokens: Sequence[Any], at: int) -> tuple[str, int] | None:
    """The clause that begins here, and the number of tokens of its words."""
    for name, words in _BEGINS.items():
        if tokens[at].text.upper() == words[0]:
            if [token.text.upper() for token in tokens[at : at + len(words)]] == list(words):
                return name, len(words)
        elif words[0].startswith(f"{tokens[at].text.upper()} "):
            both = " ".join(token.text.upper() for token in tokens[at : at + 2])
            if both == words[0]:
                return name, 2
    return None


def items(part: Part, text: Text) -> list[Part]:
    """The parts of a comma-separated list.

    Raises:
        QueryError: one is empty.
    """
    found, depth, begin = [], 0, part.start
    tokens = _tokens(part, text)
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and not depth:
            found.append(Part(text.sql[begin : token.start], begin))
            begin = token.end + 1
    found.append(Part(text.sql[begin : part.start + len(part.text)], begin))
    for one in found:
        if not one.text.strip():
            raise text.error_at(one.start, one.end, "an item is missing here: remove the comma")
    return found


def words(part: Part, text: Text) -> list[str]:
    """The tokens of a clause."""
    return [str(token.text) for token in _tokens(part, text)]


def named(part: Part, text: Text, what: str, *, name_first: bool) -> tuple[str, Part]:
    """An item with a name: ``A AS condition``, or ``value AS name``.

    Raises:
        QueryError: it has another form.
    """
    tokens = _tokens(part, text)
    at = 1 if name_first else len(tokens) - 2
    example = "A AS A.price > 10" if name_first else "LAST(A.price) AS price"
    if len(tokens) < 3 or tokens[at].text.upper() != "AS":
        begin = tokens[0].start if tokens else part.start
        raise text.error_at(begin, part.end, f"{what} must have the form {example}: add AS")
    if name_first:
        start = tokens[at].end + 1
        return str(tokens[0].text), Part(text.sql[start : part.start + len(part.text)], start)
    return str(tokens[-1].text), Part(text.sql[part.start : tokens[at].start], part.start)
