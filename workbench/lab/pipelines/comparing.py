"""Compares committed rows with those of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

Rows = Counter[tuple[Any, ...]]
"""A multiset of rows."""

Outputs = dict[str, Rows]
"""The committed rows of each sink."""


def equal(sink: str, expected: Rows) -> Callable[[Outputs], list[str]]:
    """A function that takes the outputs and reports how those of one sink differ."""
    return lambda outputs: differences(sink, outputs[sink], expected)


def differences(sink: str, found: Rows, expected: Rows) -> list[str]:
    """The missing and surplus rows, a sentence each."""
    problems = []
    if lost := expected - found:
        problems.append(f"{sink}: {lost.total()} rows are missing, such as {_first(lost)}")
    if extra := found - expected:
        problems.append(f"{sink}: {extra.total()} surplus rows, such as {_first(extra)}")
    return problems


def some(found: dict[tuple[Any, ...], tuple[int, int]], expected: dict[tuple[Any, ...], tuple[int, int]]) -> str:
    """One of the differing windows, in words."""
    window = min((w for w in found.keys() | expected.keys() if found.get(w) != expected.get(w)), key=repr)
    return f"{window} has (records, total) {found.get(window)}, not {expected.get(window)}"


def taken_back(before: Outputs, now: Outputs, upserts: Collection[str]) -> list[str]:
    """Which sinks no longer have rows that a reader saw before; those that replace rows by their keys may.

    Example:
        >>> taken_back({"out": Counter([("a", 1), ("a", 2)])}, {"out": Counter([("a", 2)])}, ())
        ['out: 1 visible rows were taken back']
    """
    lost = {sink: rows - now.get(sink, Counter()) for sink, rows in sorted(before.items()) if sink not in upserts}
    return [f"{sink}: {rows.total()} visible rows were taken back" for sink, rows in lost.items() if rows]


def _first(rows: Rows) -> tuple[Any, ...]:
    return min(rows, key=repr)
