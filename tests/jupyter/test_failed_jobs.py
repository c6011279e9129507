"""The failure of a job appears once in a notebook."""

from __future__ import annotations

import logging
import sys
from types import ModuleType

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from waiting import until

import workbench as wb
from workbench.front_ends import show_failures_below
from workbench.jupyter.showing.ahead import DASHBOARD

START = """
def inverse(row): return {"i": 1 // row["i"]}
failing = wb.Stream.from_table(pa.table({"i": [1, 0]})).map(inverse, {"i": pa.int64()})
job = failing.sink_to(wb.DiscardSink()).run("failing", restart=wb.restart.no_restart())
"""


@pytest.fixture
def shell() -> InteractiveShell:
    shell = InteractiveShell()
    show_failures_below(shell)
    shell.run_cell("import pyarrow as pa\nimport workbench as wb")
    return shell


def shown(shell: InteractiveShell, cell: str) -> str:
    with capture_output() as printed:
        shell.run_cell(cell)
    return printed.stdout + printed.stderr + "".join(str(output) for output in printed.outputs)


def test_a_failure_that_nothing_shows_appears_below_one_cell(
    shell: InteractiveShell, capfd: pytest.CaptureFixture[str]
) -> None:
    told = shown(shell, START)
    until(lambda: wb.job("failing").over)
    told += shown(shell, "1")
    assert told.count("the job 'failing' failed: map function 'inverse' raised ZeroDivisionError") == 1
    assert ", in inverse" in told
    assert "failed" not in shown(shell, "2") + "".join(capfd.readouterr())


def test_a_failure_that_a_call_has_raised_does_not_appear_again(shell: InteractiveShell) -> None:
    told = shown(shell, START + "job.wait()") + shown(shell, "1")
    assert told.count("the job 'failing' failed") == 1


@pytest.mark.parametrize("module", [DASHBOARD, "workbench.api.job.registry"])
def test_a_cell_that_ends_while_a_thread_imports_the_workbench_is_not_blamed(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    shown(shell, START)
    until(lambda: wb.job("failing").over)
    with monkeypatch.context() as importing:
        importing.setitem(sys.modules, module, ModuleType(module))  # begun, and still without its names
        told = shown(shell, "1")
    assert "AttributeError" not in told
    assert (told + shown(shell, "2")).count("the job 'failing' failed") == 1


def test_a_notebook_has_no_log_on_stderr_unless_it_asks_for_one(shell: InteractiveShell) -> None:
    assert any(isinstance(each, logging.NullHandler) for each in logging.getLogger("workbench").handlers)
