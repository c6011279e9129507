"""SELECT: from a syntax tree to a relation, one clause after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from workbench.api.streams.stream import Stream
from workbench.errors import PlanError, unknown
from workbench.expressions import Expression, col, plain_name
from workbench.expressions.tree.sql import Tree
from workbench.expressions.tree.types import CAST_TYPES, common_type, operand_type, type_name
from workbench.operators.changelogs.row_kinds import KIND
from workbench.queries.clauses.grouping import Items, aggregates_in, grouped
from workbench.queries.clauses.joining import conjuncts, joined
from workbench.queries.clauses.overs import overs_in, with_overs
from workbench.queries.clauses.ranking import is_row_number, limited, numbered
from workbench.queries.clauses.recognizing import recognized
from workbench.queries.clauses.state_ttl import hinted
from workbench.queries.clauses.state_ttl import limited as limited_state
from workbench.queries.clauses.subqueries import Scope, check_not_nested, chosen, is_nested
from workbench.queries.reading.binding import bound, key_of
from workbench.queries.reading.dialect import WINDOWS
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import assigned, free_name, is_clock, materialized, window_call

_CLAUSES = {
    "order": "ORDER BY is not supported, because a stream has no end at which it could be sorted: sort job.table()",
    "sort": "SORT BY is not supported: sort job.table()",
    "limit": "LIMIT is not supported, because a stream has no first rows at parallelism above 1: use .collect(10)",
    "offset": "OFFSET is not supported: leave it out",
    "qualify": "QUALIFY is not supported: aggregate in a window, such as TUMBLE(...)",
    "windows": "WINDOW is not supported: aggregate in a window, such as TUMBLE(...)",
    "laterals": "LATERAL is not supported: use flat_map before the query",
    "pivots": "PIVOT is not supported: use CASE in an aggregate",
    "into": "SELECT INTO is not supported: use .sink_to(...)",
    "sample": "TABLESAMPLE is not supported: use WHERE",
}
_TAKEN = ("expressions", "from_", "joins", "where", "group", "having", "with_", "kind", "distinct", "match", "hint")


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
        """The relation of a query: SELECT, UNION ALL, or either of them in parentheses or after WITH.

        Raises:
            QueryError: with the line and a caret.
        """
        planner = self._with_tables(tree)
        if isinstance(tree, exp.Subquery):
            return planner.query(tree.this)
        if isinstance(tree, exp.Union):
            return planner._union(tree)
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
            rows = Relation(_selected(rows, chosen), columns)
        return target.name, rows

    def _with_tables(self, tree: Tree) -> Planner:
        planner, named = self, tree.args.get("with_")
        for table in () if named is None else named.expressions:
            if named.args.get("recursive"):
                raise self.text.error(table, "WITH RECURSIVE is not supported: leave out RECURSIVE")
            rows = planner.query(table.this)
            names = [column.name for column in table.args["alias"].columns]
            rows = self._renamed(rows, names, table)
            planner = replace(planner, tables={**planner.tables, table.alias: rows.named(table.alias)})
        return planner

    def _renamed(self, rows: Relation, names: list[str], tree: Tree) -> Relation:
        if not names:
            return rows
        if len(names) != len(rows.columns):
            raise self.text.error(tree, f"{len(names)} names are given to {len(rows.columns)} columns: name all")
        columns = (replace(column, name=name) for column, name in zip(rows.columns, names, strict=True))
        return replace(rows, columns=tuple(columns))

    # UNION ALL ----------------------------------------------------------------------------------------------------

    def _union(self, tree: Tree) -> Relation:
        for clause in ("order", "limit", "offset"):
            if tree.args.get(clause):
                raise self.text.error(tree.args[clause], _CLAUSES[clause])
        left, right = (materialized(self.query(part), self.text) for part in (tree.this, tree.expression))
        if len(left.columns) != len(right.columns):
            raise self.text.error(
                tree.expression,
                f"the sides of UNION ALL have {len(left.columns)} and {len(right.columns)} columns: select as many",
            )
        kinds = [self._common(*pair, left, right, tree) for pair in zip(left.columns, right.columns, strict=True)]
        names = [column.name for column in left.columns]
        sides = [self._cast(side, names, kinds) for side in (left, right)]
        columns = tuple(
            Column(None, one.name, one.name, one.ahead_us if one.ahead_us == other.ahead_us else None)
            for one, other in zip(left.columns, right.columns, strict=True)
        )
        rows = Relation(sides[0].union(sides[1]), columns)
        return self._distinct(rows, tree) if tree.args.get("distinct", True) else rows

    def _common(self, one: Column, other: Column, left: Relation, right: Relation, tree: Tree) -> pa.DataType:
        kinds = [side.records.schema.field(item.stored).type for side, item in ((left, one), (right, other))]
        if kinds[0] == kinds[1]:
            return kinds[0]
        kind = common_type(*map(operand_type, kinds))
        if kind is None or kind not in CAST_TYPES.values():
            raise self.text.error(
                tree.expression,
                f"the column {one.name!r} is {type_name(kinds[0])} on one side of UNION ALL and {type_name(kinds[1])} "
                "on the other: CAST one of them",
            )
        return kind

    @staticmethod
    def _cast(side: Relation, names: list[str], kinds: list[pa.DataType]) -> Stream:
        schema = side.records.schema
        chosen: dict[str, Expression] = {}
        for column, name, kind in zip(side.columns, names, kinds, strict=True):
            value = col(column.stored or "")
            chosen[name] = value if schema.field(column.stored).type == kind else value.cast(type_name(kind))
        return _selected(side, chosen)

    # SELECT -------------------------------------------------------------------------------------------------------

    def _select(self, tree: Tree) -> Relation:
        for clause, part in tree.args.items():
            if part and clause not in _TAKEN:
                message = _CLAUSES.get(clause, f"{clause.rstrip('_').upper()} is not supported: leave it out")
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
        rows = self._source(source.this)
        if source.this.args.get("version") is not None:
            raise self.text.error(source.this, "FOR SYSTEM_TIME AS OF follows the table of a JOIN: leave it out here")
        recognizes = tree.args.get("match") or source.this.args.get("match")
        if recognizes is not None:
            if rows.stream is None:
                raise self.text.error(source.this, "this is a table, not a stream: make one with wb.Stream.from_table")
            rows = recognized(materialized(rows, self.text), recognizes, self.text)
        rows, pool, whole = self._limited(rows, tree, pool, whole)
        for join in [*(source.this.args.get("joins") or ()), *(tree.args.get("joins") or ())]:
            other, pool, whole = self._limited(self._source(join.this), tree, pool, whole)
            rows, pool = joined(rows, other, join, pool, self.text)
            whole = []
        if rows.stream is None:
            raise self.text.error(source.this, "this is a table, not a stream: make one with wb.Stream.from_table")
        condition = where.this if whole else None
        rows = self._filtered(rows, [condition] if condition is not None else pool)
        for test in nested:
            rows = chosen(rows, test, pool, Scope(self.query, self._offered, self.text))
        ttl_us = hinted(tree.args.get("hint"), rows.tables, self.text)
        rows = self._projected(rows, tree)
        rows = self._distinct(rows, tree) if tree.args.get("distinct") else rows
        return limited_state(rows, ttl_us, self.tables.values())

    def _offered(self, tree: Tree) -> Relation:
        """The columns of all that a SELECT names in FROM."""
        source = tree.args["from_"].this
        joins = [*(source.args.get("joins") or ()), *(tree.args.get("joins") or ())]
        sources = [self._source(part) for part in (source, *(join.this for join in joins))]
        return Relation(None, tuple(column for rows in sources for column in rows.columns))

    def _limited(
        self, rows: Relation, tree: Tree, pool: list[Tree], whole: list[Tree]
    ) -> tuple[Relation, list[Tree], list[Tree]]:
        """Rows whose number is limited by WHERE, and the other conditions."""
        if rows.ranking is None:
            return rows, pool, whole
        rows, pool = limited(rows, pool, self._reads_number(rows, tree, pool), self.text)
        return rows, pool, []

    def _reads_number(self, rows: Relation, tree: Tree, pool: list[Tree]) -> bool:
        """Whether a query reads the number of its rows elsewhere than in simple conditions."""
        name = next(column.name for column in rows.columns if column.stored is None and column.bound is None).lower()
        if any(_is_star(part) for part in tree.expressions):
            return True
        parts = [*tree.expressions, *(tree.args[key] for key in ("group", "having") if tree.args.get(key))]
        parts += [condition for condition in pool if len(list(condition.find_all(exp.Column))) > 1]
        return any(column.name.lower() == name for part in parts for column in part.find_all(exp.Column))

    def _distinct(self, rows: Relation, tree: Tree) -> Relation:
        """Each row once."""
        if isinstance(tree.args.get("distinct"), exp.Distinct) and tree.args["distinct"].args.get("on") is not None:
            raise self.text.error(tree, "DISTINCT ON is not supported: use ROW_NUMBER() OVER (PARTITION BY ...)")
        try:
            return replace(rows, stream=rows.records.distinct(*(column.stored or "" for column in rows.columns)))
        except PlanError as error:
            raise self.text.error(tree, error.message) from None

    def _source(self, tree: Tree) -> Relation:
        """What FROM or JOIN names, under its alias."""
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
            raise self.text.error(tree, f"{what.sql('spark')} cannot stand in FROM: it takes {', '.join(known)}")
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
        values = [bound(condition, rows, self.text) for condition in conditions]
        return replace(rows, stream=rows.records.filter(*values))

    def _projected(self, rows: Relation, tree: Tree) -> Relation:
        items: Items = [
            (item.alias, item.this) if isinstance(item, exp.Alias) else (None, item) for item in tree.expressions
        ]
        computed: Mapping[str, str] = {}
        having = tree.args.get("having")
        trees = [part for _, part in items] + ([] if having is None else [having.this])
        if tree.args.get("group") is not None or aggregates_in(trees):
            done = grouped(rows, tree, items, self.text)
            rows, computed, items = done.rows, done.computed, done.items
            if done.having is not None:
                condition = bound(done.having, rows, self.text, computed)
                rows = replace(rows, stream=rows.records.filter(condition))
        elif having is not None:
            raise self.text.error(having, "HAVING needs GROUP BY: use WHERE for single rows")
        return self._chosen(rows, items, computed)

    def _chosen(self, rows: Relation, items: Items, computed: Mapping[str, str]) -> Relation:
        """The SELECT list."""
        stars = [part for _, part in items if _is_star(part)]
        clocks = [alias for alias, part in items if alias is not None and is_clock(part)]
        items = [(alias, part) for alias, part in items if not is_clock(part)]
        numbers = [(alias, part) for alias, part in items if is_row_number(part)]
        items = [(alias, part) for alias, part in items if not is_row_number(part)]
        read = [part for _, part in items if not _is_star(part) and key_of(part) not in computed]
        read += [part for _, number in numbers for part in number.find_all(exp.Column)]
        if rows.windows is not None and (stars or any(c.bound is not None for c in rows.stored(read, self.text))):
            rows = materialized(rows, self.text)
        if calls := overs_in([part for _, part in items]):
            rows, made = with_overs(rows, calls, self.text)
            computed = {**computed, **made}
        chosen: dict[str, Expression] = {}
        columns: list[Column] = []
        for alias, part in items:
            for name, value, ahead in self._values(rows, alias, part, computed):
                if name in chosen:
                    raise self.text.error(part, f"two columns are named {name!r}: give one another name with AS")
                chosen[name] = value
                columns.append(Column(None, name, name, ahead))
        columns += [Column(None, alias, None, None, "proctime") for alias in clocks]
        if numbers:
            return self._numbered(rows, chosen, columns, numbers)
        return Relation(_selected(rows, chosen), tuple(columns))

    def _numbered(
        self,
        rows: Relation,
        chosen: dict[str, Expression],
        columns: list[Column],
        numbers: list[tuple[str | None, Tree]],
    ) -> Relation:
        """The columns of the SELECT list, and what ROW_NUMBER needs besides."""
        alias, call = numbers[0]
        if len(numbers) > 1 or alias is None:
            raise self.text.error(call, "a query has one ROW_NUMBER() with a name: add AS row_number")
        made = numbered(call, rows, list(chosen), self.text)
        stored = {plain_name(value): name for name, value in reversed(chosen.items())}
        places: dict[str, str] = {}
        for name in (*made.ranking.keys, *(order.column for order in made.ranking.orders)):
            if name in made.added:
                chosen[name] = made.added[name]
                places[name] = name
            elif name in stored:
                places[name] = stored[name]
            elif name not in places:
                places[name] = free_name(f"${name}", [*chosen, *rows.records.columns])
                chosen[places[name]] = col(name)
        orders = tuple(replace(order, column=places[order.column]) for order in made.ranking.orders)
        ranking = replace(made.ranking, keys=tuple(places[key] for key in made.ranking.keys), orders=orders)
        number = Column(None, alias, None)
        return Relation(_selected(rows, chosen), (*columns, number), ranking=ranking)

    def _values(
        self, rows: Relation, alias: str | None, part: Tree, computed: Mapping[str, str]
    ) -> list[tuple[str, Expression, int | None]]:
        if _is_star(part):
            table = part.table if isinstance(part, exp.Column) else ""
            if any(value for key, value in (part.this if table else part).args.items() if key != "this"):
                raise self.text.error(part, "* with EXCEPT, REPLACE or RENAME is not supported: name the columns")
            among = [c for c in rows.columns if c.bound != "proctime"]
            among = [c for c in among if not table or (c.table or "").lower() == table.lower()]
            if not among:
                raise self.text.error(part, unknown("table", table, rows.tables))
            return [(c.name, col(c.stored or ""), c.ahead_us) for c in among]
        value = bound(part, rows, self.text, computed)
        stored = plain_name(value)
        ahead = next((c.ahead_us for c in rows.columns if c.stored == stored), None)
        name = alias or (part.name if isinstance(part, exp.Column) else computed.get(key_of(part), value.sql))
        return [(name, value, ahead)]


_TABLE_PARTS = {
    "db": "a table has one name here: leave out the part before the dot",
    "sample": "TABLESAMPLE is not supported: use WHERE",
    "pivots": "PIVOT is not supported: use CASE in an aggregate",
    "hints": "a hint is not supported: leave it out",
}


def _is_star(tree: Tree) -> bool:
    return isinstance(tree, exp.Star) or (isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star))


def _selected(rows: Relation, chosen: Mapping[str, Expression]) -> Stream:
    """The stream of these columns; the same one if it has them already."""
    stream = rows.records
    if list(chosen) == [name for name in stream.columns if name != KIND] and all(
        plain_name(value) == name for name, value in chosen.items()
    ):
        return stream
    return stream.select(**chosen)
