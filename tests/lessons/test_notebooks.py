"""The notebooks of the course run from top to bottom: solved, everything passes; blank, each gap is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from workbench.lessons.course import COURSE, plan_of

COURSE_FOLDER = Path(__file__).parents[2] / "notebooks/course"


def outputs(path: Path, folder: Path) -> list[str]:
    """What the cells show, as text."""
    notebook: Any = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output.get("text") or output.get("data", {}).get("text/plain", "") for output in shown]


@pytest.mark.slow
@pytest.mark.parametrize("number", COURSE)
def test_solved_everything_passes(number: str, tmp_path: Path) -> None:
    shown = outputs(COURSE_FOLDER / "solved" / f"{number}_{COURSE[number]}.ipynb", tmp_path)
    plan = plan_of(number)
    steps = len(plan.questions) + len(plan.exercises)
    assert [text for text in shown if text.startswith("Your prediction was")] == []
    assert sum(text.startswith("Your prediction, ") for text in shown) == len(plan.questions)
    assert sum(text.startswith("Passed.") for text in shown) == len(plan.exercises)
    assert shown[-1].startswith(f"{steps} of {steps} done in lesson {int(number)}")


@pytest.mark.slow
@pytest.mark.parametrize("number", COURSE)
def test_blank_says_everything_that_is_missing_and_raises_nothing(number: str, tmp_path: Path) -> None:
    shown = outputs(COURSE_FOLDER / f"{number}_{COURSE[number]}.ipynb", tmp_path)
    plan = plan_of(number)
    for question in plan.questions:
        assert any(text.startswith(question.text) and "Replace the `...`" in text for text in shown)
    assert sum(text.startswith("Not answered yet") for text in shown) == len(plan.exercises)
    assert re.match(rf"0 of \d+ done in lesson {int(number)}\n", shown[-1])
    assert len(re.findall("open: ", shown[-1])) == len(plan.questions) + len(plan.exercises)
