"""The stages of a pattern that is written as a chain: what follows what, how closely, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.expressions import Expression

Contiguity = Literal["next", "followed_by", "followed_by_any", "not_next", "not_followed_by"]
"""How a stage follows the one before it: the next row; the next row that fits; any later row that fits; and that the
next row, or no row until the next stage, may be one."""

NOTS: tuple[Contiguity, ...] = ("not_next", "not_followed_by")


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage.

    Attributes:
        name: of the variable that its rows are bound to; empty for a group.
        conditions: all of them must be true for a row.
        contiguity: see `Contiguity`; that of the first stage has no meaning.
        least, most: how many rows; no upper bound for None.
        optional: whether there may be none.
        greedy: whether rows that fit here are not left to the next stage.
        inner: how the rows of the stage follow each other.
        until: the condition of a row that ends the repetition.
        group: the stages of a group, which the other attributes are about.
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
    """The stages that rows are bound to or that are excluded, those in groups included, from left to right."""
    found: list[Stage] = []
    for stage in stages:
        found += flat(stage.group) if stage.group else [stage]
    return found
