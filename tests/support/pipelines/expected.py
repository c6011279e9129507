"""What sinks must hold, and how what they hold differs from it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

Rows = Counter[tuple[Any, ...]]
"""A multiset of rows."""


class Expected(Protocol):
    """A claim on what sinks hold."""

    def problem(self, got: Mapping[str, pa.Table]) -> str:
        """How the sinks' rows differ from what they must be; empty where they are right."""
        ...


@dataclass(frozen=True)
class Exactly:
    """These rows, in any order."""

    sink: str
    rows: pa.Table

    def problem(self, got: Mapping[str, pa.Table]) -> str:
        table = got[self.sink]
        if table.column_names != self.rows.column_names:
            return f"{self.sink} has the columns {table.column_names} instead of {self.rows.column_names}"
        return difference(f"{self.sink} {table.column_names}", counted(table), counted(self.rows))


@dataclass(frozen=True)
class AtLast:
    """Of each key the row with the largest count is this one: running results, or results that are corrected.

    Attributes:
        total: number of rows in all; None: not known.
    """

    sink: str
    rows: pa.Table
    keys: tuple[str, ...]
    count: str
    total: int | None = None

    def problem(self, got: Mapping[str, pa.Table]) -> str:
        table = got[self.sink]
        if table.column_names != self.rows.column_names:
            return f"{self.sink} has the columns {table.column_names} instead of {self.rows.column_names}"
        if self.total is not None and len(table) != self.total:
            return f"{self.sink} has {len(table)} rows instead of {self.total}"
        had, should = (last_rows(one, self.keys, self.count) for one in (table, self.rows))
        return difference(f"{self.sink} {table.column_names}, the last of each {self.keys},", had, should)


@dataclass(frozen=True)
class Between:
    """All of `rows`, and of those that `most` has besides any, each once."""

    sink: str
    rows: pa.Table
    most: pa.Table

    def problem(self, got: Mapping[str, pa.Table]) -> str:
        table = got[self.sink]
        if table.column_names != self.rows.column_names:
            return f"{self.sink} has the columns {table.column_names} instead of {self.rows.column_names}"
        had = counted(table)
        much, little = had - counted(self.most), counted(self.rows) - had
        if not much and not little:
            return ""
        return f"{self.sink}\n  has too much {list(much.items())[:4]}\n  and lacks    {list(little.items())[:4]}"


@dataclass(frozen=True)
class Gathered:
    """Lists that together hold these values, each beside the columns `beside`: each record was in a result once.

    Attributes:
        sink, beside, values: where the lists are: in the column `values`.
        count: a column with the length of each list.
        late: a sink of records that are in no list, with the columns `late_columns` in place of `beside` and the value.
        rows: `beside` and the value.
    """

    sink: str
    beside: tuple[str, ...]
    values: str
    count: str
    rows: pa.Table
    late: str = ""
    late_columns: tuple[str, ...] = ()

    def problem(self, got: Mapping[str, pa.Table]) -> str:
        table = got[self.sink]
        had: Rows = Counter()
        for *key, items, count in rows_of(table.select([*self.beside, self.values, self.count])):
            had.update((*key, item) for item in items)
            if len(items) != count or not count:
                return f"{self.sink} has {count} records and {len(items)} values in {key}"
        if self.late:
            had += counted(got[self.late].select(list(self.late_columns)))
        return difference(f"{self.sink}, each value of {self.values} by {self.beside}", had, counted(self.rows))


def difference(what: str, had: Rows, should: Rows) -> str:
    """How two multisets differ; empty where they do not."""
    if had == should:
        return ""
    much, little = list((had - should).items())[:4], list((should - had).items())[:4]
    return f"{what}\n  has too much {much}\n  and lacks    {little}"


def counted(table: pa.Table) -> Rows:
    """The rows as a multiset."""
    return Counter(rows_of(table))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as comparable values: times in microseconds, floats to 11 digits, NaN equal to itself."""
    return list(zip(*(map(_plain, _micros(column).to_pylist()) for column in table.columns), strict=True))


def last_rows(table: pa.Table, keys: tuple[str, ...], count: str) -> Rows:
    """Of each key the row that has counted most."""
    last: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    at = [table.column_names.index(key) for key in keys]
    most = table.column_names.index(count)
    for row in rows_of(table):
        key = tuple(row[place] for place in at)
        if key not in last or last[key][most] < row[most]:
            last[key] = row
    return Counter(last.values())


def _micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_list(kind) and pa.types.is_timestamp(kind.value_type):
        return column.cast(pa.list_(pa.timestamp("us", kind.value_type.tz))).cast(pa.list_(pa.int64()))
    return column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()) if pa.types.is_timestamp(kind) else column


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value + 0.0:.11g}")
    return value
