"""``wb.sql``: a query over streams as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from workbench.api.streams.stream import Stream
from workbench.arguments import as_given
from workbench.errors import QueryError
from workbench.operators.changelogs.row_kinds import KIND
from workbench.origin import caller
from workbench.queries.dialect import statements
from workbench.queries.event_time import event_times
from workbench.queries.places import Text
from workbench.queries.relation import Column, Relation
from workbench.queries.selecting import Planner


def sql(query: str, **tables: Stream | pa.Table) -> Stream:
    """The stream that a SQL query describes; nothing runs until the stream does.

    The language is Spark's SQL with Flink's window table functions; docs/sql.md describes it. A query becomes the
    methods that you could write yourself, such as ``filter``, ``select``,
    ``key_by(...).window(...).aggregate(...)`` and ``join``: the resulting stream mixes with them.

    Source: Flink's SQL (window table functions, interval joins); Spark's SQL (expressions).

    Args:
        query: one SELECT, or several with UNION ALL; WITH before it names queries, and so does ``CREATE TEMPORARY VIEW
            name AS SELECT ...;``. Names are found in any case.
        tables: by the name that the query uses: a stream, or a `pyarrow.Table` to join with.

    Returns:
        A stream of the columns of the SELECT list; each record keeps its event time. A group of a window has the last
        microsecond of the window.

    Raises:
        QueryError: the query cannot be read, names something unknown, or could not be computed on a stream; with the
            line, a caret and the likely fix.

    Example:
        >>> times = pa.array([0, 1_000_000, 70_000_000], pa.timestamp("us"))
        >>> table = pa.table({"user": ["ann", "bob", "ann"], "ts": times})
        >>> clicks = wb.Stream.from_table(table, event_time="ts")
        >>> minutes = wb.sql('''
        ...     SELECT window_start, COUNT(*) AS clicks
        ...     FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
        ...     GROUP BY window_start, window_end
        ... ''', clicks=clicks)
        >>> minutes.collect()["clicks"].to_pylist()
        [2, 1]
    """
    text = Text(query, caller())
    done = script(text, tables)
    if done.explained:
        raise QueryError("EXPLAIN shows nothing here: use wb.sql(...).sink_to(...).explain()", origin=text.origin)
    if done.result is None:
        raise QueryError("the script has no query: end it with a SELECT", origin=text.origin)
    return done.result


@dataclass(frozen=True)
class Script:
    """What the statements of a script have made.

    Attributes:
        views: the streams of CREATE VIEW, by name.
        explained: those of EXPLAIN.
        result: that of the SELECT, or None.
    """

    views: dict[str, Stream]
    explained: tuple[Stream, ...]
    result: Stream | None


def script(text: Text, tables: Mapping[str, Stream | pa.Table]) -> Script:
    """Plan the statements of a script, one after the other: views, plans to show, and at most one query to run.

    Raises:
        QueryError: see `sql`; or a second query.
    """
    known = {name: relation(name, value, text) for name, value in tables.items()}
    views: dict[str, Stream] = {}
    explained: list[Stream] = []
    result: Stream | None = None
    for statement in statements(text):
        planner, tree = Planner(known, text), statement.tree
        if statement.explained:
            explained.append(planner.query(tree).records)
        elif isinstance(tree, exp.Create):
            name, rows = planner.view(tree)
            known[name] = rows.named(name)
            views[name] = rows.records
        elif result is not None:
            raise text.error(tree, "a second query begins here, and one job has one: run it on its own")
        else:
            result = planner.query(tree).records
    return Script(views, tuple(explained), result)


def relation(name: str, value: object, text: Text) -> Relation:
    """A stream or table under the name that a query uses.

    Raises:
        QueryError: something else.
    """
    if isinstance(value, pa.Table):
        return Relation(None, tuple(Column(name, column, column) for column in value.column_names), table=value)
    if not isinstance(value, Stream):
        raise QueryError(
            f"{name} is {as_given(value)}: pass a stream, or a pyarrow.Table to join with", origin=text.origin
        )
    times = event_times(value._end.node) if value._end.tag is None else {}
    columns = [column for column in value.columns if column != KIND]
    return Relation(value, tuple(Column(name, column, column, times.get(column)) for column in columns))
