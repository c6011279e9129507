"""The lessons with finite input, run in a real kernel: all cells at once, and with long pauses."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import executed
import pytest

from workbench.cli.demo import NOTEBOOK

ROOT = Path(__file__).parents[2]
READ = """import time, workbench as wb
for _ in range(1200):
    if any(job._run.master.held_open or job.over for job in wb.jobs().values()):
        break
    time.sleep(0.05)
else:
    raise AssertionError("the input is not read")"""
"""A pause as it ends for the job: with everything read."""


def printed(notebook: Any, folder: Path, *, pauses: bool) -> list[str]:
    """What the cells print, where people read for long between two cells, so that the job has read everything, or do
    not read at all."""
    for cell in notebook.cells:
        cell.source = cell.source.replace("rate=5_000", "rate=200_000").replace('speed="86400x"', 'speed="2592000x"')
    if pauses:
        after = [index for index, cell in enumerate(notebook.cells) if cell.source.startswith("%%stream")]
        notebook.cells.insert(after[0] + 1, executed.code_cell(READ))
    executed.execute(notebook, folder)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output["text"] for output in outputs if "text" in output]


@pytest.mark.slow
@pytest.mark.parametrize("pauses", [False, True])
def test_the_tutorial_runs_and_its_result_is_exact(tmp_path: Path, pauses: bool) -> None:
    notebook = executed.read(ROOT / "extension/src/tutorial.json")
    last = printed(notebook, tmp_path, pauses=pauses)[-1]
    assert "600,000 readings in " in last
    assert last.endswith("after 1 restart\n")


@pytest.mark.slow
@pytest.mark.parametrize("pauses", [False, True])
def test_the_first_notebook_runs_and_every_window_is_right(flights_log: Path, tmp_path: Path, pauses: bool) -> None:
    shutil.copytree(flights_log, tmp_path / "workbench-data/flights.log")
    notebook = executed.read(ROOT / "notebooks" / NOTEBOOK)
    last = printed(notebook, tmp_path, pauses=pauses)[-1]
    assert re.fullmatch(r"[\d,]+ windows over 328,521 flights: all equal, after 1 restart\.\n", last)
