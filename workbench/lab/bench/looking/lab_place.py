"""A job in JupyterLab: a notebook whose kernel runs it, and beside it the dashboard or ten views, docked."""

from __future__ import annotations

import json
import secrets
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from workbench.cli.checks.packages import lab_extension
from workbench.errors import SettingError
from workbench.lab.bench.looking.chromium import Chromium
from workbench.lab.bench.looking.lab_server import jupyter_server, runtime_folder
from workbench.lab.bench.looking.notebook_kernel import JoinedKernel
from workbench.lab.bench.looking.shown_job import NAME
from workbench.lab.bench.looking.watching import call

NOTEBOOK = "bench.ipynb"
START = """%load_ext workbench
from workbench.lab.bench.looking.shown_job import ShownJob
shown = ShownJob(served=False)"""
COLUMNS = (
    ("graph", "state", "events", "event_time"), ("watermarks", "buffers", "sink"),
    ("latency", "checkpoints", "controls"),
)  # fmt: skip
"""The docked views, column by column, all of them visible."""


class LabPlace:
    """JupyterLab in a browser, with a notebook that runs the wide job, and its dashboard in a panel while that is open.

    Args:
        program: the Chromium.

    Raises:
        SettingError: the front end is not installed.
    """

    screen = (3200, 2300)
    """The sidebar, the notebook and the whole dashboard, half of the page wide, are visible at once."""
    views = 1
    _dock = call("dockDashboard", NAME)

    def __init__(self, program: str) -> None:
        if lacking := [check for check in lab_extension() if not check.ok]:
            raise SettingError(f"{lacking[0].found}: {lacking[0].mend}")
        self._program = program
        self._stack = ExitStack()

    def __enter__(self) -> LabPlace:
        with ExitStack() as stack:
            home, root = (Path(stack.enter_context(TemporaryDirectory(prefix="workbench-lab-"))) for _ in range(2))
            (root / NOTEBOOK).write_text(json.dumps(_notebook(START, "1+1")))
            token = secrets.token_urlsafe(16)
            url = stack.enter_context(jupyter_server(home, root, token))
            self._browser = stack.enter_context(Chromium(self._program, self.screen))
            self._browser.open(f"{url}/lab?token={token}&reset", call("countBytes"))
            kernel = self._browser.ask(call("openNotebook", NOTEBOOK))
            self.kernel = JoinedKernel(runtime_folder(home) / f"kernel-{kernel}.json")
            stack.callback(self.kernel.close)
            self._run(0)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def open(self) -> Chromium:
        """Dock the dashboard or its views."""
        self._browser.ask(self._dock)
        return self._browser

    def close(self) -> None:
        """Close what is docked; the notebook stays open."""
        self._browser.ask(call("closePanels"))

    def cell_seconds(self) -> float:
        """From running a cell of the notebook until the page has its result."""
        took, shown = self._run(1)
        if shown != "2":
            raise SettingError(f"the cell 1+1 shows {shown!r}: did something else run in this notebook?")
        return took

    def _run(self, index: int) -> tuple[float, str]:
        took_ms, shown = self._browser.ask(call("runCell", index))
        return took_ms / 1e3, shown


class LabViews(LabPlace):
    """The same with ten views, each docked separately."""

    screen = (2400, 1400)
    """The sidebar, the notebook and ten views are visible at once."""
    views = sum(len(column) for column in COLUMNS)
    _dock = call("dockViews", NAME, COLUMNS)


def _notebook(*cells: str) -> dict[str, object]:
    """A new notebook, in its file format."""
    return {
        "cells": [
            {
                "cell_type": "code",
                "execution_count": None,
                "id": f"cell-{number}",
                "metadata": {},
                "outputs": [],
                "source": cell,
            }
            for number, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
