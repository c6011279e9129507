"""The automaton of a pattern, as flat arrays.

A *state* describes what a partial match waits for. For each row, the edges of its state are tried in order. An edge has
a guard: the bits of conditions that must be true, and of conditions that must be false. The conditions of a row are one
integer, so checking a guard takes two operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.elements import Int64s
from workbench.errors import PlanError
from workbench.patterns.shape import Alternatives, Repetition, Shape, Variable

TAKE, IGNORE, STOP, RIPE = range(4)
"""The kinds of edges: bind the row to a variable; skip it; drop the partial match; or do nothing, but accept the
partial match when its time is over."""

CONDITIONS_MAX = 62
"""Bits of an int64 that are not its sign."""
_STATES_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition between states.

    Attributes:
        kind: TAKE, IGNORE, STOP or RIPE.
        to: the next state.
        yes, no: the bits of the conditions that must be true, and of those that must be false.
        variable: the index of the variable to which the row is bound.
        accepts: whether the rows bound so far are a match.
    """

    kind: int
    to: int
    yes: int = 0
    no: int = 0
    variable: int = 0
    accepts: bool = False


@dataclass(frozen=True, slots=True)
class Automaton:
    """A compiled pattern.

    Attributes:
        variables: the names of the variables.
        first: shape (states + 1,), the index of each state's first edge.
        edges: shape (6 * edges,): kind, to, yes, no, variable and accepts of each edge.
        empty: whether the empty sequence of rows is a match.
        waits: the variables that each state waits for.
    """

    variables: tuple[str, ...]
    first: Int64s
    edges: Int64s
    empty: bool
    waits: tuple[tuple[str, ...], ...]

    @property
    def most_edges(self) -> int:
        """The maximum number of edges of a state."""
        return int(np.diff(self.first).max(initial=0))


def assembled(variables: Sequence[str], states: Iterable[Sequence[Edge]], empty: bool) -> Automaton:
    """Assemble an automaton from states; the first one is the initial state."""
    first, flat, waits = [0], [], []
    for edges in states:
        first.append(first[-1] + len(edges))
        flat += [(e.kind, e.to, e.yes, e.no, e.variable, int(e.accepts)) for e in edges]
        waits.append(tuple(dict.fromkeys(variables[e.variable] for e in edges if e.kind == TAKE)))
    return Automaton(
        tuple(variables), np.array(first, np.int64), np.array(flat, np.int64).reshape(-1), empty, tuple(waits)
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction of the intermediate program: take a row as `variable`, or continue at one of `targets`, in this
    order."""

    variable: int | None
    targets: tuple[int, ...]


def row_automaton(shape: Shape, variables: Sequence[str], conditions: Mapping[str, int]) -> Automaton:
    """Build the automaton of a pattern of contiguous rows, with one preferred match for each first row.

    Source: Thompson's construction, in priority order (R. Cox, *Regular Expression Matching: the Virtual Machine
    Approach*, 2009).

    Args:
        shape: the pattern.
        variables: all variables, by index.
        conditions: the bit of each variable's condition; variables without one accept any row.

    Raises:
        PlanError: the pattern has too many states.

    Example:
        >>> from workbench.patterns.reading import read_pattern
        >>> row_automaton(read_pattern("A B*"), ["A", "B"], {"A": 0, "B": 1}).waits
        (('A',), ('B',))
    """
    steps: list[_Step | None] = []

    def added(step: _Step | None) -> int:
        if len(steps) >= _STATES_MAX:
            raise PlanError(
                f"the pattern has more than {_STATES_MAX:,} states: use smaller numbers of repetitions, or + and *"
            )
        steps.append(step)
        return len(steps) - 1

    def before(part: Shape, target: int) -> int:
        """The first step of `part`, if `target` follows it."""
        if isinstance(part, Variable):
            return added(_Step(variables.index(part.name), (target,)))
        if isinstance(part, Alternatives):
            return added(_Step(None, tuple(before(one, target) for one in part.parts)))
        if isinstance(part, Repetition):
            return repeated(part, target)
        for one in reversed(part.parts):
            target = before(one, target)
        return target

    def repeated(part: Repetition, target: int) -> int:
        end = target
        if part.most is None:
            loop = added(None)
            inner = before(part.part, loop)
            steps[loop] = _Step(None, (inner, end) if part.greedy else (end, inner))
            target = loop
        else:
            for _ in range(part.most - part.least):
                inner = before(part.part, target)
                target = added(_Step(None, (inner, end) if part.greedy else (end, inner)))
        for _ in range(part.least):
            target = before(part.part, target)
        return target

    accept = added(_Step(None, ()))
    start = before(shape, accept)

    def reached(step: int) -> tuple[list[int], bool]:
        """The steps that take a row, in order of preference up to the end of the match, and whether the end is
        reached."""
        found: list[int] = []
        seen: set[int] = set()
        waiting = [step]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            if at == accept:
                return found, True  # later steps are never preferred
            one = steps[at]
            assert one is not None
            if one.variable is None:
                waiting += reversed(one.targets)
            else:
                found.append(at)
        return found, False

    numbers, states, waiting = {start: 0}, {}, [start]
    while waiting:
        step = waiting.pop()
        edges = []
        for taking in reached(step)[0]:
            one = steps[taking]
            assert one is not None
            assert one.variable is not None
            (target,) = one.targets
            if target not in numbers:
                numbers[target] = len(numbers)
                waiting.append(target)
            bit = conditions.get(variables[one.variable])
            yes = 0 if bit is None else 1 << bit
            edges.append(Edge(TAKE, numbers[target], yes, 0, one.variable, reached(target)[1]))
        states[numbers[step]] = edges
    return assembled(variables, [states[number] for number in range(len(states))], reached(start)[1])
