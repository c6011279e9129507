"""Reads a lesson's source: Markdown, in which fenced Python blocks are cells.

The words after ```` ```python ```` are the tags of the cell, such as the IDs of the ideas that it shows.

A solution is placed between ``# BEGIN SOLUTION`` and ``# END SOLUTION``. In the notebook for learners, its lines that
begin with ``# BLANK`` replace it, or ``...`` if there are none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

FENCE = "```python"
BEGIN, BLANK, END = "# BEGIN SOLUTION", "# BLANK", "# END SOLUTION"
_CHECK = re.compile(r"""lesson\.check\(\s*["']([\w-]+)["']""")
_ASKED = re.compile(r"""lesson\.predict\(\s*["']([\w-]+)["']""")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a lesson.

    Attributes:
        kind: of Markdown or code.
        text: including the marks of solutions.
        section: the number of its section, 0 before the first section.
        tags: of a code cell.
    """

    kind: Literal["markdown", "code"]
    text: str
    section: int
    tags: tuple[str, ...] = ()

    @property
    def blank(self) -> str:
        """The text for learners."""
        return _cut(self.text, solved=False)

    @property
    def solved(self) -> str:
        """The text with solutions."""
        return _cut(self.text, solved=True)

    @property
    def checks(self) -> tuple[str, ...]:
        """The exercises that it checks."""
        return tuple(_CHECK.findall(self.text))

    @property
    def asks(self) -> tuple[str, ...]:
        """The questions that it asks."""
        return tuple(_ASKED.findall(self.text))


def cells_of(source: str) -> list[Cell]:
    """The cells of a source.

    Raises:
        ValueError: a block or a solution has no end.

    Example:
        >>> [cell.kind for cell in cells_of("# Title\\n\\n```python\\n1 + 1\\n```\\n")]
        ['markdown', 'code']
    """
    cells: list[Cell] = []
    lines: list[str] = []
    tags: tuple[str, ...] = ()
    section, inside = 0, False

    def add(kind: Literal["markdown", "code"]) -> None:
        text = "\n".join(lines).strip("\n")
        lines.clear()
        if text.strip():
            cells.append(Cell(kind, text, section, tags if kind == "code" else ()))

    for line in source.splitlines():
        if not inside and line.startswith("## "):
            add("markdown")
            section += 1
        if not inside and line.startswith(FENCE):
            add("markdown")
            inside, tags = True, tuple(line.removeprefix(FENCE).split())
        elif inside and line.strip() == "```":
            add("code")
            inside = False
        else:
            lines.append(line)
    if inside:
        raise ValueError("the last block of code has no end: add a line with three backticks")
    add("markdown")
    for cell in cells:
        _cut(cell.text, solved=True)
    return cells


def _cut(text: str, *, solved: bool) -> str:
    """The text with the solutions, or with their replacements."""
    kept: list[str] = []
    within: list[str] | None = None
    for line in text.splitlines():
        mark = line.strip()
        if mark == BEGIN:
            within = []
        elif mark == END and within is not None:
            kept += _solution(within) if solved else _gap(within)
            within = None
        elif within is not None:
            within.append(line)
        else:
            kept.append(line)
    if within is not None:
        raise ValueError(f"a solution has no end: add a line {END!r}")
    return "\n".join(kept)


def _solution(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.strip().startswith(BLANK)]


def _gap(lines: list[str]) -> list[str]:
    blanks = [_uncommented(line) for line in lines if line.strip().startswith(BLANK)]
    first = lines[0] if lines else ""
    return blanks or [first[: len(first) - len(first.lstrip())] + "..."]


def _uncommented(line: str) -> str:
    """A replacement line without its mark, with its indentation."""
    indent, _, rest = line.partition(BLANK)
    return (indent + rest.removeprefix(" ")).rstrip()
