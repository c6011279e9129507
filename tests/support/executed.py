"""Notebooks as files, run from top to bottom in a kernel of their own.

Jupyter's packages are imported with the first notebook: that takes longer than most files of tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def read(path: Path) -> Any:
    """The notebook in a file, if it is a valid one."""
    import nbformat

    notebook: Any = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def code_cell(source: str) -> Any:
    """A cell for a notebook that was read."""
    import nbformat

    return nbformat.v4.new_code_cell(source)


def execute(notebook: Any, folder: Path, *, timeout_s: int = 180) -> None:
    """Run its cells in a folder and put what they show into it; a cell that fails raises."""
    from nbclient import NotebookClient

    NotebookClient(notebook, timeout=timeout_s, resources={"metadata": {"path": str(folder)}}).execute()


def data(notebook: Any) -> list[Any]:
    """The results that its cells have shown, each by MIME type."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return [output["data"] for output in outputs if "data" in output]
