"""Finds the step of a run at which its result goes wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from workbench.lessons.exercises.rows import Row, plain
from workbench.lessons.exercises.running import Emitted, Run, Tables

Oracle = Callable[..., list[dict[str, Any]]]


def first_wrong_step(run: Run, oracle: Oracle, keys: Sequence[str], *, final: bool) -> int | None:
    """The number of steps before the one in which the first wrong row is emitted.

    If no row is wrong but one is missing, it is the step in which the last record that belongs to the row leaves its
    source. None: the result goes wrong nowhere else than at the end.

    Args:
        oracle: of the right rows for tables.
        keys: columns that identify a row of the result.
        final: whether a row of the result replaces earlier ones with its key.
    """
    expected = oracle(*run.tables)
    columns = list(expected[0]) if expected else list(keys)
    emitted = [
        (each, plain(row, columns))
        for each in run.results
        for row in each.batch.to_pylist()
        if all(column in row for column in columns)
    ]
    wanted = Counter(plain(row, columns) for row in expected)
    allowed = (
        wanted
        if not final
        else Counter(plain(row, columns) for tables in _shorter(run.tables) for row in oracle(*tables))
    )
    for each, row in emitted:
        if row not in allowed:
            return each.step
    if not final and not run.failed:
        seen: Counter[Any] = Counter()
        for each, row in emitted:
            seen[row] += 1
            if seen[row] > wanted[row]:
                return each.step
    there = Counter(plain(row, columns) for row in run.rows if all(column in row for column in columns))
    if doubled := there - wanted if not final else None:
        return max(each.step for each, row in emitted if row in doubled)
    missing = wanted - there
    for row in missing:
        return _last_record_of(row, wanted[row], run, oracle, columns)
    return None


def _last_record_of(row: Any, count: int, run: Run, oracle: Oracle, columns: Sequence[str]) -> int | None:
    """When the record left its source that completes a row, or as many of them as there should be."""
    steps = []
    for index, table in enumerate(run.tables):
        for length in range(len(table) + 1):
            tables = tuple(each.slice(0, length) if other == index else each for other, each in enumerate(run.tables))
            if sum(plain(found, columns) == row for found in oracle(*tables)) >= count:
                steps += [] if length == 0 else [_sent(table.slice(length - 1, 1), run)]
                break
    return max((step for step in steps if step is not None), default=None)


def _sent(record: pa.Table, run: Run) -> int | None:
    """The last step in which a source emitted a record."""
    [wanted] = record.to_pylist()
    return max((each.step for each in run.emitted if each.uid != run.end and _has(each, wanted)), default=None)


def _has(emitted: Emitted, wanted: Row) -> bool:
    if not set(emitted.batch.schema.names) <= wanted.keys():
        return False
    part = {name: wanted[name] for name in emitted.batch.schema.names}
    return part in emitted.batch.to_pylist()


def _shorter(tables: Tables) -> list[Tables]:
    """The tables with their first records only: all records of the others are there."""
    return [
        tuple(each.slice(0, count) if other == index else each for other, each in enumerate(tables))
        for index, table in enumerate(tables)
        for count in range(len(table) + 1)
    ]
