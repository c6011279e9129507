"""Runs cells of a lesson, with their solutions, in a namespace of their own."""

from __future__ import annotations

import ast
from typing import Any

from workbench.lessons.building.source import cells_of
from workbench.lessons.course import source_of


class LessonCells:
    """The code cells of a lesson.

    Args:
        number: of the lesson, with two digits.

    Attributes:
        names: what the cells that have run have defined.
    """

    def __init__(self, number: str) -> None:
        self._cells = [cell.solved for cell in cells_of(source_of(number)) if cell.kind == "code"]
        self.names: dict[str, Any] = {}
        self.run(f'wb.lesson("{number}")')

    def run(self, *marks: str) -> Any:
        """Run the cells that contain these texts, in the order of the texts; each text is in one cell.

        Returns:
            The value of the last cell's last line.
        """
        value = None
        for mark in marks:
            [program] = [cell for cell in self._cells if mark in cell]
            value = self._run(program)
        return value

    def _run(self, program: str) -> Any:
        tree = ast.parse(program)
        match tree.body[-1]:
            case ast.Expr(value):
                exec(compile(ast.Module(tree.body[:-1], []), "<cell>", "exec"), self.names)
                return eval(compile(ast.Expression(value), "<cell>", "eval"), self.names)
        exec(compile(tree, "<cell>", "exec"), self.names)
        return None

    def __getitem__(self, name: str) -> Any:
        return self.names[name]
