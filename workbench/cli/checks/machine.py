"""Checks of the machine: Python, a browser, the folder, the disk."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from workbench.cli.checks.check import Check

PYTHON_LEAST = (3, 11)
DISK_LEAST_GB = 1.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def python_version() -> Iterator[Check]:
    """The interpreter."""
    yield Check(
        "Python",
        sys.version_info >= PYTHON_LEAST,
        f"{platform.python_version()} at {sys.executable}",
        "install Python 3.11 or newer and run 'make PYTHON=/path/to/python demo'",
    )


def find_browser() -> str | None:
    """The Chromium for the browser tests: WORKBENCH_CHROMIUM if it is set, else the first one on the PATH."""
    named = os.environ.get("WORKBENCH_CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, BROWSERS)), None)


def browser() -> Iterator[Check]:
    """A Chromium for the browser tests."""
    named = os.environ.get("WORKBENCH_CHROMIUM")
    found = find_browser()
    yield Check(
        "browser for tests",
        found is not None,
        found or (f"WORKBENCH_CHROMIUM is {named}, which does not run" if named else "no Chromium on the PATH"),
        "browser tests are skipped; run 'sudo apt-get install chromium' (Debian) or set WORKBENCH_CHROMIUM",
        needed=False,
    )


def folder() -> Iterator[Check]:
    """The current folder, the default place of histories, checkpoints and results."""
    here = Path.cwd()
    try:
        with tempfile.TemporaryFile(dir=here):
            pass
    except OSError as error:
        yield Check(
            "folder", False, f"cannot write to {here}: {error.strerror}", "change to a folder that you can write to"
        )
    else:
        yield Check("folder", True, f"can write to {here}")


def disk() -> Iterator[Check]:
    """Room for a history, its checkpoints and results."""
    free_gb = shutil.disk_usage(Path.cwd()).free / 1e9
    yield Check(
        "disk",
        free_gb >= DISK_LEAST_GB,
        f"{free_gb:,.1f} GB free",
        f"free some space: Spark and the histories need about {DISK_LEAST_GB:g} GB",
    )
