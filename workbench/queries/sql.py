"""``wb.sql``: a query over streams as a stream."""

from __future__ import annotations

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.arguments import as_given
from workbench.errors import QueryError
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
        query: one SELECT, or several with UNION ALL; WITH before it names queries. Names are found in any case.
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
    given = {name: relation(name, value, text) for name, value in tables.items()}
    found = statements(text)
    if len(found) > 1:
        raise text.error(found[1].tree, "a second statement begins here, and wb.sql takes one: call it for each")
    if found[0].explained:
        raise text.error(found[0].tree, "EXPLAIN shows nothing here: use wb.sql(...).sink_to(...).explain()")
    return Planner(given, text).query(found[0].tree).records


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
    return Relation(value, tuple(Column(name, column, column, times.get(column)) for column in value.columns))
