"""The stages of a pattern that is written as a chain: their order, contiguity and repetition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.expressions import Expression

Contiguity = Literal["next", "followed_by", "followed_by_any", "not_next", "not_followed_by"]
"""How a stage follows the previous one: the next row; the next row that fits; any later row that fits; not the next
row; no row until the next stage."""

NOTS: tuple[Contiguity, ...] = ("not_next", "not_followed_by")


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage.

    Attributes:
        name: the variable to which its rows are bound; empty for a group.
        conditions: the conditions on a row; all must be true.
        contiguity: see `Contiguity`; it has no meaning for the first stage.
        least, most: the bounds of the number of rows; None: no upper bound.
        optional: whether it can have no rows.
        greedy: whether rows that fit are always bound here, not to the next stage.
        inner: the contiguity between the rows of the stage.
        until: the condition of a row that ends the repetition.
        group: the stages of a group, to which the other attributes apply.
    """

    name: str
    conditions: tuple[Expression, ...] = ()
    contiguity: Contiguity = "next"
    least: int = 1
    most: int | None = 1
    optional: bool = False
    greedy: bool = False
    inner: Contiguity = "followed_by"
    until: Expression | None = None
    group: tuple[Stage, ...] = ()

    @property
    def repeats(self) -> bool:
        """Whether it can have more than one row."""
        return self.most != 1

    @property
    def until_name(self) -> str:
        """The name of the condition that ends the repetition."""
        return f"until {' '.join(stage.name for stage in flat((self,)))}"

    def __str__(self) -> str:
        inner = f"({described(self.group)})" if self.group else self.name
        if self.repeats:
            bounds = f"{self.least}" if self.least == self.most else f"{self.least},{self.most or ''}"
            inner += "+" if (self.least, self.most) == (1, None) else f"{{{bounds}}}"
            inner += {"next": " consecutive", "followed_by_any": " in any combination"}.get(self.inner, "")
        return inner + (" optional" if self.optional else "") + (" greedy" if self.greedy else "")


def described(stages: tuple[Stage, ...]) -> str:
    """The stages in words, such as ``a followed by b+``."""
    first, *others = stages
    return " ".join([str(first), *(f"{stage.contiguity.replace('_', ' ')} {stage}" for stage in others)])


def flat(stages: tuple[Stage, ...]) -> list[Stage]:
    """All positive and negative stages from left to right, including those in groups."""
    found: list[Stage] = []
    for stage in stages:
        found += flat(stage.group) if stage.group else [stage]
    return found
