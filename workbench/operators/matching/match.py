"""Find patterns among the rows of each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pyarrow as pa

from workbench.errors import PlanError
from workbench.operators.contract.base import Operator
from workbench.operators.matching.found import TIMED_OUT
from workbench.operators.matching.logic import MatchLogic
from workbench.operators.matching.partials import Rules
from workbench.origin import Origin
from workbench.patterns.automaton import Automaton
from workbench.patterns.terms import Term
from workbench.state.key_columns import check_keys

RowsPerMatch = Literal["one", "all"]


@dataclass(frozen=True, eq=False)
class MatchRows:
    """Emits the matches of a pattern, each as soon as it is certain (see the package).

    Attributes:
        keys: the key columns; none means one group.
        text: the pattern, for graphs and checkpoints.
        automaton: the compiled pattern.
        conditions: for each condition, its bit, the variable that a row must satisfy it for, and the term.
        measures: the results by name.
        rules: further rules that decide which matches there are.
        rows: ``"one"``: one output row for each match, with the keys and the measures; ``"all"``: one output row for
            each bound row, with all columns and the measures.
        times_out: whether there is a side output for partial matches whose time has run out.
        origin: the user's line, for errors.
        shows_empty: whether a match without rows produces an output row.

    Raises:
        RecordError: while running, a key has more partial matches than allowed, or a match lacks the row at which
            matching continues.
    """

    kind: ClassVar[str] = "match"
    keys: tuple[str, ...]
    text: str
    automaton: Automaton = field(repr=False)
    conditions: tuple[tuple[int, int, Term], ...]
    measures: tuple[tuple[str, Term], ...]
    rules: Rules
    rows: RowsPerMatch = "one"
    times_out: bool = False
    origin: Origin | None = field(default=None, repr=False)
    shows_empty: bool = False

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The keys, or with ``rows="all"`` all columns, and the measures.

        Raises:
            PlanError: a column cannot be a key, there is no output column, or two have the same name.
        """
        schema = inputs[0]
        check_keys(self.keys, schema)
        fields = [*schema] if self.rows == "all" else [schema.field(name) for name in self.keys]
        fields += [pa.field(name, term.type) for name, term in self.measures]
        names = [item.name for item in fields]
        if not names:
            raise PlanError("the matches have no columns: add a measure, such as n='COUNT(*)'", origin=self.origin)
        for name in names:
            if names.count(name) > 1:
                raise PlanError(f"two output columns are named {name!r}: rename the measure", origin=self.origin)
        return pa.schema(fields)

    def growing(self) -> str | None:
        """Partial matches without a time limit."""
        return None if self.rules.within_us else f"the partial matches of each {', '.join(self.keys) or 'row'}"

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {TIMED_OUT: self.output_schema(inputs)} if self.times_out else {}

    def columns_read(self) -> frozenset[str] | None:
        """The columns that conditions, measures and keys read."""
        if self.rows == "all":
            return None
        terms = [term for _, _, term in self.conditions] + [term for _, term in self.measures]
        return frozenset(self.keys).union(*(term.columns for term in terms))

    def describe(self) -> str:
        return self.text

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return MatchLogic(self, inputs[0], self.output_schema(inputs))
