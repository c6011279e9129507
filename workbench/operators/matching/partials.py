"""The partial matches of all keys, in flat arrays that a kernel steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from workbench.compiled import mark_bound, step_matches, warm_up
from workbench.elements import Int64s
from workbench.operators.matching.kept_rows import KeptRows
from workbench.operators.matching.programs import NO_PROGRAM, Program
from workbench.patterns.automaton import STOP, Automaton

IntRows = npt.NDArray[np.int64]
Skip = Literal["nowhere", "next_row", "past_last", "to_first", "to_last"]
SKIPS: tuple[Skip, ...] = ("nowhere", "next_row", "past_last", "to_first", "to_last")
STATE, NODE, START, START_TIME, BITS = range(5)
"""The columns of an entry."""
CODE, LAST, FIRST_ROW, DECIDED, KIND = range(5)
"""The columns of the results."""
MATCHED, TIMED_OUT = 0, 1
"""The kinds of results."""
TICK, END = -1, -2
"""In place of the conditions of a row: only time has passed; there are no further rows."""
TOO_MANY, MISSING, STUCK, TOO_LARGE = 5, 6, 7, 8
_NO_FOUND = np.empty((0, 5), np.int64)


class StepError(Exception):
    """A step that failed.

    Attributes:
        reason: TOO_MANY partial matches of a key; the row at which matching continues is MISSING, or is the first row
            of the match, so the same match would be found again (STUCK); a sum of integers is TOO_LARGE.
        at: the index of the row among the stepped rows.
    """

    def __init__(self, reason: int, at: int) -> None:
        super().__init__(reason)
        self.reason, self.at = reason, at


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that decide which matches there are, in addition to the automaton.

    Attributes:
        every: whether every match counts; otherwise only the preferred match for each first row.
        skip: where matching continues after a match.
        skip_mask: the bits of the variables at whose row matching continues.
        within_us: a match must take less time than this; 0: no limit.
        asked: whether conditions depend on rows bound before.
        partials_max: the maximum number of partial matches of a key.
    """

    every: bool
    skip: Skip
    skip_mask: int
    within_us: int
    asked: bool
    partials_max: int


class Partials:
    """Entries and nodes by key; see ``step_matches``.

    Args:
        automaton: the pattern.
        rules: the other rules.
        program: the conditions that depend on rows bound before, if the kernel can compute them.

    Attributes:
        needs: shape (states,), the bits of the conditions that edges of a state read.
    """

    __slots__ = (
        "_counts",
        "_folds",
        "_found",
        "_path",
        "_program",
        "_reals",
        "_scratch",
        "_seen",
        "_settings",
        "_stack",
        "automaton",
        "entries",
        "heads",
        "needs",
        "nodes",
        "within_us",
    )

    def __init__(self, automaton: Automaton, rules: Rules, program: Program = NO_PROGRAM) -> None:
        warm_up(step_matches, mark_bound)
        self.automaton = automaton
        self._program, self._folds = program, program.folds
        self.needs = needs_of(automaton)
        self.within_us = rules.within_us
        stops = bool((automaton.edges[::6] == STOP).any())
        self._settings = np.array(
            [
                *(rules.every, SKIPS.index(rules.skip), rules.skip_mask, rules.within_us, rules.asked, automaton.empty),
                *(automaton.most_edges, rules.partials_max, not rules.every, stops),
            ],
            np.int64,
        )
        self.heads: IntRows = np.zeros((0, 2), np.int64)
        self.entries: IntRows = np.zeros((256, 5), np.int64)
        self.nodes: IntRows = np.zeros((256, 3), np.int64)
        self._found: IntRows = np.zeros((256, 5), np.int64)
        self._scratch: IntRows = np.zeros((128, 5), np.int64)
        self._seen = np.zeros(2 * len(automaton.waits), np.int64)
        self._counts = np.zeros(5, np.int64)
        self._path = np.zeros(1, np.int64)
        self._stack, self._reals = np.zeros(2 * program.depth, np.int64), np.zeros(program.depth)

    def grow(self, keys: int) -> None:
        """Make room for the codes 0 to keys - 1."""
        if keys > len(self.heads):
            added = np.zeros((max(keys, 2 * len(self.heads)) - len(self.heads), 2), np.int64)
            self.heads = np.concatenate([self.heads, added])

    def step(self, codes: Int64s, rows: Int64s, times: Int64s, bits: Int64s, kept: KeptRows) -> IntRows:
        """Step the partial matches over rows that are grouped by key and sorted.

        Args:
            codes, rows, times: shape (n,), the key, the number and the time of each row.
            bits: shape (n,), the conditions that hold for each row as the first row of a match, and as a later row if
                they depend on the row alone; TICK or END instead of a row.
            kept: the rows.

        Returns:
            Shape (f, 5): the results, by key in the order in which they were found.

        Raises:
            StepError: the step failed.
        """
        if not len(codes):
            return _NO_FOUND
        self._pack_entries()
        counts, automaton = self._counts, self.automaton
        counts[2] = counts[3] = 0
        program = self._program
        ranks = program.ranks()
        ints, floats = kept.values, kept.values.view(np.float64)
        while True:
            if self._folds and len(self._path) <= len(self.nodes):
                self._path = np.zeros(len(self.nodes) + 1, np.int64)
            status = step_matches(
                *(codes, rows, times, bits, automaton.first, automaton.edges, self._settings, self.heads),
                *(self.entries, self.nodes, self._found, self._scratch, self._seen, counts),
                *(self.needs, program.conditions, program.code, program.constants, ranks, kept.before),
                *(kept.after, ints, floats, self._path, self._stack, self._reals),
            )
            if status == 0:
                return self._found[: counts[2]].copy()
            if status == 1:
                self.entries = _doubled(self.entries, len(self._scratch))
            elif status == 2:
                self.nodes = _doubled(self.nodes)
            elif status == 3:
                self._found = _doubled(self._found)
            elif status == 4:
                self._scratch = np.zeros((2 * len(self._scratch), 5), np.int64)
            else:
                raise StepError(status, int(counts[3]))

    def of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """The entries of some keys.

        Returns:
            Both of shape (e,): the indices of the entries, and the index of the key of each.
        """
        counts = self.heads[codes, 1]
        which = np.repeat(np.arange(len(codes)), counts)
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.heads[codes, 0][which] + within, which

    def codes(self) -> Int64s:
        """The keys that have entries."""
        return np.flatnonzero(self.heads[:, 1])

    def due(self, until_us: int) -> Int64s:
        """The keys with partial matches whose time has run out at `until_us`."""
        if not self.within_us:
            return np.empty(0, np.int64)
        codes = self.codes()
        places, which = self.of(codes)
        entries = self.entries[places]
        over = (entries[:, STATE] >= 0) & (entries[:, START_TIME] <= until_us - self.within_us)
        return codes[np.unique(which[over])]

    def nodes_used(self) -> int:
        """The number of nodes, including those that are no longer needed."""
        return int(self._counts[1])

    def _pack_entries(self, spare: int = 1_024) -> None:
        """Drop the superseded entries of keys, if they outnumber the others."""
        used, live = int(self._counts[0]), int(self.heads[:, 1].sum())
        if used <= spare or used < 2 * live * bool(spare):
            return
        codes = self.codes()
        places, _ = self.of(codes)
        packed = np.zeros((max(256, 2 * live), 5), np.int64)
        packed[:live] = self.entries[places]
        counts = self.heads[codes, 1]
        self.heads[codes, 0] = np.cumsum(counts) - counts
        self.entries = packed
        self._counts[0] = live

    def retain(self, rows: int, needed: Callable[[Int64s], Int64s]) -> Int64s:
        """Drop the nodes that no entry needs.

        Args:
            rows: the number of kept rows.
            needed: a function of which rows are bound or first rows, shape (rows,). It drops all other rows that terms
                do not need, and returns the new number of each row.

        Returns:
            The new numbers of the rows.
        """
        self._pack_entries(0)
        live = int(self._counts[0])
        entries = self.entries[:live]
        nodes_used, rows_used = np.zeros(self._counts[1], np.int64), np.zeros(rows, np.int64)
        mark_bound(self.nodes, np.ascontiguousarray(entries[:, NODE]), nodes_used, rows_used)
        rows_used[entries[:, START]] = 1
        new_rows = needed(rows_used)
        chosen = np.flatnonzero(nodes_used)
        new_nodes = np.full(len(nodes_used) + 1, -1, np.int64)  # the last one stands for -1
        new_nodes[chosen] = np.arange(len(chosen))
        nodes = np.zeros((max(256, 2 * len(chosen)), 3), np.int64)
        nodes[: len(chosen)] = self.nodes[chosen]
        nodes[: len(chosen), 0] = new_rows[nodes[: len(chosen), 0]]
        nodes[: len(chosen), 2] = new_nodes[nodes[: len(chosen), 2]]
        self.nodes = nodes
        self._counts[1] = len(chosen)
        entries[:, NODE] = new_nodes[entries[:, NODE]]
        entries[:, START] = new_rows[entries[:, START]]
        return new_rows

    def recode(self, mapping: Int64s) -> None:
        """Code c becomes ``mapping[c]``; codes that become -1 have no entries."""
        heads = np.zeros_like(self.heads)
        kept = np.flatnonzero(mapping >= 0)
        heads[mapping[kept]] = self.heads[kept]
        self.heads = heads

    def load(self, codes: Int64s, entries: IntRows, nodes: IntRows) -> None:
        """Add entries and nodes; both refer to nodes by their index in `nodes`.

        Args:
            codes: shape (e,), ascending, the key of each entry; none of these keys has entries.
            entries: shape (e, 5), by key in their order.
            nodes: shape (m, 3).
        """
        at, base = int(self._counts[0]), int(self._counts[1])
        while len(self.entries) < at + len(entries):
            self.entries = _doubled(self.entries)
        while len(self.nodes) < base + len(nodes):
            self.nodes = _doubled(self.nodes)
        added = self.nodes[base : base + len(nodes)]
        added[:] = nodes
        added[:, 2] += base * (added[:, 2] >= 0)
        placed = self.entries[at : at + len(entries)]
        placed[:] = entries
        placed[:, NODE] += base * (placed[:, NODE] >= 0)
        which, begins, counts = np.unique(codes, return_index=True, return_counts=True)
        self.heads[which, 0] = at + begins
        self.heads[which, 1] = counts
        self._counts[0], self._counts[1] = at + len(entries), base + len(nodes)


def needs_of(automaton: Automaton) -> Int64s:
    """Shape (states,): the bits of the conditions that the edges of each state read."""
    edges = automaton.edges.reshape(-1, 6)
    return np.array(
        [
            int(np.bitwise_or.reduce(edges[begin:end, 2:4].ravel(), initial=0))
            for begin, end in pairwise(automaton.first.tolist())
        ],
        np.int64,
    )


def _doubled(rows: IntRows, more: int = 0) -> IntRows:
    return np.concatenate([rows, np.zeros((len(rows) + more, rows.shape[1]), np.int64)])
