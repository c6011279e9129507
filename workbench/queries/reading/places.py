"""Positions in the text of a query: the line and the caret of an error."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workbench.errors import QueryError
from workbench.expressions.tree.sql import Tree
from workbench.origin import Origin

SHOWN = 60
"""The number of characters of a line that an error shows. Longer lines would wrap next to a docked view and misplace
the caret."""
_AROUND = 24
"""The number of characters before the part in a shortened line."""
CUT = "…"


@dataclass(frozen=True)
class Text:
    """A query as it was written.

    Attributes:
        sql: the text.
        origin: the user's line that holds it, or None.
        above: the number of lines above it in its cell, which line numbers include.
    """

    sql: str
    origin: Origin | None = None
    above: int = 0

    def name_of(self, call: Tree) -> str:
        """The name of a function as written; the parser renames some functions.

        Example:
            >>> import sqlglot
            >>> Text("array_agg(a)").name_of(sqlglot.parse_one("array_agg(a)"))
            'array_agg'
        """
        place = span(call)
        found = None if place is None else re.compile(r"\w+(?=\s*\()").match(self.sql, place[0])
        return call.sql("spark").partition("(")[0] if found is None else found.group()

    def error(self, tree: Tree, message: str) -> QueryError:
        """The error for a part of the query: the sentence, the line, and a caret below the part."""
        place = span(tree) or self._found(tree)
        return QueryError(message, origin=self.origin) if place is None else self.error_at(*place, message)

    def _found(self, tree: Tree) -> tuple[int, int] | None:
        """Where the text of a part without positions stands, such as CURRENT_DATE; None: nowhere, or at many places."""
        words = tree.sql("spark").removesuffix("()").split()
        pattern = r"\s+".join(map(re.escape, words))
        found = list(re.finditer(rf"(?<!\w){pattern}(?!\w)", self.sql, re.IGNORECASE)) if words else []
        return (found[0].start(), found[0].end() - 1) if len(found) == 1 else None

    def error_at(self, start: int, end: int, message: str) -> QueryError:
        """The error for the characters from `start` to `end`, both included and counted from 0."""
        before = self.sql[:start]
        number, column = before.count("\n") + 1, start - (before.rfind("\n") + 1)
        shown, first = _around(self.sql.split("\n")[number - 1].replace("\t", " "), column)
        width = max(1, min(end - start + 1, len(shown.removesuffix(CUT)) - (column - first)))
        excerpt = f"    {shown}\n    {' ' * (column - first)}{'^' * width}"
        return QueryError(
            f"line {self.above + number}, column {column + 1}: {message}", excerpt=excerpt, origin=self.origin
        )


def _around(line: str, column: int) -> tuple[str, int]:
    """The visible part of a line, with dots where it is cut, and the column of its first character."""
    if len(line) <= SHOWN:
        return line, 0
    first = max(0, min(column - _AROUND, len(line) - SHOWN))
    shown = line[first : first + SHOWN]
    before, after = CUT if first else "", CUT if first + SHOWN < len(line) else ""
    return f"{before}{shown[len(before) : SHOWN - len(after)]}{after}", first


def span(tree: Tree) -> tuple[int, int] | None:
    """The first and last character of a part; None if the parser has no position for it."""
    places = [node.meta for node in tree.walk() if "start" in node.meta]
    if not places:
        return None
    return min(place["start"] for place in places), max(place["end"] for place in places)
