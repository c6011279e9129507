"""Cells that a test runs in a shell of its process."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from workbench.errors import WorkbenchError


def run(shell: InteractiveShell, cell: str) -> Any:
    """Run a cell that must succeed; its value."""
    result = shell.run_cell(cell)
    result.raise_error()
    return result.result


def failure(shell: InteractiveShell, cell: str) -> str:
    """Run a cell that must fail with a sentence; everything that was printed."""
    with capture_output() as printed:
        result = shell.run_cell(cell)
    assert isinstance(result.error_in_exec, WorkbenchError)
    text = (printed.stdout + printed.stderr).strip()
    assert "Traceback" not in text
    assert "\n" not in text
    return text
