"""The tutorial that JupyterLab's launcher opens, run from top to bottom in a real kernel."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parents[2] / "extension/src/tutorial.json"


@pytest.mark.slow
def test_the_tutorial_runs_and_its_result_is_exact(tmp_path):
    notebook = nbformat.from_dict(json.loads(TUTORIAL.read_text()))
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = [output["text"] for cell in notebook.cells for output in cell.get("outputs", ()) if "text" in output]
    assert "600,000 readings in " in printed[-1]
    assert printed[-1].endswith("after 1 restart\n")
