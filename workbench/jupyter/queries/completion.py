"""Tab completion in ``%%stream_sql`` cells: tables, their columns, and functions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from workbench.expressions.evaluation.compiling import FUNCTIONS
from workbench.jupyter.queries.cell import tables_of
from workbench.queries.reading.binding import AGGREGATES
from workbench.queries.reading.dialect import WINDOWS
from workbench.queries.reading.table_functions import BOUNDS

_CELL = re.compile(r"\s*%%stream_sql\b[^\n]*\n")
_TOKEN = re.compile(r"(?:(\w+)\.)?(\w*)$")
_BEFORE_TABLE = re.compile(r"\b(?:FROM|JOIN|TABLE)\s*\(?\s*$", re.IGNORECASE)
_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "JOIN", "UNION ALL", "WITH", "INTERVAL", "DESCRIPTOR")
_NO_ALIAS = {"ON", "WHERE", "GROUP", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "UNION", "HAVING", "USING", "CROSS"}


def completer_of_queries(shell: Any) -> Any:
    """The matcher for a shell, whose variables are the tables."""

    @context_matcher(identifier="workbench.stream_sql", priority=100)
    def complete_query(context: CompletionContext) -> SimpleMatcherResult:
        """Completions at the cursor of a query; none in other cells and in the first line."""
        if _CELL.match(context.full_text) is None or "%%stream_sql" in context.text_until_cursor:
            return {"completions": []}
        found = _TOKEN.search(context.text_until_cursor)
        assert found is not None, "the pattern matches nothing, too"
        table, token = found[1], found[2]
        before = context.text_until_cursor[: found.start()]
        names = candidates(context.full_text, before, table, tables_of(shell.user_ns))
        chosen = [SimpleCompletion(name, type="sql") for name in names if name.lower().startswith(token.lower())]
        return {"completions": chosen, "suppress": True, "matched_fragment": token}

    return complete_query


def candidates(text: str, before: str, table: str | None, tables: dict[str, Any]) -> Iterable[str]:
    """What can stand at the cursor.

    Args:
        text: the whole cell.
        before: its line up to the word at the cursor.
        table: the name before the dot, if there is one.
        tables: the known ones by name.

    Example:
        >>> clicks = pa.table({"user": ["ann"], "n": [1]})
        >>> list(candidates("SELECT c. FROM clicks AS c", "SELECT ", "c", {"clicks": clicks}))
        ['user', 'n']
    """
    named = _named(text, tables)
    if table is not None:
        meant = next((columns for name, columns in named.items() if name.lower() == table.lower()), ())
        return dict.fromkeys(meant)
    if _BEFORE_TABLE.search(before):
        return [*tables, *WINDOWS, "TABLE("]
    columns = (column for columns in named.values() for column in columns)
    return dict.fromkeys([*columns, *named, *FUNCTIONS, *AGGREGATES, *_CLAUSES])


def _named(text: str, tables: dict[str, Any]) -> dict[str, list[str]]:
    """The columns of the tables that a text names, by the tables' names and aliases."""
    windows = any(re.search(rf"\b{name}\s*\(", text, re.IGNORECASE) for name in WINDOWS)
    found: dict[str, list[str]] = {}
    for name, value in tables.items():
        names = value.column_names if hasattr(value, "column_names") else value.columns
        columns = [*names, *(BOUNDS if windows else ())]
        for place in re.finditer(rf"\b{re.escape(name)}\b(?:\s+(?:AS\s+)?(\w+))?", text, re.IGNORECASE):
            found[name] = columns
            if place[1] is not None and place[1].upper() not in _NO_ALIAS:
                found[place[1]] = columns
    return found
