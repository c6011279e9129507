"""Evaluates conditions; the result is one integer for each row or partial match, with a bit for each condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sqlglot import exp

from workbench.elements import Int64s
from workbench.expressions import Compiled, Expression, compile_expression
from workbench.operators.matching.kept_rows import KeptRows
from workbench.operators.matching.partials import BITS, NODE, STATE, IntRows, Partials, needs_of
from workbench.operators.matching.programs import program_of
from workbench.operators.matching.values import Bindings, Values
from workbench.patterns.terms import Term

if TYPE_CHECKING:
    from workbench.operators.matching.match import MatchRows

_NO_NODES: IntRows = np.empty((0, 3), np.int64)


class Conditions:
    """Evaluates the conditions of a pattern.

    Args:
        spec: the operator.
        schema: of the rows.

    Attributes:
        program: the conditions that depend on rows bound before, if the kernel can compute them; otherwise they are
            evaluated for each row by `ask`.
    """

    def __init__(self, spec: MatchRows, schema: pa.Schema) -> None:
        names = spec.automaton.variables
        self._plain: list[tuple[int, Compiled]] = []
        self._around: list[tuple[int, int, Values]] = []
        self._asked: list[tuple[int, int, Values]] = []
        for bit, variable, term in spec.conditions:
            on_row = _on_row(term) if term.depends_on_row(variable) else None
            if on_row is not None:
                self._plain.append((bit, compile_expression(on_row, schema, spec.origin)))
            else:
                kind = self._around if term.depends_on_row(variable) else self._asked
                kind.append((bit, variable, Values(term, schema, names)))
        asked = {bit for bit, _, _ in self._asked}
        self.program = program_of([one for one in spec.conditions if one[0] in asked], spec.automaton, schema)
        read_first = int(needs_of(spec.automaton)[0])
        self._first = [*self._around, *(one for one in self._asked if read_first >> one[0] & 1)]

    def of_rows(self, batch: pa.RecordBatch, rows: Int64s, kept: KeptRows) -> Int64s:
        """Shape (n,): the conditions that hold for each row as the first row of a match; of the conditions that depend
        on bound rows, only those that a first row needs.

        Args:
            batch: n rows.
            rows: shape (n,), their numbers among the kept rows.
            kept: the kept rows.
        """
        bits = np.zeros(len(rows), np.int64)
        for bit, compiled in self._plain:
            held = np.asarray(compiled(batch).fill_null(False).to_numpy(zero_copy_only=False), np.int64)
            bits |= held << bit
        none = np.full(len(rows), -1, np.int64)
        for bit, variable, values in self._first:
            bindings = Bindings(_NO_NODES, none, rows, np.full(len(rows), variable), none, none, none)
            bits |= values.holds(bindings, kept).astype(np.int64) << bit
        return bits

    def ask(self, partials: Partials, codes: Int64s, rows: Int64s, bits: Int64s, kept: KeptRows) -> None:
        """Set the conditions that hold for each partial match and the next row of its key.

        Args:
            partials: of all keys.
            codes: shape (n,), distinct keys.
            rows: shape (n,), the next row of each.
            bits: shape (n,), see ``of_rows``.
            kept: the kept rows.
        """
        places, which = partials.of(codes)
        live = partials.entries[places, STATE] >= 0
        places, which = places[live], which[live]
        if not len(places):
            return
        asked = 0
        for bit, _, _ in self._asked:
            asked |= 1 << bit
        known = bits[which] & ~asked
        needed = partials.needs[partials.entries[places, STATE]]
        for bit, variable, values in self._asked:
            some = np.flatnonzero(needed >> bit & 1)
            if len(some):
                last = np.ascontiguousarray(partials.entries[places[some], NODE])
                labels = np.full(len(some), variable)
                bindings = Bindings(partials.nodes, last, rows[which[some]], labels, last, last, last)
                known[some] |= values.holds(bindings, kept).astype(np.int64) << bit
        partials.entries[places, BITS] = known


def _on_row(term: Term) -> Expression | None:
    """The term as an expression on the columns of its own row; None: it reads other rows."""
    if any(one.shift or one.argument is None for one in term.references):
        return None
    holder = exp.Paren(this=term.expression.tree.copy())
    for column in list(holder.find_all(exp.Column)):
        argument = term.references[int(column.name.removeprefix("$"))].argument
        assert argument is not None
        column.replace(exp.Paren(this=argument.tree.copy()))
    return Expression(holder.this)
