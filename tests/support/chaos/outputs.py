"""What the outputs of a run must have."""

from __future__ import annotations

from collections.abc import Mapping

from .flows import UPDATING
from .rows import Row, counted, grouped, last_of_keys, passed, row, table_of

COLUMNS: Mapping[str, Mapping[str, type]] = {
    "rows": {"id": int, "key": int, "value": int, "text": str, "twice": int},
    "counts": {"key": int, "n": int, "id": int, "total": int},
    "groups": {"key": int, "n": int, "total": int},
}
"""The columns of an output, by its shape."""


def is_table(sink: str) -> bool:
    """Whether a sink replaces the row of a key."""
    return sink in UPDATING


def identity_of(source: str, shape: str, *, table: bool = False) -> tuple[str, ...]:
    """The columns that tell a row of an output from all others."""
    if table:
        return ("id",) if source == "postgresql-log" and shape == "rows" else ("key",)
    return ("id",) if shape == "rows" else ("key", "n")


def expected_of(source: str, shape: str, rows: int, *, table: bool) -> list[Row]:
    """The rows of an output at the end.

    Args:
        source: its kind.
        shape: of the output.
        rows: how many were fed.
        table: whether the output has only the last row of each key.
    """
    if source == "postgresql-log":
        now = passed(table_of(range(rows)))
        return now if shape == "rows" else grouped(now)
    fed = [row(number) for number in range(rows)]
    found = passed(fed) if shape == "rows" else counted(fed)
    return last_of_keys(found) if table else found
