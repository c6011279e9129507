"""``wb.sql``: a query over streams as a stream."""

from __future__ import annotations

import pyarrow as pa

from workbench.api.running.pipeline import Pipeline
from workbench.api.streams.stream import Stream
from workbench.connectors.contract.base import Sink
from workbench.errors import QueryError
from workbench.origin import caller
from workbench.queries.reading.places import Text
from workbench.queries.scripts import script


def sql(query: str, **tables: Stream | pa.Table) -> Stream:
    """Build the stream that a SQL query describes; nothing runs until the stream runs.

    The language is Spark's SQL with Flink's window table functions; docs/sql.md describes it. A query is translated to
    methods that you can also call yourself, such as ``filter``, ``select``, ``key_by(...).window(...).aggregate(...)``
    and ``join``, so you can combine both.

    Source: Flink's SQL (window table functions, interval joins); Spark's SQL (expressions).

    Args:
        query: one SELECT, or several with UNION ALL; WITH before it names queries, and so does ``CREATE TEMPORARY VIEW
            name AS SELECT ...;``. Names are not case-sensitive.
        tables: by the name that the query uses: a stream, or a `pyarrow.Table` to join with.

    Returns:
        A stream with the columns of the SELECT list. Each record keeps its event time; the event time of a window's
        result is the last microsecond of the window.

    Raises:
        QueryError: the query cannot be parsed, contains an unknown name, or cannot be computed on a stream; with the
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
        raise QueryError("EXPLAIN has no effect here: use wb.sql(...).sink_to(...).explain()", origin=text.origin)
    if done.inserted is not None:
        raise QueryError("INSERT INTO builds a pipeline, not a stream: use wb.sql_script(...)", origin=text.origin)
    if done.result is None:
        raise QueryError("the script has no query: end it with a SELECT", origin=text.origin)
    return done.result


def sql_script(statements: str, **tables: Stream | pa.Table | Sink) -> Pipeline:
    """Build one pipeline from several SQL statements; it runs as one job.

    ``CREATE TABLE name (column TYPE, ..., WATERMARK FOR ts AS ts - INTERVAL '4' SECOND) WITH ('connector' = '...')``
    declares a table that a connector reads or writes, ``CREATE TEMPORARY VIEW`` names a query, and ``INSERT INTO name
    SELECT ...`` writes the rows of a query to a table. Several INSERT INTO the same table write the rows of all of
    them.

    Source: Flink's statement sets.

    Args:
        statements: the statements, separated by semicolons, with at least one INSERT INTO.
        tables: by the name that the script uses: a stream, a `pyarrow.Table` to join with, or a sink to write to.

    Raises:
        QueryError: the script cannot be parsed, contains an unknown name, or writes nothing; with the line and a caret.

    Example:
        >>> numbers = wb.Stream.from_table(pa.table({"n": [1, 2, 3]}))
        >>> pipeline = wb.sql_script('''
        ...     CREATE TABLE odd (n BIGINT) WITH ('connector' = 'memory');
        ...     INSERT INTO odd SELECT n FROM numbers WHERE n % 2 = 1;
        ...     INSERT INTO total SELECT SUM(n) AS total FROM numbers;
        ... ''', numbers=numbers, total=wb.TableSink("total"))
        >>> job = pipeline.run("sums")
        >>> job.wait("60s"), job.table("odd")["n"].to_pylist(), job.table("total")["total"].to_pylist()
        ('FINISHED', [1, 3], [6])
    """
    text = Text(statements, caller())
    done = script(text, tables)
    if done.explained:
        raise QueryError("EXPLAIN has no effect here: use wb.sql_script(...).explain()", origin=text.origin)
    if done.result is not None or done.inserted is None:
        raise QueryError(
            "the script writes nothing: put INSERT INTO before its SELECT, or use wb.sql", origin=text.origin
        )
    return done.inserted
