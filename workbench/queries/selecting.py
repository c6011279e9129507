"""SELECT: from a syntax tree to a relation, one clause after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from workbench.errors import unknown
from workbench.expressions import col
from workbench.expressions.tree.sql import Tree
from workbench.queries.clauses.join_conditions import conjuncts
from workbench.queries.clauses.joining import joined
from workbench.queries.clauses.overs import with_named_windows
from workbench.queries.clauses.projecting import is_star, projected, selected
from workbench.queries.clauses.ranking import limited
from workbench.queries.clauses.recognizing import recognized
from workbench.queries.clauses.state_ttl import hinted
from workbench.queries.clauses.state_ttl import limited as limited_state
from workbench.queries.clauses.subqueries import Scope, check_not_nested, chosen, is_nested
from workbench.queries.clauses.uniting import distinct, united
from workbench.queries.clauses.unnesting import unnested, unnesting_of
from workbench.queries.reading.binding import bound_condition
from workbench.queries.reading.dialect import WINDOWS
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import assigned, materialized, window_call

_CLAUSES = {
    "order": "ORDER BY is not supported, because a stream has no end: sort job.table()",
    "sort": "SORT BY is not supported: sort job.table()",
    "limit": "LIMIT is not supported, because the first rows of a stream depend on its parallelism: use .collect(10)",
    "offset": "OFFSET is not supported: remove it",
    "qualify": "QUALIFY is not supported: write SELECT * FROM (SELECT ..., ROW_NUMBER() OVER (...) AS n) WHERE n = 1",
    "pivots": "PIVOT is not supported: use CASE in an aggregate",
    "into": "SELECT INTO is not supported: use .sink_to(...)",
    "sample": "TABLESAMPLE is not supported: use WHERE",
}
_TABLES_MAX = 50
_TAKEN = (
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "with_",
    "kind",
    "distinct",
    "match",
    "hint",
    "laterals",
    "windows",
)


@dataclass(frozen=True)
class Planner:
    """Plans queries over named tables.

    Attributes:
        tables: by name.
        text: the query, for errors.
    """

    tables: Mapping[str, Relation]
    text: Text

    def query(self, tree: Tree) -> Relation:
        """The relation of a query: a SELECT or UNION ALL, possibly in parentheses or after WITH.

        Raises:
            QueryError: with the line and a caret.
        """
        planner = self._with_tables(tree)
        if isinstance(tree, exp.Subquery):
            return planner.query(tree.this)
        if isinstance(tree, exp.Union):
            for clause in ("order", "limit", "offset"):
                if tree.args.get(clause):
                    raise self.text.error(tree.args[clause], _CLAUSES[clause])
            return united(planner.query(tree.this), planner.query(tree.expression), tree, self.text)
        if isinstance(tree, exp.Select):
            return planner._select(tree)
        raise self.text.error(tree, f"{tree.key.upper()} is not supported: write a SELECT or UNION ALL")

    def view(self, tree: Tree) -> tuple[str, Relation]:
        """The name and the rows of ``CREATE TEMPORARY VIEW name AS SELECT ...``.

        Raises:
            QueryError: CREATE of something else, or a query that cannot be planned.
        """
        target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        if str(tree.args.get("kind")).upper() != "VIEW" or not isinstance(target, exp.Table):
            what = f"CREATE {tree.args.get('kind') or ''}".strip()
            raise self.text.error(tree, f"{what} is not supported: write CREATE TEMPORARY VIEW name AS SELECT ...")
        if tree.expression is None:
            raise self.text.error(tree, "the view lacks its query: write CREATE TEMPORARY VIEW name AS SELECT ...")
        names = [part.name for part in tree.this.expressions] if isinstance(tree.this, exp.Schema) else []
        rows = materialized(self.query(tree.expression), self.text)
        if names:
            rows = self._renamed(rows, names, tree.this)
            chosen = {column.name: col(column.stored or "") for column in rows.columns}
            columns = tuple(replace(column, stored=column.name) for column in rows.columns)
            rows = Relation(selected(rows, chosen), columns)
        return target.name, rows

    def _with_tables(self, tree: Tree) -> Planner:
        planner, named = self, tree.args.get("with_")
        defined: set[str] = set()
        for table in () if named is None else named.expressions:
            if named.args.get("recursive"):
                raise self.text.error(table, "WITH RECURSIVE is not supported: remove RECURSIVE")
            rows = planner.query(table.this)
            names = [column.name for column in table.args["alias"].columns]
            rows = self._renamed(rows, names, table)
            if table.alias in defined:
                raise self.text.error(
                    table.args["alias"], f"two queries of WITH are named {table.alias!r}: give one another name"
                )
            defined.add(table.alias)
            planner = replace(planner, tables={**planner.tables, table.alias: rows.named(table.alias)})
        return planner

    def _renamed(self, rows: Relation, names: list[str], tree: Tree) -> Relation:
        if not names:
            return rows
        if len(names) != len(rows.columns):
            raise self.text.error(
                tree, f"{len(names)} names are given for {len(rows.columns)} columns: name every column"
            )
        columns = (replace(column, name=name) for column, name in zip(rows.columns, names, strict=True))
        return replace(rows, columns=tuple(columns))

    # SELECT -------------------------------------------------------------------------------------------------------

    def _select(self, tree: Tree) -> Relation:
        for clause, part in tree.args.items():
            if part and clause not in _TAKEN:
                message = _CLAUSES.get(clause, f"{clause.rstrip('_').upper()} is not supported: remove it")
                place = part[0] if isinstance(part, list) else part
                raise self.text.error(place if isinstance(place, exp.Expression) else tree, message)
        if tree.args.get("kind"):
            raise self.text.error(tree, f"SELECT AS {tree.args['kind']} is not supported: select columns")
        source = tree.args.get("from_")
        if source is None:
            raise self.text.error(tree, "the query has no FROM: name a stream, as in SELECT * FROM flights")
        where = tree.args.get("where")
        pool = conjuncts(None if where is None else where.this)
        nested = [condition for condition in pool if is_nested(condition)]
        pool = [condition for condition in pool if not is_nested(condition)]
        for condition in pool:
            check_not_nested(condition, self.text)
        whole = pool if len(pool) > 1 and not nested else []
        if unnesting_of(source.this, self.text) is not None:
            raise self.text.error(source.this, "UNNEST must follow a stream: write FROM t CROSS JOIN UNNEST(t.tags)")
        rows = self._source(source.this)
        if source.this.args.get("version") is not None:
            raise self.text.error(
                source.this, "FOR SYSTEM_TIME AS OF belongs after the table of a JOIN: remove it here"
            )
        recognizes = tree.args.get("match") or source.this.args.get("match")
        if recognizes is not None:
            if rows.stream is None:
                raise self.text.error(
                    source.this, "this is a table, not a stream: convert it with wb.Stream.from_table"
                )
            rows = recognized(materialized(rows, self.text), recognizes, self.text)
        rows, pool, whole = self._limited(rows, tree, pool, whole)
        if len(joins := joins_of(tree)) > _TABLES_MAX:
            raise self.text.error(
                joins[_TABLES_MAX].this,
                f"the query joins {len(joins):,} tables, more than the maximum of {_TABLES_MAX}: join in several views",
            )
        for join in joins:
            if (elements := unnesting_of(join.this, self.text)) is not None:
                rows = unnested(rows, elements, join, self.text)
                continue
            other, pool, whole = self._limited(self._source(join.this), tree, pool, whole)
            rows, pool = joined(rows, other, join, pool, self.text)
            whole = []
        for lateral in tree.args.get("laterals") or ():
            if (elements := unnesting_of(lateral, self.text)) is not None:
                rows = unnested(rows, elements, None, self.text)
        if rows.stream is None:
            raise self.text.error(source.this, "this is a table, not a stream: convert it with wb.Stream.from_table")
        condition = where.this if whole else None
        rows = self._filtered(rows, [condition] if condition is not None else pool)
        for test in nested:
            rows = chosen(rows, test, pool, Scope(self.query, self._offered, self.text))
        ttl_us = hinted(tree.args.get("hint"), rows.tables, self.text)
        rows = projected(rows, with_named_windows(tree, self.text), self.text)
        rows = distinct(rows, tree, self.text) if tree.args.get("distinct") else rows
        return limited_state(rows, ttl_us, self.tables.values())

    def _offered(self, tree: Tree) -> Relation:
        """The columns of all relations in FROM."""
        parts = [tree.args["from_"].this, *(join.this for join in joins_of(tree)), *(tree.args.get("laterals") or ())]
        columns: list[Column] = []
        for part in parts:
            elements = unnesting_of(part, self.text)
            columns += self._source(part).columns if elements is None else elements.columns
        return Relation(None, tuple(columns))

    def _limited(
        self, rows: Relation, tree: Tree, pool: list[Tree], whole: list[Tree]
    ) -> tuple[Relation, list[Tree], list[Tree]]:
        """Apply the conditions on ROW_NUMBER, and return the other conditions."""
        if rows.ranking is None:
            return rows, pool, whole
        rows, pool = limited(rows, pool, self._reads_number(rows, tree, pool), self.text)
        return rows, pool, []

    def _reads_number(self, rows: Relation, tree: Tree, pool: list[Tree]) -> bool:
        """Whether a query uses the number of its rows outside of simple conditions."""
        name = next(column.name for column in rows.columns if column.stored is None and column.bound is None).lower()
        if any(is_star(part) for part in tree.expressions):
            return True
        parts = [*tree.expressions, *(tree.args[key] for key in ("group", "having") if tree.args.get(key))]
        parts += [condition for condition in pool if len(list(condition.find_all(exp.Column))) > 1]
        return any(column.name.lower() == name for part in parts for column in part.find_all(exp.Column))

    def _source(self, tree: Tree) -> Relation:
        """The relation of an item in FROM or JOIN, under its alias."""
        alias = tree.args.get("alias")
        names = [] if alias is None else [column.name for column in alias.columns]
        call = window_call(tree)
        if call is not None:
            rows = assigned(call, self._operand, self.text)
            if alias is None:
                return rows
        elif isinstance(tree, exp.Subquery):
            rows = self.query(tree)
        elif isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
            rows = self._table(tree)
        else:
            what = tree.this if isinstance(tree, exp.Table) else tree
            known = [*WINDOWS, "a query in parentheses", *self.tables]
            raise self.text.error(tree, f"{what.sql('spark')} cannot be used in FROM: it takes {', '.join(known)}")
        rows = self._renamed(rows, names, tree)
        return rows.named(alias.name) if alias is not None and alias.name else rows

    def _table(self, tree: Tree) -> Relation:
        for name, message in _TABLE_PARTS.items():
            if tree.args.get(name):
                raise self.text.error(tree, message)
        found = self.tables.get(tree.name)
        if found is None:
            near = [name for name in self.tables if name.lower() == tree.name.lower()]
            if len(near) != 1:
                fix = f"; pass it as wb.sql(..., {tree.name}=stream)" if tree.name.isidentifier() else ""
                raise self.text.error(tree, unknown("table", tree.name, self.tables) + fix)
            found = self.tables[near[0]]
        return found

    def _operand(self, tree: Tree) -> Relation:
        """The table of a window table function."""
        if isinstance(tree, exp.Column) and not tree.table:
            table = exp.Table(this=tree.this.copy())
            return self._table(table)
        return self._source(tree)

    def _filtered(self, rows: Relation, conditions: list[Tree]) -> Relation:
        if not conditions:
            return rows
        if any(column.bound is not None for column in rows.stored(conditions, self.text)):
            rows = materialized(rows, self.text)
        values = [bound_condition(one, rows, self.text) for one in conditions]
        return replace(rows, stream=rows.records.filter(*values))


_TABLE_PARTS = {
    "db": "a table has a single name here: remove the part before the dot",
    "sample": "TABLESAMPLE is not supported: use WHERE",
    "pivots": "PIVOT is not supported: use CASE in an aggregate",
    "hints": "a hint is not supported: remove it",
}


def joins_of(tree: Tree) -> list[Tree]:
    """The joins of a SELECT, in order."""
    return [*(tree.args["from_"].this.args.get("joins") or ()), *(tree.args.get("joins") or ())]
