"""Plans the statements of a script in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from workbench.api.running.pipeline import Pipeline
from workbench.api.streams.stream import Stream
from workbench.arguments import a_table, as_given
from workbench.connectors.contract.base import Sink
from workbench.errors import QueryError, unknown
from workbench.expressions.tree.limits import too_deep, without_warnings
from workbench.expressions.tree.sql import Tree
from workbench.operators.changelogs.row_kinds import KIND, is_changelog
from workbench.queries.clauses.state_ttl import limited, setting
from workbench.queries.clauses.uniting import all_rows
from workbench.queries.declaring import Table, fitted, inserted, lookup_of, source_of, table_of
from workbench.queries.reading.dialect import WINDOWS, Statement, statements
from workbench.queries.reading.event_time import event_times
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import materialized
from workbench.queries.selecting import Planner
from workbench.raised import described

_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
_Named = TypeVar("_Named")


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
    with without_warnings():
        try:
            return _planned(text, tables)
        except QueryError:
            raise
        except RecursionError:
            raise QueryError(too_deep().message, origin=text.origin) from None
        except (*_FAULTS, SqlglotError) as error:
            raise QueryError(
                f"the query cannot be planned ({described(error)}), which is a fault of the workbench: report it, "
                "and write the query in another way",
                origin=text.origin,
            ) from error


def _planned(text: Text, tables: Mapping[str, Stream | pa.Table | Sink]) -> Script:
    making = _Making(text)
    for name, value in tables.items():
        if isinstance(value, Sink):
            making.sinks[name] = value
        else:
            making.known[name] = relation(name, value, text)
    for statement in statements(text):
        making.take(statement)
    pipelines = [inserted(*insert, text) for insert in making.inserts.values()]
    written = reduce(add, pipelines) if pipelines else None
    return Script(making.views, tuple(making.explained), making.result, written)


def relation(name: str, value: object, text: Text) -> Relation:
    """A stream or table under the name that a query uses.

    Raises:
        QueryError: something else.
    """
    if isinstance(value, pa.Table):
        return Relation(None, tuple(Column(name, column, column) for column in value.column_names), table=value)
    if not isinstance(value, Stream):
        raise QueryError(f"{name} is {as_given(value)}: pass a stream, or {a_table(value)}", origin=text.origin)
    times = event_times(value._end.node) if value._end.tag is None else {}
    columns = [column for column in value.columns if column != KIND]
    return Relation(value, tuple(Column(name, column, column, times.get(column)) for column in columns))


@dataclass
class _Making:
    """The results so far.

    Attributes:
        known: the tables and streams that a query can read, by name.
        sinks: the sinks that were passed, by name.
        declared: the tables of CREATE TABLE, by name.
        inserts: by table name: the first INSERT INTO the table, the rows of all of them, and the table.
        ttl_us: the state TTL of SET.
    """

    text: Text
    known: dict[str, Relation] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)
    declared: dict[str, Table] = field(default_factory=dict)
    views: dict[str, Stream] = field(default_factory=dict)
    explained: list[Stream] = field(default_factory=list)
    inserts: dict[str, tuple[Tree, Relation, Table | Sink]] = field(default_factory=dict)
    result: Stream | None = None
    ttl_us: int | None = None

    def take(self, statement: Statement) -> None:
        tree = statement.tree
        if isinstance(tree, exp.Set):
            self.ttl_us = setting(tree, self.text)
        elif isinstance(tree, exp.Create) and str(tree.args.get("kind")).upper() == "TABLE" and tree.expression is None:
            self._declare(tree)
        elif statement.explained:
            query = _query_of(tree) if isinstance(tree, exp.Insert) else tree
            self.explained.append(self._planned(query).records)
        elif isinstance(tree, exp.Create):
            self._view(tree)
        elif isinstance(tree, exp.Insert):
            self._insert(tree, statement)
        elif self.result is not None:
            raise self.text.error(tree, "a second query starts here, but a job has one query: run it separately")
        else:
            self.result = _emitted(self._planned(tree), statement, self.text).records

    def _planned(self, query: Tree) -> Relation:
        self._read(query)
        return limited(
            Planner(self.known, self.text).query(query).numbered(self.text).plain, self.ttl_us, self.known.values()
        )

    def _read(self, query: Tree) -> None:
        """Make the sources of the declared tables in a query."""
        for read in _tables_in(query):
            table = _of_name(read.name, self.declared)
            if table is not None and table.declared.name not in self.known:
                looked_up = lookup_of(table, self.text) if read.args.get("version") is not None else None
                self.known[table.declared.name] = looked_up or source_of(table, self.text)

    def _declare(self, tree: Tree) -> None:
        table = table_of(tree, self.text)
        name = table.declared.name
        if name in self.declared:
            if tree.args.get("exists"):
                return
            raise self.text.error(tree.this.this, f"the table {name!r} is declared twice: give one another name")
        self.known.pop(name, None)  # a variable of a notebook, perhaps
        self.declared[name] = table

    def _view(self, tree: Tree) -> None:
        if tree.expression is not None:
            self._read(tree.expression)
        name, rows = Planner(self.known, self.text).view(tree)
        if name in self.views and not tree.args.get("replace"):
            raise self.text.error(
                tree.this, f"two views are named {name!r}: give one another name, or write CREATE OR REPLACE VIEW"
            )
        rows = limited(rows, self.ttl_us, self.known.values())
        self.known[name] = rows.named(name)
        self.views[name] = rows.records

    def _insert(self, tree: Tree, statement: Statement) -> None:
        table = tree.this.find(exp.Table)
        if tree.args.get("overwrite"):
            raise self.text.error(
                table, "INSERT OVERWRITE is not supported, because a job only adds rows: use INSERT INTO"
            )
        target = _of_name(table.name, self.declared) or _of_name(table.name, self.sinks)
        if target is None or table.args.get("db") is not None:
            hint = f"declare it with CREATE TABLE {table.name} (...) WITH ('connector' = '...')"
            named = f"{table.args['db'].name}.{table.name}" if table.args.get("db") is not None else table.name
            raise self.text.error(table, f"{unknown('table', named, (*self.declared, *self.sinks))}; {hint}")
        rows = _emitted(materialized(self._planned(_query_of(tree)), self.text), statement, self.text)
        rows = fitted(tree, rows, target, self.text)
        name = table.name.lower()
        if name in self.inserts:
            first, before, target = self.inserts[name]
            self.inserts[name] = first, all_rows(before, rows, tree, self.text), target
        else:
            self.inserts[name] = tree, rows, target


def _tables_in(query: Tree) -> list[Tree]:
    """The tables that a query reads; the parser takes the table in ``TUMBLE(bid, ts, ...)`` for a column."""
    calls = [call for call in query.find_all(exp.Anonymous) if call.name.upper() in WINDOWS and call.expressions]
    operands = [
        one.expression if isinstance(one, exp.Kwarg) else one for one in (call.expressions[0] for call in calls)
    ]
    return [*query.find_all(exp.Table), *(one for one in operands if isinstance(one, exp.Column) and not one.table)]


def _of_name(name: str, among: Mapping[str, _Named]) -> _Named | None:
    """The value of this name, or of the only name that differs in case."""
    if name in among:
        return among[name]
    near = [value for other, value in among.items() if other.lower() == name.lower()]
    return near[0] if len(near) == 1 else None


def _query_of(insert: Tree) -> Tree:
    """The query of INSERT INTO, with the WITH clause before the statement."""
    query = insert.expression
    if insert.args.get("with_") is not None and query.args.get("with_") is None:
        query = query.copy()
        query.set("with_", insert.args["with_"].copy())
    return query


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
