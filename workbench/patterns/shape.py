"""A row pattern as a tree: variables, sequences, alternatives and repetitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """One row that satisfies the variable's condition."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Sequence:
    """The parts, one directly after the other; without parts, the empty pattern."""

    parts: tuple[Shape, ...]

    def __str__(self) -> str:
        inner = (f"({part})" if isinstance(part, Alternatives) else str(part) for part in self.parts)
        return " ".join(inner) or "()"


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of the parts; an earlier one is preferred."""

    parts: tuple[Shape, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Repetition:
    """A repeated part.

    Attributes:
        part: the repeated part.
        least, most: the bounds of the number of repetitions; None: no upper bound.
        greedy: whether more repetitions are preferred.
    """

    part: Shape
    least: int
    most: int | None
    greedy: bool = True

    def __str__(self) -> str:
        inner = str(self.part) if isinstance(self.part, Variable) else f"({self.part})"
        signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
        bounds = (
            f"{self.least}" if self.least == self.most else f"{self.least},{'' if self.most is None else self.most}"
        )
        return f"{inner}{signs.get((self.least, self.most), f'{{{bounds}}}')}{'' if self.greedy else '?'}"


Shape = Variable | Sequence | Alternatives | Repetition


def names_in(shape: Shape) -> Iterator[str]:
    """The variables of a pattern, from left to right, with duplicates.

    Example:
        >>> list(names_in(Sequence((Variable("A"), Repetition(Variable("B"), 0, None)))))
        ['A', 'B']
    """
    if isinstance(shape, Variable):
        yield shape.name
    elif isinstance(shape, Repetition):
        yield from names_in(shape.part)
    else:
        for part in shape.parts:
            yield from names_in(part)
