"""Turns matches into rows of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from workbench.durations import LATEST_TIME, format_instant
from workbench.elements import Int64s, Records
from workbench.operators.contract.base import Output
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.matching.kept_rows import KeptRows
from workbench.operators.matching.partials import (
    CODE,
    DECIDED,
    KIND,
    LAST,
    MATCHED,
    NODE,
    START,
    START_TIME,
    STATE,
    IntRows,
    Partials,
)
from workbench.operators.matching.values import Bindings, Values
from workbench.state.key_index import KeyIndex

if TYPE_CHECKING:
    from workbench.operators.matching.match import MatchRows

TIMED_OUT = "timed_out"
"""The side output for partial matches whose time has run out."""

_DESCRIBED_MAX = 100
_ROWS_MAX = 100


@dataclass(frozen=True, slots=True)
class Found:
    """Matches that were found, and partial matches whose time has run out.

    Attributes:
        rows: shape (f, 5), see ``step_matches``; the rows of one key are in the order in which they were found.
        nodes: see ``step_matches``.
        index: of the keys.
    """

    rows: IntRows
    nodes: IntRows
    index: KeyIndex

    def number(self, counts: Int64s | None) -> Int64s:
        """Shape (f,): the number of each match among the matches of its key, from 1.

        Args:
            counts: by code, the number of earlier matches; changed in place; None: matches are not numbered.
        """
        numbers = np.zeros(len(self.rows), np.int64)
        if counts is None:
            return numbers
        for at, (code, kind) in enumerate(self.rows[:, [CODE, KIND]].tolist()):
            counts[code] += kind == MATCHED
            numbers[at] = counts[code]
        return numbers


class FoundRows:
    """Computes and emits the rows of matches.

    Args:
        spec: the operator.
        schema: of the input.
        output: of the output.
    """

    def __init__(self, spec: MatchRows, schema: pa.Schema, output: pa.Schema) -> None:
        self._spec = spec
        self._schema = schema
        self._output = output
        self._variables = spec.automaton.variables
        self._measures = [Values(term, schema, self._variables) for _, term in spec.measures]

    def emit(self, found: Found, numbers: Int64s, kept: KeptRows, out: Output) -> None:
        """Emit matches in order of the time at which they became certain, and send partial matches whose time has run
        out to the side output."""
        for kind in (MATCHED, 1):
            chosen = np.flatnonzero(found.rows[:, KIND] == kind)
            if not len(chosen) or (kind != MATCHED and not self._spec.times_out):
                continue
            chosen = chosen[np.argsort(found.rows[chosen, DECIDED], kind="stable")]
            records = self._records(Found(found.rows[chosen], found.nodes, found.index), numbers[chosen], kept)
            if kind == MATCHED:
                out.emit(records)
            else:
                out.emit_side(TIMED_OUT, records)

    def _records(self, found: Found, numbers: Int64s, kept: KeptRows) -> Records:
        rows = found.rows
        last = np.ascontiguousarray(rows[:, LAST])
        none = np.full(len(rows), -1, np.int64)
        times = np.ascontiguousarray(np.minimum(rows[:, DECIDED], LATEST_TIME))
        bindings = Bindings(found.nodes, last, none, none, last, numbers, times)
        if self._spec.rows == "all":
            which, bound, nodes = self._rows_of(bindings, rows)
            none, times = np.full(len(nodes), -1, np.int64), times[which]
            bindings = Bindings(found.nodes, nodes, none, none, last[which], numbers[which], times)
            columns = list(kept.take(bound).columns)
        else:
            columns = list(found.index.keys_table(rows[:, CODE]).columns) if self._spec.keys else []
        columns += [values(bindings, kept) for values in self._measures]
        return Records(pa.RecordBatch.from_arrays(columns, schema=self._output), times)

    def _rows_of(self, bindings: Bindings, rows: IntRows) -> tuple[Int64s, Int64s, Int64s]:
        """The rows of each match, as triples of the match, the row and its node; for an empty match its first row, if
        empty matches are shown."""
        which, bound, _, nodes = bindings.bound(-1 >> 1)
        empty = np.flatnonzero(bindings.last < 0) if self._spec.shows_empty else bindings.last[:0]
        if not len(empty):
            return which, bound, nodes
        which = np.concatenate([which, empty])
        order = np.argsort(which, kind="stable")
        bound = np.concatenate([bound, rows[empty, START]])
        return which[order], bound[order], np.concatenate([nodes, np.full(len(empty), -1)])[order]

    def described(self, partials: Partials, places: Int64s, kept: KeptRows) -> Sequence[Mapping[str, object]]:
        """Descriptions of partial matches for display, at most a hundred."""
        described = []
        for entry in partials.entries[places[:_DESCRIBED_MAX]].tolist():
            rows: dict[str, list[dict[str, Any]]] = {}
            chain: list[tuple[int, int]] = []
            node = entry[NODE]
            while node >= 0 and len(chain) < _ROWS_MAX:
                row, variable, node = partials.nodes[node].tolist()
                chain.append((row, variable))
            batch = python_rows(kept.take(np.array([row for row, _ in reversed(chain)], np.int64)))
            for (_, variable), values in zip(reversed(chain), batch, strict=True):
                rows.setdefault(self._variables[variable], []).append(values)
            state = entry[STATE]
            waits = "nothing: it is a match unless an earlier match skips it"
            if state >= 0:
                waits = " or ".join(self._spec.automaton.waits[state]) or "its time to pass"
            one: dict[str, object] = {"waits_for": waits, "rows": rows, "begun": format_instant(entry[START_TIME])}
            if partials.within_us and state >= 0:
                one["until"] = format_instant(entry[START_TIME] + partials.within_us)
            described.append(one)
        return described
