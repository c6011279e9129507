"""Computes the values of terms for many partial or complete matches at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.compiled import find_bound, list_bound, warm_up
from workbench.elements import Int64s, Mask
from workbench.expressions import compile_expression
from workbench.operators.aggregates.accumulators import Accumulators
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.matching.kept_rows import KeptRows
from workbench.operators.matching.partials import IntRows
from workbench.patterns.terms import Reference, Term

_VALUE = "value"


@dataclass(frozen=True, slots=True)
class Bindings:
    """Chains of bound rows, one for each match; all arrays but `nodes` have shape (n,).

    Attributes:
        nodes: see ``step_matches``.
        last: the last node of each chain, -1 for none.
        rows, labels: one more row after the chain and its variable, -1 for none.
        ends: the last node of the complete match that contains the chain.
        numbers: the number of the match.
        times: the event time of the match.
    """

    nodes: IntRows
    last: Int64s
    rows: Int64s
    labels: Int64s
    ends: Int64s
    numbers: Int64s
    times: Int64s

    def __len__(self) -> int:
        return len(self.last)

    def bound(self, mask: int) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """All rows that are bound to some variables: for each, its chain, the row, its variable, and its node."""
        room = max(64, 2 * len(self))
        while True:
            parts = [np.empty(room, np.int64) for _ in range(4)]
            found = list_bound(self.nodes, self.last, self.rows, self.labels, mask, *parts)
            if found <= room:
                chains, rows, variables, nodes = (part[:found] for part in parts)
                return chains, rows, variables, nodes
            room = found


class Values:
    """Computes one term.

    Args:
        term: the expression.
        schema: of the kept rows.
        variables: the names of variables, by index.
    """

    def __init__(self, term: Term, schema: pa.Schema, variables: Sequence[str]) -> None:
        warm_up(find_bound, list_bound)
        self._term = term
        self._schema = term.schema
        self._variables = pa.array([*variables], pa.string())
        self._computed = compile_expression(term.expression, self._schema)
        self._arguments = [
            None if one.argument is None else compile_expression(one.argument, schema) for one in term.references
        ]
        self._aggregated = [
            pa.schema([pa.field(_VALUE, pa.null() if argument is None else argument.type)])
            for argument in self._arguments
        ]

    def __call__(self, bindings: Bindings, kept: KeptRows) -> pa.Array:
        """The value for each chain."""
        n = len(bindings)
        columns = [self._value(at, bindings, kept) for at in range(len(self._term.references))]
        if not columns:
            columns, schema = [pa.nulls(n)], pa.schema([pa.field(_VALUE, pa.null())])
            return self._computed(pa.RecordBatch.from_arrays(columns, schema=schema))
        return self._computed(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def holds(self, bindings: Bindings, kept: KeptRows) -> Mask:
        """Whether the term is true for each chain; null is false."""
        values = self(bindings, kept).fill_null(False)
        return np.asarray(values.to_numpy(zero_copy_only=False), np.bool_)

    def _value(self, at: int, bindings: Bindings, kept: KeptRows) -> pa.Array:
        one = self._term.references[at]
        if one.kind == "number":
            return pa.array(bindings.numbers)
        if one.kind == "time":
            return pa.array(bindings.times).view(one.type)
        last, rows = (bindings.ends, np.full(len(bindings), -1)) if one.final else (bindings.last, bindings.rows)
        if one.kind == "aggregate":
            chains = Bindings(bindings.nodes, last, rows, bindings.labels, last, last, last)
            return self._aggregate(at, one, chains, kept)
        places = np.empty(2 * len(bindings), np.int64)
        find_bound(bindings.nodes, last, rows, bindings.labels, one.mask, one.offset, int(one.from_first), places)
        if one.kind == "classifier":
            named = places[1::2]
            return self._variables.take(pa.array(named, mask=named < 0))
        found = places[0::2]
        if one.shift:
            found = kept.shifted(found, one.shift)
        missing = found < 0
        argument = self._arguments[at]
        assert argument is not None
        if missing.all():
            return pa.nulls(len(found), one.type)
        values = argument(kept.take(np.where(missing, found.max(), found) if missing.any() else found))
        if missing.any():
            values = pc.if_else(pa.array(missing), pa.scalar(None, values.type), values)
        return values if values.type == one.type else values.cast(one.type)

    def _aggregate(self, at: int, one: Reference, bindings: Bindings, kept: KeptRows) -> pa.Array:
        chains, rows, _, _ = bindings.bound(one.mask)
        argument, schema = self._arguments[at], self._aggregated[at]
        counted = None if argument is None else _VALUE
        values = pa.nulls(len(rows)) if argument is None else argument(kept.take(rows))
        accumulators = Accumulators([Aggregation(one.function, counted)], schema)  # type: ignore[arg-type]
        accumulators.grow(len(bindings))
        accumulators.update(chains, pa.RecordBatch.from_arrays([values], schema=schema))
        [result] = accumulators.results(np.arange(len(bindings)))
        return result
