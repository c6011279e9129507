"""A backtracking search for row patterns: slow, and by definition right."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workbench.operators.matching.partials import Skip
from workbench.patterns.shape import Alternatives, Repetition, Sequence, Shape, Variable

Bound = tuple[tuple[str, int], ...]
"""Variables and the rows that they are bound to."""
Holds = Callable[[str, int, Bound, list[int]], bool]
"""Whether a row can be bound to a variable, given what is bound before and the values of all rows."""


def ways(shape: Shape, at: int, bound: Bound, fits: Callable[[str, int, Bound], bool]) -> Iterator[tuple[int, Bound]]:
    """How a pattern can match from a row on, the preferred way first: the row behind it, and what is bound."""
    if isinstance(shape, Variable):
        if fits(shape.name, at, bound):
            yield at + 1, (*bound, (shape.name, at))
    elif isinstance(shape, Alternatives):
        for part in shape.parts:
            yield from ways(part, at, bound, fits)
    elif isinstance(shape, Sequence):
        if not shape.parts:
            yield at, bound
            return
        for end, taken in ways(shape.parts[0], at, bound, fits):
            yield from ways(Sequence(shape.parts[1:]), end, taken, fits)
    else:
        more = shape.most is None or shape.most > 0
        less = Repetition(
            shape.part, max(shape.least - 1, 0), None if shape.most is None else shape.most - 1, shape.greedy
        )
        if shape.least == 0 and not shape.greedy:
            yield at, bound
        if more:
            for end, taken in ways(shape.part, at, bound, fits):
                yield from ways(less, end, taken, fits)
        if shape.least == 0 and shape.greedy:
            yield at, bound


def searched(shape: Shape, values: list[int], holds: Holds, skip: Skip, within: int) -> list[Bound]:
    """The matches among rows whose times are their numbers."""
    found: list[Bound] = []
    start = 0
    while start < len(values):

        def fits(name: str, at: int, bound: Bound, start: int = start) -> bool:
            in_time = at < len(values) and (not within or at - start < within)
            return in_time and holds(name, at, bound, values)

        match = next(ways(shape, start, (), fits), None)
        if match is None:
            start += 1
            continue
        end, bound = match
        found.append(bound)
        start = end if skip == "past_last" and end > start else start + 1
    return found
