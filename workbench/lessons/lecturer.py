"""The lecturer's side of a lesson: reset it, jump to a section, show a solution."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from workbench.arguments import as_given
from workbench.errors import JobError, SettingError
from workbench.lessons.building.source import Cell
from workbench.lessons.exercises.said import Said
from workbench.raised import described


class Lecturer:
    """The actions of a lecturer on a lesson; reached as ``lesson.lecturer``.

    Source: nbgrader and otter-grader, whose notebooks for teachers and learners have one source.

    Example:
        >>> lesson = wb.lesson("01", progress=False)
        >>> lesson.lecturer
        sections: 1 The same question, twice, 2 ...
    """

    def __init__(self, cells: list[Cell], reset: Callable[[], None]) -> None:
        self._cells = cells
        self._reset = reset

    def __repr__(self) -> str:
        return f"sections: {', '.join(f'{n} {title}' for n, title in enumerate(self._titles(), 1))}"

    def reset(self) -> Said:
        """Forget the predictions, hints and checks of this lesson."""
        self._reset()
        return Said("The lesson starts again.", ["Its predictions, hints and checks have been deleted."])

    def solution(self, name: str) -> Said:
        """Show the solution of an exercise.

        Args:
            name: of the exercise.

        Raises:
            SettingError: there is no such exercise.
        """
        for cell in self._cells:
            if name in cell.checks:
                return Said(f"A solution of {name!r}:", code=cell.solved)
        names = [name for cell in self._cells for name in cell.checks]
        raise SettingError(f"there is no exercise {as_given(name)}: this lesson has {', '.join(names)}")

    def jump(self, section: int, namespace: dict[str, Any]) -> Said:
        """Run everything before a section, with the solutions and without output.

        Args:
            section: its number; the first one is 1.
            namespace: in which the cells run: ``globals()`` of the notebook.

        Raises:
            SettingError: there is no such section.
            JobError: a cell fails.
        """
        titles = self._titles()
        if section not in range(1, len(titles) + 1):
            raise SettingError(f"there is no section {as_given(section)}: this lesson has 1 to {len(titles)}")
        before = [cell for cell in self._cells if cell.kind == "code" and cell.section < section]
        for cell in before:
            try:
                with redirect_stdout(io.StringIO()):
                    exec(compile(cell.solved, "<lesson>", "exec"), namespace)
            except Exception as error:
                raise JobError(f"a cell before section {section} fails: {described(error)}") from error
        return Said(f"{len(before)} cells were run. Continue with {section}. {titles[section - 1]}.")

    def _titles(self) -> list[str]:
        heads = [cell.text.splitlines()[0] for cell in self._cells if cell.kind == "markdown"]
        return [head.removeprefix("## ").split(". ", 1)[-1] for head in heads if head.startswith("## ")]
