"""MATCH_RECOGNIZE over a relation: translates its clauses to one operator.

Source: SQL:2016, row pattern recognition (ISO/IEC TR 19075-5); Flink's SQL for WITHIN and MATCH_ROWTIME.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from workbench.api.streams.keyed import matching
from workbench.errors import WorkbenchError, unknown
from workbench.expressions import col
from workbench.expressions.tree.sql import Tree
from workbench.operators.changelogs.row_kinds import is_changelog
from workbench.operators.matching.match import MatchRows, RowsPerMatch
from workbench.operators.matching.partials import Rules, Skip
from workbench.operators.matching.planning import PARTIALS_MAX, is_asked
from workbench.patterns.automaton import CONDITIONS_MAX, Automaton, row_automaton
from workbench.patterns.reading import PatternSyntaxError, read_pattern
from workbench.patterns.shape import Shape, names_in
from workbench.patterns.terms import Term, TermError, Terms, parse_term
from workbench.queries.clauses.match_clauses import Clauses, Part, clauses, items, named, words
from workbench.queries.reading.binding import constant_us
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation

_UNMATCHED = "WITH UNMATCHED ROWS is not supported: select the rows in a separate query"


def recognized(rows: Relation, tree: Tree, text: Text) -> Relation:
    """The matches in a relation.

    Args:
        rows: a stream.
        tree: MATCH_RECOGNIZE as parsed.
        text: the query, for errors.

    Raises:
        QueryError: a clause cannot be parsed or does not fit the columns; with the line and a caret.
    """
    alias = tree.args.get("alias")
    for column in rows.columns:
        if column.bound == "proctime" and column.name.lower() in _words(tree, text):
            raise text.error(
                tree, f"{column.name} is processing time, PROCTIME(), which has no value in a row: order by event time"
            )
    return _Planned(
        _plain(rows.plain), clauses(tree, text), text, None if alias is None else alias.name or None
    ).relation()


def _words(tree: Tree, text: Text) -> set[str]:
    """The words of MATCH_RECOGNIZE, in lower case."""
    return set(re.findall(r"\w+", text.sql[tree.meta["opened"] : tree.meta["closed"]].lower()))


def _plain(rows: Relation) -> Relation:
    """The same rows with the column names of SQL."""
    if all(column.name == column.stored for column in rows.columns):
        return rows
    stream = rows.records.select(**{column.name: col(column.stored or "") for column in rows.columns})
    columns = tuple(Column(column.table, column.name, column.name, column.ahead_us) for column in rows.columns)
    return Relation(stream, columns)


@dataclass(frozen=True)
class _Planned:
    rows: Relation
    clauses: Clauses
    text: Text
    alias: str | None

    def relation(self) -> Relation:
        said, text = self.clauses.said, self.text
        if is_changelog(self.rows.records.schema):
            raise self._error(
                self.clauses.place,
                "MATCH_RECOGNIZE cannot follow a changelog, whose rows replace and remove earlier ones: match the rows "
                "before they are grouped, ranked or joined",
            )
        keys = self._keys()
        self._check_order()
        shape, pattern = self._shape()
        variables = list(dict.fromkeys(names_in(shape)))
        if len(variables) > CONDITIONS_MAX:
            raise self._error(pattern, f"the pattern has {len(variables)} variables, more than {CONDITIONS_MAX}")
        masks = {name: 1 << at for at, name in enumerate(variables)}
        subsets = self._subsets(masks)
        terms = Terms({**masks, **subsets}, self.rows.records.schema)
        conditions = self._conditions(terms, variables)
        measures = tuple(self._measures(terms))
        rows_per_match, shows_empty = self._rows_per_match()
        skip, skip_mask = self._skip({**masks, **subsets})
        within = said.get("within")
        within_us = 0 if within is None else constant_us(self._parsed(within), text)
        if within is not None and within_us < 1:
            raise self._error(within, "WITHIN is not positive: write for example INTERVAL '10' SECOND")
        rules = Rules(False, skip, skip_mask, within_us, is_asked(conditions), PARTIALS_MAX)
        bits = {variables[variable]: bit for bit, variable, _ in conditions}
        try:
            automaton = row_automaton(shape, variables, bits)
        except WorkbenchError as error:
            raise self._error(pattern, error.message) from None
        self._check_skip(skip, {name for name in variables if skip_mask & masks[name]}, automaton)
        try:
            spec = MatchRows(
                *(keys, str(shape), automaton, tuple(conditions), measures, rules, rows_per_match, within_us > 0),
                self.text.origin,
                shows_empty=shows_empty,
            )
            stream = matching(self.rows.records, keys, spec, self.text.origin)
        except WorkbenchError as error:
            raise self._error(pattern, error.message) from None
        given = self.rows.columns if rows_per_match == "all" else [c for c in self.rows.columns if c.stored in keys]
        columns = [Column(self.alias, column.name, column.name) for column in given]
        columns += [
            Column(self.alias, name, name, 0 if [one.kind for one in term.references] == ["time"] else None)
            for name, term in measures
        ]
        return Relation(stream, tuple(columns))

    def _error(self, part: Part, message: str) -> WorkbenchError:
        return self.text.error_at(part.start, part.end, message)

    def _parsed(self, part: Part) -> Tree:
        try:
            return parse_term(part.text, part.start)
        except TermError as error:
            raise self.text.error(error.tree, error.message) from None

    # rows ---------------------------------------------------------------------------------------------------------

    def _keys(self) -> tuple[str, ...]:
        part = self.clauses.said.get("partition")
        if part is None:
            return ()
        keys = []
        for item in items(part, self.text):
            tree = self._parsed(item)
            if not isinstance(tree, exp.Column):
                raise self._error(item, "PARTITION BY takes columns: compute this value in a subquery in FROM")
            keys.append(self.rows.of(tree, self.text).name)
        return tuple(keys)

    def _check_order(self) -> None:
        part = self.clauses.said.get("order")
        times = [column.name for column in self.rows.columns if column.ahead_us == 0]
        fix = f"write ORDER BY {times[0]}" if times else "name the event-time column at the source (event_time=)"
        if part is None:
            raise self._error(self.clauses.place, f"MATCH_RECOGNIZE needs an order of its rows: {fix}")
        first, *others = items(part, self.text)
        for other in others:
            raise self._error(
                other, "rows with equal times keep their arrival order: remove this, and order by event time alone"
            )
        descends = words(first, self.text)[-1].upper() == "DESC"
        name = first.text.strip().removesuffix("ASC").removesuffix("asc").strip()
        tree = None if descends else self._parsed(Part(name, first.start + len(first.text) - len(first.text.lstrip())))
        if not isinstance(tree, exp.Column) or self.rows.of(tree, self.text).ahead_us != 0:
            raise self._error(first, f"rows are matched in event-time order, and this is not the event time: {fix}")

    def _shape(self) -> tuple[Shape, Part]:
        part = self.clauses.said.get("pattern")
        if part is None:
            raise self._error(self.clauses.place, "MATCH_RECOGNIZE has no PATTERN: write PATTERN (A B+)")
        if not (part.text.startswith("(") and part.text.endswith(")")):
            raise self._error(part, "PATTERN must be in parentheses, with nothing after them: write PATTERN (A B+)")
        try:
            return read_pattern(part.text[1:-1]), part
        except PatternSyntaxError as error:
            start = part.start + 1
            raise self.text.error_at(start + error.start, start + error.end, error.message) from None

    # variables ----------------------------------------------------------------------------------------------------

    def _subsets(self, masks: dict[str, int]) -> dict[str, int]:
        part = self.clauses.said.get("subset")
        found: dict[str, int] = {}
        for item in () if part is None else items(part, self.text):
            name, equals, *rest = [*words(item, self.text), "", ""][:-1] if "=" in item.text else ("", "", "")
            members = [word for word in rest if word not in ("(", ")", ",", "")]
            if equals != "=" or not members:
                raise self._error(
                    item, "SUBSET must have the form SUBSET U = (A, B): name the variables in parentheses"
                )
            if name in masks or name in found:
                raise self._error(
                    item, f"{name!r} is already the name of a variable: choose another name for the union"
                )
            found[name] = 0
            for member in members:
                if member not in masks:
                    raise self._error(item, unknown("variable", member, masks))
                found[name] |= masks[member]
        return found

    def _conditions(self, terms: Terms, variables: list[str]) -> list[tuple[int, int, Term]]:
        part = self.clauses.said.get("define")
        found: list[tuple[int, int, Term]] = []
        seen: set[str] = set()
        for item in () if part is None else items(part, self.text):
            name, condition = named(item, self.text, "a definition", name_first=True)
            near = [known for known in variables if known.lower() == name.lower()]
            chosen = name if name in variables else near[0] if len(near) == 1 else None
            if chosen is None:
                raise self._error(item, f"the pattern lacks it: {unknown('variable', name, variables)}")
            if chosen in seen:
                raise self._error(item, f"{name} is defined twice: combine the conditions with AND")
            seen.add(chosen)
            tree = self._parsed(condition)
            try:
                found.append((len(found), variables.index(chosen), terms.condition(tree, chosen)))
            except TermError as error:
                raise self.text.error(error.tree, error.message) from None
        return found

    def _measures(self, terms: Terms) -> list[tuple[str, Term]]:
        part = self.clauses.said.get("measures")
        found = []
        for item in () if part is None else items(part, self.text):
            name, value = named(item, self.text, "a measure", name_first=False)
            tree = self._parsed(value)
            try:
                found.append((name, terms.term(tree)))
            except TermError as error:
                raise self.text.error(error.tree, error.message) from None
        return found

    # matches ------------------------------------------------------------------------------------------------------

    def _rows_per_match(self) -> tuple[RowsPerMatch, bool]:
        said = self.clauses.said
        if "all" not in said:
            return "one", True
        if "one" in said:
            raise self._error(said["one"], "both ONE ROW and ALL ROWS PER MATCH are given: remove one of them")
        which = " ".join(words(said["all"], self.text)).upper()
        if which == "WITH UNMATCHED ROWS":
            raise self._error(said["all"], _UNMATCHED)
        if which not in ("", "SHOW EMPTY MATCHES", "OMIT EMPTY MATCHES"):
            raise self._error(said["all"], f"{which} is not valid here: write SHOW EMPTY MATCHES or OMIT EMPTY MATCHES")
        return "all", which != "OMIT EMPTY MATCHES"

    def _skip(self, masks: dict[str, int]) -> tuple[Skip, int]:
        part = self.clauses.said.get("after")
        if part is None:
            return "past_last", 0
        written = words(part, self.text)
        plain: dict[str, Skip] = {"PAST LAST ROW": "past_last", "TO NEXT ROW": "next_row"}
        found = plain.get(" ".join(written).upper())
        if found is not None:
            return found, 0
        ways: dict[str, Skip] = {"TO FIRST": "to_first", "TO LAST": "to_last", "TO": "to_last"}
        way = ways.get(" ".join(written[:-1]).upper())
        if way is None or not written:
            forms = "PAST LAST ROW, TO NEXT ROW, TO FIRST A and TO LAST A"
            raise self._error(part, f"this is not a valid AFTER MATCH SKIP: write {forms}")
        name = written[-1]
        near = [known for known in masks if known == name] or [k for k in masks if k.lower() == name.lower()]
        if len(near) != 1:
            raise self._error(part, unknown("variable", name, masks))
        return way, masks[near[0]]

    def _check_skip(self, skip: Skip, names: set[str], automaton: Automaton) -> None:
        """Refuse AFTER MATCH SKIP to a row that is the first one of every match."""
        begins, later = set(automaton.waits[0]), set().union(*automaton.waits[1:])
        always = skip == "to_first" or (skip == "to_last" and not names & later)
        if names and begins and begins <= names and always:
            raise self._error(
                self.clauses.said["after"],
                "every match begins there, so it would be found again forever: skip to another row, as in TO NEXT ROW",
            )
