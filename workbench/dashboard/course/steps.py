"""The steps of a lecture: the output of each cell of a lesson, with the text before it as its caption."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.lessons.building.source import Cell

_PREDICTS = re.compile(r"""lesson\.predict\(\s*["']([\w-]+)["']""")
_ENDS = re.compile(r"\w+\.(cancel|stop)\(\)")
_HEAD = re.compile(r"^#+ +(?:\d+\. +)?(.*)")

Kind = Literal["tells", "shows", "asks", "sets", "solves"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        kind: it shows a text or the output of a program, asks a question, sets an exercise, or solves it.
        section: the number of the section, 0 before the first one.
        title: of the section, or of the lesson.
        words: Markdown.
        programs: that run for it, in order; the last one shows something.
        name: of the question or the exercise.
    """

    kind: Kind
    section: int
    title: str
    words: str = ""
    programs: tuple[str, ...] = ()
    name: str = ""


def steps_of(cells: Sequence[Cell]) -> list[Step]:
    """The steps of a lesson.

    A cell without output runs together with the next cell that has output. The text before a cell is its caption. A
    text without a following cell in its section is a separate step, and so is a text with a table or a list, for which
    a caption is too small.

    Example:
        >>> from workbench.lessons.building.source import cells_of
        >>> cells = cells_of("# A lesson\\n\\nIt begins.\\n\\n## 1. One\\n\\n```python\\n1 + 1\\n```\\n")
        >>> [step.kind for step in steps_of(cells)]
        ['tells', 'shows']
    """
    steps: list[Step] = []
    title, section, words, silent = "", 0, "", []
    for cell in cells:
        if cell.kind == "markdown":
            if cell.section != section and words:
                steps.append(Step("tells", section, title, words))
                words = ""
            head, _, rest = cell.text.partition("\n")
            if (found := _HEAD.match(head)) is not None:
                title, section, text = found[1], cell.section, rest.strip()
            else:
                text = cell.text.strip()
            words = "\n\n".join(filter(None, (words, text)))
        elif "wb.lesson(" in cell.text:
            silent.append(cell.solved)
            steps.append(Step("tells", section, title, words))
            words = ""
        elif cell.checks:
            name = cell.checks[0]
            steps.append(Step("sets", section, title, words, tuple(silent), name))
            steps.append(Step("solves", section, title, "", (cell.solved,), name))
            words, silent = "", []
        elif (asked := _PREDICTS.search(cell.text)) is not None:
            steps.append(Step("asks", section, title, words, tuple(silent), asked[1]))
            words, silent = "", []
        elif "lesson.progress()" in cell.text:
            continue
        elif _shows(cell.solved):
            told, caption = _parted(words)
            if told:
                steps.append(Step("tells", section, title, told))
            steps.append(Step("shows", section, title, caption, (*silent, cell.solved)))
            words, silent = "", []
        else:
            silent.append(cell.solved)
    if words:
        steps.append(Step("tells", section, title, words))
    return steps


def _parted(words: str) -> tuple[str, str]:
    """A text up to its last table or list, and the rest."""
    paragraphs = words.split("\n\n")
    large = [at for at, paragraph in enumerate(paragraphs) if re.match(r"\||[-*] |\d+\. ", paragraph)]
    end = large[-1] + 1 if large else 0
    return "\n\n".join(paragraphs[:end]), "\n\n".join(paragraphs[end:])


def _shows(program: str) -> bool:
    """Whether a cell shows anything: it ends with an expression that is more than the end of a job, or prints."""
    body = ast.parse(program).body
    last = body[-1] if body else None
    is_end = isinstance(last, ast.Expr) and _ENDS.fullmatch(ast.unparse(last)) is not None
    return "print(" in program or (isinstance(last, ast.Expr) and not is_end)
