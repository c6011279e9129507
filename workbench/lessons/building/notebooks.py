"""Makes the notebooks of lessons: the same source always gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from workbench.lessons.building.source import Cell, cells_of
from workbench.lessons.exercises.question import Question

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
SOLVED = "solved"
"""The subfolder of the notebooks with solutions."""


def notebook(source: str, prefix: str, questions: Sequence[Question] = (), *, solved: bool) -> str:
    """A notebook as text; each question stands above the cell that asks it.

    Args:
        source: of the lesson.
        prefix: of the IDs of its cells.
        questions: of the lesson.
        solved: whether it has the solutions.
    """
    asked = {question.name: question.asked() for question in questions}
    cells = []
    for index, cell in enumerate(cells_of(source)):
        for name in cell.asks:
            if name in asked:
                cells.append(
                    _cell(Cell("markdown", asked[name], cell.section), f"{prefix}-{index:02}-question", solved)
                )
        cells.append(_cell(cell, f"{prefix}-{index:02}", solved))
    made = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def build(
    sources: Path, into: Path, questions: Callable[[str], Sequence[Question]], *, replace: bool = True
) -> list[Path]:
    """Write both notebooks of each source; return their paths.

    Args:
        sources: the folder of the sources, ``*.md``.
        into: the folder of the notebooks; those with solutions are written to its subfolder ``solved``.
        questions: those of a lesson, by its number.
        replace: False keeps existing notebooks, because a learner may have worked in them.
    """
    written = []
    for source in sorted(sources.glob("*.md")):
        text, number = source.read_text(encoding="utf-8"), source.stem[:2]
        for solved in (False, True):
            path = (into / SOLVED if solved else into) / f"{source.stem}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            if replace or not path.exists():
                path.write_text(notebook(text, number, questions(number), solved=solved), encoding="utf-8")
            written.append(path)
    return written


def lecture(number: str) -> str:
    """A notebook, as text, whose only cell starts the lecture of a lesson.

    Args:
        number: of the lesson, with two digits.
    """
    cell = Cell("code", f'import workbench as wb\n\nwb.lesson("{number}", progress=False).lecture()', 0)
    made = {
        "cells": [_cell(cell, f"{number}-lecture", False)],
        "metadata": METADATA,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1) + "\n"


def _cell(cell: Cell, name: str, solved: bool) -> dict[str, Any]:
    text = cell.solved if solved else cell.blank
    made: dict[str, Any] = {
        "cell_type": cell.kind,
        "id": name,
        "metadata": {"tags": list(cell.tags)} if cell.tags else {},
        "source": text.splitlines(keepends=True),
    }
    return made | ({"execution_count": None, "outputs": []} if cell.kind == "code" else {})
