"""Looking at a job in JupyterLab: a notebook whose kernel runs it, and beside it the dashboard or nine views docked."""

from __future__ import annotations

import json
import secrets
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from workbench.cli.checks.packages import lab_extension
from workbench.errors import SettingError
from workbench.lab.bench.looking.chromium import Chromium
from workbench.lab.bench.looking.lab_server import jupyter_server, runtime_folder
from workbench.lab.bench.looking.notebook_kernel import JoinedKernel
from workbench.lab.bench.looking.shown_job import NAME
from workbench.lab.bench.looking.watching import COUNT

NOTEBOOK = "bench.ipynb"
START = """%load_ext workbench
from workbench.lab.bench.looking.shown_job import ShownJob
shown = ShownJob(served=False)"""
COLUMNS = (("graph", "state", "events"), ("watermarks", "buffers", "sink"), ("latency", "checkpoints", "controls"))
"""What is docked, column by column, all of it on the screen."""

_OPEN = """(async () => {
  while (window.jupyterapp === undefined) await new Promise((then) => setTimeout(then, 50))
  const {commands, restored, shell} = jupyterapp
  await restored
  await commands.execute("workbench:show-jobs")
  window.notebook = await commands.execute("docmanager:open", {path: PATH, kernel: {name: "python3"}})
  await notebook.context.ready
  await notebook.sessionContext.ready
  await notebook.sessionContext.session.kernel.info
  shell.activateById(notebook.id)
  return notebook.sessionContext.session.kernel.id
})()"""
_RUN = """(async () => {
  const begin = performance.now()
  notebook.content.activeCellIndex = INDEX
  await jupyterapp.commands.execute("notebook:run-cell")
  const took = performance.now() - begin
  const {outputs, executionCount} = notebook.content.activeCell.model
  const failed = outputs.toJSON().find((output) => output.output_type === "error")
  if (failed !== undefined || executionCount === null)
    throw new Error(`cell INDEX: ${failed?.evalue ?? "it was not run"}`)
  return [took, outputs.toJSON().map((output) => output.data?.["text/plain"] ?? "").join("")]
})()"""
_VIEWS = """(async () => {
  const {commands, shell} = jupyterapp
  const opened = VIEWS.flat().map((view) => commands.execute("workbench:open-view", {job: JOB, view}))
  await Promise.all(opened)
  const panels = [...shell.widgets("main")].filter((widget) => widget.hasClass("wb-Dashboard"))
  const [first, middle, last] = VIEWS.map((column) => column.map((view) => panels.find((one) => one.view === view)))
  shell.add(middle[0], "main", {mode: "split-right", ref: notebook.id})
  shell.add(first[0], "main", {mode: "split-right", ref: notebook.id})
  shell.add(last[0], "main", {mode: "split-right", ref: middle[0].id})
  for (const column of [first, middle, last])
    for (const panel of column.slice(1)) shell.add(panel, "main", {mode: "split-bottom", ref: column[0].id})
  shell.activateById(notebook.id)
})()"""
_DASHBOARD = """jupyterapp.commands.execute("workbench:open-dashboard", {job: JOB})"""
_CLOSE = """[...jupyterapp.shell.widgets("main")].filter((widget) => widget.hasClass("wb-Dashboard"))
  .forEach((panel) => panel.close())"""


class LabPlace:
    """JupyterLab in a browser, with a notebook that runs the wide job, and its dashboard in a panel while that is open.

    Args:
        program: the Chromium.

    Raises:
        SettingError: the front end is not installed.
    """

    screen = (3200, 2300)
    """The sidebar, the notebook and the whole dashboard, half of the page wide, are seen at once."""
    views = 1
    _dock = _DASHBOARD

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
            self._browser.open(f"{url}/lab?token={token}&reset", COUNT)
            kernel = self._browser.ask(_OPEN.replace("PATH", json.dumps(NOTEBOOK)))
            self.kernel = JoinedKernel(runtime_folder(home) / f"kernel-{kernel}.json")
            stack.callback(self.kernel.close)
            self._run(0)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def open(self) -> Chromium:
        """Dock what is looked at."""
        self._browser.ask(self._dock.replace("JOB", json.dumps(NAME)))
        return self._browser

    def close(self) -> None:
        """Close what is docked; the notebook stays open."""
        self._browser.ask(_CLOSE)

    def cell_seconds(self) -> float:
        """From running a cell of the notebook until the page has its result."""
        took, shown = self._run(1)
        if shown != "2":
            raise SettingError(f"the cell 1+1 shows {shown!r}: did something else run in this notebook?")
        return took

    def _run(self, index: int) -> tuple[float, str]:
        took_ms, shown = self._browser.ask(_RUN.replace("INDEX", str(index)))
        return took_ms / 1e3, shown


class LabViews(LabPlace):
    """The same with nine views, each docked by itself."""

    screen = (2400, 1400)
    """The sidebar, the notebook and nine views are seen at once."""
    views = sum(len(column) for column in COLUMNS)
    _dock = _VIEWS.replace("VIEWS", json.dumps(COLUMNS))


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
