"""Compares the rows of an answer with the rows of an oracle, and says which property they violate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

Row = Mapping[str, Any]


def latest(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """The last row of each key.

    Example:
        >>> latest([{"k": "a", "n": 1}, {"k": "a", "n": 2}], ["k"])
        [{'k': 'a', 'n': 2}]
    """
    return list({tuple(row[key] for key in keys): row for row in rows}.values())


def difference(expected: Sequence[Row], found: Sequence[Row], keys: Sequence[str]) -> tuple[str, str] | None:
    """The property that the found rows violate, and an example; None if they are the expected rows in any order.

    Args:
        expected: the rows of the oracle; they say which columns count.
        found: the rows of the answer, which may have further columns.
        keys: columns that identify a row of the result.

    Example:
        >>> difference([{"k": "a", "n": 2}], [{"k": "a", "n": 1}], ["k"])
        ('right values', 'for k = a the result is n = 1; correct is n = 2')
    """
    columns = list(expected[0]) if expected else list(keys)
    if found and (lacking := [column for column in columns if column not in found[0]]):
        return "the result's columns", no_column(lacking[0], found[0], columns)
    wanted = Counter(plain(row, columns) for row in expected)
    got = Counter(plain(row, columns) for row in found)
    if wanted == got:
        return None
    doubled = {row: n for row, n in got.items() if row in wanted and n > wanted[row]}
    of_key = {row[: len(keys)]: row for row in _by_keys(wanted, columns, keys)}
    if not found:
        return "no loss", f"the result is empty; {_rows(len(expected))} expected, such as {_told(expected[0])}"
    if doubled:
        row, n = next(iter(doubled.items()))
        told = _told(dict(zip(columns, row, strict=True)))
        return "no duplicate", f"{told} occurs {n} times instead of {wanted[row]}"
    for row in _by_keys(got - wanted, columns, keys):
        if (right := of_key.get(row[: len(keys)])) is not None:
            names = [*keys, *(column for column in columns if column not in keys)]
            differs = [i for i in range(len(names)) if row[i] != right[i]] or [len(names) - 1]
            return "right values", (
                f"for {_told(dict(zip(keys, row[: len(keys)], strict=True)))} the result is "
                f"{_told({names[i]: row[i] for i in differs})}; correct is "
                f"{_told({names[i]: right[i] for i in differs})}"
            )
    if missing := wanted - got:
        row = next(iter(missing))
        surplus = ""
        if others := got - wanted:
            other = _told(dict(zip(columns, next(iter(others)), strict=True)))
            surplus = f"; {_rows(others.total())} there instead, such as {other}"
        verb = "is" if missing.total() == 1 else "are"
        return "no loss", (
            f"{missing.total()} of {_rows(len(expected), '')} {verb} missing, such as "
            f"{_told(dict(zip(columns, row, strict=True)))}{surplus}"
        )
    row = next(iter(got - wanted))
    return "nothing invented", f"{_told(dict(zip(columns, row, strict=True)))} should not be in the result"


def no_column(name: str, row: Row, needed: Sequence[str]) -> str:
    """A sentence about a result that lacks a column."""
    return f"the result has no column {name!r}, only {', '.join(row)}; it needs {', '.join(needed)}"


def _rows(count: int, verbs: str = " is| are") -> str:
    one, _, several = verbs.partition("|")
    return f"{count} row{one}" if count == 1 else f"{count} rows{several}"


def plain(row: Row, columns: Sequence[str]) -> tuple[Any, ...]:
    """The values of a row, such that equal ones compare as equal and have one hash.

    Example:
        >>> plain({"a": [1], "b": 0.1 + 0.2, "c": 3}, ["a", "b"])
        ((1,), 0.3)
    """
    return tuple(_value(row[column]) for column in columns)


def _value(value: object) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, list):
        return tuple(map(_value, value))
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return value


def _by_keys(rows: Counter[tuple[Any, ...]], columns: Sequence[str], keys: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows with the key columns first."""
    order = [columns.index(name) for name in [*keys, *(column for column in columns if column not in keys)]]
    return [tuple(row[index] for index in order) for row in rows]


def _told(row: Row) -> str:
    return ", ".join(f"{name} = {_text(value)}" for name, value in row.items())


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.strftime("%H:%M:%S") if value.year == 1970 else value.isoformat(sep=" ", timespec="seconds")
    return value.isoformat() if isinstance(value, date) else str(value)
