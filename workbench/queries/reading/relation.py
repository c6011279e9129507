"""The relation of a FROM clause: a stream, the SQL names of its columns, and the columns that hold event time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from workbench.api.streams.stream import Stream
from workbench.connectors.named.connector import NamedLookup
from workbench.errors import unknown
from workbench.expressions.tree.sql import Tree
from workbench.operators.changelogs.sortable import Order
from workbench.queries.reading.places import Text
from workbench.windows import WindowAssigner

Bound = Literal["window_start", "window_end", "window_time", "proctime"]
"""The columns that a window table function adds, and the clock's time, PROCTIME()."""


@dataclass(frozen=True)
class Column:
    """One column of a relation.

    Attributes:
        table: the table name that can qualify it; None: it cannot be qualified.
        name: its name in SQL.
        stored: its name in the stream; None for a bound of windows that are not assigned to rows yet, and for a
            number of rows that is not computed yet.
        ahead_us: its value minus the record's event time, in microseconds, if known: 0 for the event time
            itself, 1 for the end of the window that produced the record.
        bound: the bound of the window, if it is one.
        qualified: whether it is found by its table only: the copy of a key of USING.
    """

    table: str | None
    name: str
    stored: str | None
    ahead_us: int | None = None
    bound: Bound | None = None
    qualified: bool = False


@dataclass(frozen=True)
class Windows:
    """Windows that a window table function assigns to the rows of its table.

    Attributes:
        assigner: the windows.
        partition: PARTITION BY, for sessions: the stored names of columns, and the text of other expressions.
        time: the stored name of the event-time column; None for processing-time windows.
        call: the function as it was written, for errors.
    """

    assigner: WindowAssigner
    partition: tuple[str, ...]
    time: str | None
    call: Tree


@dataclass(frozen=True)
class Ranking:
    """ROW_NUMBER over rows, which a condition on the number turns into a Top-N.

    Attributes:
        keys: the stored names of the columns of PARTITION BY.
        orders: ORDER BY.
        call: the function as it was written, for errors.
    """

    keys: tuple[str, ...]
    orders: tuple[Order, ...]
    call: Tree


@dataclass(frozen=True)
class Relation:
    """Rows with names.

    Attributes:
        stream: the records; a lookup table has none.
        columns: the columns, in the order of ``SELECT *``.
        windows: windows that are not assigned yet; None: the rows are complete.
        table: the rows of a lookup table instead of a stream.
        lookup: a table of another system instead of a stream.
        ranking: the definition of the row number, for the one column without a stored name and bound.
    """

    stream: Stream | None
    columns: tuple[Column, ...]
    windows: Windows | None = None
    table: pa.Table | None = None
    lookup: NamedLookup | None = None
    ranking: Ranking | None = None

    @property
    def records(self) -> Stream:
        """The stream. Lookup tables are refused before a stream is needed."""
        assert self.stream is not None, "a lookup table was taken for a stream"
        return self.stream

    @property
    def plain(self) -> Relation:
        """The same rows without the columns of processing time, which have no value in a row."""
        columns = tuple(column for column in self.columns if column.bound != "proctime")
        return self if len(columns) == len(self.columns) else replace(self, columns=columns)

    def numbered(self, text: Text) -> Relation:
        """The rows, after checking that no number of theirs is missing.

        Raises:
            QueryError: no condition limits their ROW_NUMBER.
        """
        if self.ranking is None:
            return self
        name = next(column.name for column in self.columns if column.stored is None and column.bound is None)
        raise text.error(
            self.ranking.call,
            f"ROW_NUMBER() without a limit would keep all rows forever: add WHERE {name} <= 10 around this query",
        )

    @property
    def tables(self) -> list[str]:
        """The names of its tables, without duplicates."""
        return list(dict.fromkeys(column.table for column in self.columns if column.table is not None))

    def named(self, table: str) -> Relation:
        """The same rows under a table name."""
        return replace(self, columns=tuple(replace(column, table=table) for column in self.columns))

    def of(self, tree: Tree, text: Text) -> Column:
        """Resolve a column name in a query.

        Raises:
            QueryError: the table or column is unknown or ambiguous.
        """
        if tree.args.get("db") is not None:
            raise text.error(tree, "fields of structs are not supported in SQL: extract the field with map first")
        table = tree.table
        found = [column for column in self.columns if table or not column.qualified]
        if table:
            found = _equal(table, found, lambda column: column.table or "")
            if not found:
                raise text.error(tree, unknown("table", table, self.tables))
        among = found
        found = _equal(tree.name, found, lambda column: column.name)
        if not found:
            raise text.error(tree, unknown("column", tree.name, dict.fromkeys(column.name for column in among)))
        if len(found) > 1:
            where = [column.table for column in found if column.table is not None]
            named = " or ".join(f"{name}.{tree.name}" for name in dict.fromkeys(where))
            fix = f"write {named}" if len(set(where)) > 1 else "rename one of them with AS"
            raise text.error(tree, f"the column {tree.name!r} is ambiguous, {len(found)} columns have this name: {fix}")
        return found[0]

    def value_of(self, tree: Tree, text: Text) -> str:
        """The stored name of the column that a query reads in a row.

        Raises:
            QueryError: the column has no value in a row: a number of rows, or processing time.
        """
        column = self.of(tree, text)
        if column.bound == "proctime":
            raise text.error(
                tree,
                f"{tree.name} is processing time, PROCTIME(), which has no value in a row: use it as DESCRIPTOR("
                f"{tree.name}) of a window, and elsewhere the event time",
            )
        if column.stored is None:
            raise text.error(tree, f"the number {tree.name} of a row can be used only in WHERE {tree.name} <= 10")
        return column.stored

    def stored(self, trees: Iterable[Tree], text: Text) -> list[Column]:
        """The columns that these parts name, without duplicates."""
        named = [self.of(column, text) for tree in trees for column in tree.find_all(exp.Column)]
        return list(dict.fromkeys(named))


def _equal(name: str, columns: list[Column], told: object) -> list[Column]:
    """The columns with exactly this name; if there are none, those that differ only in case."""
    assert callable(told)
    exact = [column for column in columns if told(column) == name]
    return exact or [column for column in columns if told(column).lower() == name.lower()]
