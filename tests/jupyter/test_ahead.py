"""The dashboard is imported as soon as a front end is there, once, and only then."""

from __future__ import annotations

import subprocess
import sys

AHEAD = """
import sys
from workbench.jupyter.showing.ahead import DASHBOARD, import_ahead
assert DASHBOARD not in sys.modules
import_ahead().join()
assert DASHBOARD in sys.modules
assert "pandas" in sys.modules  # wholly, before a job's thread begins to import it beside a dashboard
print(import_ahead())
"""
MISSING = """
import sys
sys.modules["bokeh"] = None
from workbench.jupyter.showing.ahead import import_ahead
import_ahead().join()
import pyarrow as pa, workbench as wb
try:
    wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("viewed").dashboard()
except wb.errors.MissingPackageError as error:
    print(error)
"""


def ran(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def test_the_dashboard_is_imported_once() -> None:
    assert ran(AHEAD) == "None\n"


def test_whoever_asks_for_a_dashboard_is_told_which_package_is_missing() -> None:
    assert ran(MISSING).startswith("a dashboard needs the package bokeh")
