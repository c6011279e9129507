"""The project as a whole: required files, forbidden content, and documented exports."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import workbench
from workbench.public import names

ROOT = Path(__file__).parents[2]

REQUIRED = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "pyproject.toml",
    ".ci/run",
    ".pre-commit-config.yaml",
    "binder/apt.txt",
    "binder/runtime.txt",
    "binder/requirements.txt",
    "binder/postBuild",
    "binder/start",
    "notebooks/01_first_stream.ipynb",
    "notebooks/02_checkpoints_step_by_step.ipynb",
    "notebooks/03_architectures.ipynb",
    "extension/pyproject.toml",
    "extension/yarn.lock",
)
EXECUTABLE = (".ci/run", "binder/postBuild", "binder/start")
LOCK_FILES = ("extension/yarn.lock",)

# A path of somebody's machine, written so that this file does not contain what it looks for.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+)/(?!\{)[\w.-]")
REGISTRY_HOST = re.compile(r"https?://[^\s\"']*(?:registry|npmjs|pypi|artifactory|nexus)[^\s\"']*", re.IGNORECASE)
TEXT_BYTES_MAX = 2_000_000


def tracked() -> list[Path]:
    """The files of the project: those under version control, or all but the ignored where there is no repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of the project's files")
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]


def text(path: Path) -> str:
    """What a file says; nothing where it is not text."""
    if path.stat().st_size > TEXT_BYTES_MAX:
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_file_is_there(name: str) -> None:
    assert (ROOT / name).is_file()
    assert (ROOT / name).stat().st_size > 0


@pytest.mark.parametrize("name", EXECUTABLE)
def test_a_script_runs(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    assert (ROOT / name).read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")
    subprocess.run(["bash", "-n", ROOT / name], check=True)


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    found = {
        str(path.relative_to(ROOT)): match.group()
        for path in tracked()
        if path != Path(__file__) and (match := MACHINE_PATH.search(text(path)))
    }
    assert found == {}


@pytest.mark.parametrize("name", LOCK_FILES)
def test_a_lock_file_names_no_registry(name: str) -> None:
    assert REGISTRY_HOST.findall(text(ROOT / name)) == []


def test_the_searches_find_what_they_look_for() -> None:
    assert MACHINE_PATH.search("open('" + "/home/" + "ann/data')")
    assert MACHINE_PATH.search("from " + "/root/" + "x.py")
    assert not MACHINE_PATH.search("a relative /workbench/ and ~/home and https://example.org/home/x")
    assert REGISTRY_HOST.search("resolved " + "https://registry.example.org/a.tgz")


def test_every_public_export_is_documented() -> None:
    public = [name for name in workbench.__all__ if not name.startswith("_")]
    undocumented = [
        name
        for name in public
        if (inspect.isclass(value := getattr(workbench, name)) or callable(value)) and not inspect.getdoc(value)
    ]
    assert public
    assert undocumented == []


def test_the_exports_are_what_all_says() -> None:
    assert sorted(workbench.__all__) == sorted(set(workbench.__all__))
    assert [name for name in workbench.__all__ if not hasattr(workbench, name)] == []


def test_what_type_checkers_read_is_what_is_exported() -> None:
    assert [*sorted(names.__all__), "load_ipython_extension", "unload_ipython_extension"] == workbench.__all__
    assert [name for name in names.__all__ if getattr(names, name) is not getattr(workbench, name)] == []


LAZY = """
import sys, types
import workbench as wb
assert "numpy" not in sys.modules
{use}
assert ("numpy" in sys.modules) is {needs_numpy}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use", "needs_numpy"),
    [
        ("assert wb.Stream is wb.Stream", True),
        ("from workbench import *; assert Stream is wb.Stream and callable(load_ipython_extension)", True),
        ("assert 'Stream' in dir(wb) and 'public' not in dir(wb)", False),
        ("assert isinstance(wb.windows, types.ModuleType)", True),
        ("assert not hasattr(wb, 'Straem') and not hasattr(wb, '__wrapped__')", False),
        ("wb.job = 1; wb.Stream; assert wb.job == 1", True),
        ("import gc; gc.disable(); wb.errors; assert not gc.isenabled()", False),
        ("import gc; wb.errors; assert gc.isenabled()", False),
    ],
)
def test_what_is_exported_is_imported_when_it_is_first_asked_for(use: str, needs_numpy: bool) -> None:
    program = LAZY.format(use=use, needs_numpy=needs_numpy)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extension = re.search(r'"version": "([^"]+)"', (ROOT / "extension" / "package.json").read_text(encoding="utf-8"))
    assert extension is not None
    assert extension[1] == project["version"]


def test_the_readme_has_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme


PLACE = re.compile(r"`((?:workbench|tests|extension|docs)/[^\s`]*)`")


def places(*documents: str) -> list[str]:
    """The files and folders of the project that documents name in code."""
    return [place for document in documents for place in PLACE.findall((ROOT / document).read_text(encoding="utf-8"))]


def test_the_places_that_the_documents_name_exist() -> None:
    named = places("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/benchmarks.md")
    assert [place for place in named if not (ROOT / place).exists()] == []


def test_contributors_find_the_place_of_many_changes_and_of_its_test() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = contributing.partition("## Where a change goes")[2].partition("\n## ")[0]
    rows = [line.split("|")[2:4] for line in table.splitlines() if PLACE.search(line)]
    assert len(rows) >= 20
    assert [row for row in rows if not PLACE.search(row[0])] == []
    assert [row for row in rows if "tests/" not in row[1]] == []


def test_make_prints_its_targets() -> None:
    printed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = {line.split()[0] for line in printed.splitlines()[1:]}
    assert {"demo", "test", "lint", "types", "notebooks", "bench", "simulate", "clean", "help"} <= targets


def test_make_refuses_an_old_python(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text(
        '#!/bin/sh\n[ "$2" = "" ] && exit 0\n[ "$1" = --version ] && echo "Python 3.10.13" && exit 0\nexit 1\n'
    )
    old.chmod(0o755)
    made = subprocess.run(
        ["make", "install", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}"], cwd=ROOT, capture_output=True, text=True
    )
    assert made.returncode != 0
    assert "but 3.11 or newer is needed" in made.stderr
    assert not (tmp_path / "venv").exists()
