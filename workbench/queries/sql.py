"""``wb.sql``: a query over streams as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add

import pyarrow as pa
from sqlglot import exp

from workbench.api.running.pipeline import Pipeline
from workbench.api.streams.stream import Stream
from workbench.arguments import as_given
from workbench.connectors.contract.base import Sink
from workbench.errors import QueryError, unknown
from workbench.expressions.tree.sql import Tree
from workbench.operators.changelogs.row_kinds import KIND, is_changelog
from workbench.origin import caller
from workbench.queries.clauses.state_ttl import limited, setting
from workbench.queries.clauses.uniting import all_rows
from workbench.queries.declaring import Table, fitted, inserted, lookup_of, source_of, table_of
from workbench.queries.reading.dialect import Statement, statements
from workbench.queries.reading.event_time import event_times
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import materialized
from workbench.queries.selecting import Planner


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


@dataclass(frozen=True)
class Script:
    """The results of a script's statements.

    Attributes:
        views: the streams of CREATE VIEW, by name.
        explained: the streams of EXPLAIN.
        result: the stream of the SELECT, or None.
        inserted: all pipelines of INSERT INTO, combined; None if there are none.
    """

    views: dict[str, Stream]
    explained: tuple[Stream, ...]
    result: Stream | None
    inserted: Pipeline | None = None


def script(text: Text, tables: Mapping[str, Stream | pa.Table | Sink]) -> Script:
    """Plan the statements of a script in order: tables, views, plans to show, and the query to run.

    Raises:
        QueryError: see `sql` and `sql_script`; or a second query.
    """
    sinks = {name: value for name, value in tables.items() if isinstance(value, Sink)}
    known = {name: relation(name, value, text) for name, value in tables.items() if name not in sinks}
    declared: dict[str, Table] = {}
    views: dict[str, Stream] = {}
    explained: list[Stream] = []
    result: Stream | None = None
    inserts: dict[str, tuple[Tree, Relation, Table | Sink]] = {}  # by the name of the table
    ttl_us: int | None = None

    def planned(tree: Tree) -> Relation:
        return limited(Planner(known, text).query(tree), ttl_us, known.values())

    for statement in statements(text):
        tree = statement.tree
        if isinstance(tree, exp.Set):
            ttl_us = setting(tree, text)
            continue
        if isinstance(tree, exp.Create) and str(tree.args.get("kind")).upper() == "TABLE" and tree.expression is None:
            table = table_of(tree, text)
            declared[table.declared.name] = table
            continue
        written = tree.this.find(exp.Table) if isinstance(tree, exp.Insert) else None
        for read in tree.find_all(exp.Table):
            if read is not written and read.name in declared and read.name not in known:
                table = declared[read.name]
                looked_up = lookup_of(table, text) if read.args.get("version") is not None else None
                known[read.name] = looked_up or source_of(table, text)
        if statement.explained:
            explained.append(planned(tree).records)
        elif isinstance(tree, exp.Create):
            name, rows = Planner(known, text).view(tree)
            rows = limited(rows, ttl_us, known.values())
            known[name] = rows.named(name)
            views[name] = rows.records
        elif written is not None:
            target = declared.get(written.name) or sinks.get(written.name)
            if target is None:
                hint = f"declare it with CREATE TABLE {written.name} (...) WITH ('connector' = '...')"
                raise text.error(written, f"{unknown('table', written.name, (*declared, *sinks))}; {hint}")
            rows = _emitted(materialized(planned(tree.expression), text), statement, text)
            rows = fitted(tree, rows, target, text)
            if written.name in inserts:
                first, before, target = inserts[written.name]
                inserts[written.name] = first, all_rows(before, rows, tree, text), target
            else:
                inserts[written.name] = tree, rows, target
        elif result is not None:
            raise text.error(tree, "a second query starts here, but a job has one query: run it separately")
        else:
            result = _emitted(planned(tree), statement, text).records
    pipelines = [inserted(*insert, text) for insert in inserts.values()]
    return Script(views, tuple(explained), result, reduce(add, pipelines) if pipelines else None)


def _emitted(rows: Relation, statement: Statement, text: Text) -> Relation:
    """The rows, after checking that they are what EMIT states: changes, or final results."""
    changes = is_changelog(rows.records.schema)
    if statement.emitted == "changes" and not changes:
        raise text.error(statement.tree, "each result of this query is final: remove EMIT CHANGES")
    if statement.emitted == "final" and changes:
        raise text.error(
            statement.tree,
            "these results never become final: also GROUP BY a window, or remove EMIT FINAL",
        )
    return rows


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
    if done.result is not None or done.inserted is None:
        raise QueryError(
            "the script writes nothing: put INSERT INTO before its SELECT, or use wb.sql", origin=text.origin
        )
    return done.inserted


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
