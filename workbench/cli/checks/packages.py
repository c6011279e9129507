"""Checks of installed packages: those that the workbench requires, and the JupyterLab extension."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from workbench.cli.checks.check import Check

DISTRIBUTION = "streaming-workbench"
EXTENSION = "workbench-jupyterlab"


def requirements() -> Iterator[Check]:
    """Each package that the workbench requires on this platform, with its version."""
    for line in requires(DISTRIBUTION) or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield installed(requirement)


def installed(requirement: Requirement) -> Check:
    """Whether a package is installed in a suitable version."""
    mend = f"run '{sys.executable} -m pip install \"{requirement.name}{requirement.specifier}\"'"
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return Check(requirement.name, False, "not installed", mend)
    if not requirement.specifier.contains(found, prereleases=True):
        return Check(requirement.name, False, f"{found}, but {requirement.specifier} is needed", mend)
    return Check(requirement.name, True, found)


def lab_extension() -> Iterator[Check]:
    """The prebuilt extension, as JupyterLab itself would find it."""
    # Imported here, because the import takes a second.
    from jupyter_core.paths import jupyter_path
    from jupyterlab_server.config import get_page_config

    config = get_page_config(jupyter_path("labextensions"))
    if EXTENSION not in {extension["name"] for extension in config["federated_extensions"]}:
        mend = "jobs run without the sidebar; run 'make install' in the project's folder"
        yield Check("JupyterLab extension", False, f"{EXTENSION} is not installed", mend)
    elif disabled := [name for name in config["disabledExtensions"] if name.partition(":")[0] == EXTENSION]:
        mend = f"run 'jupyter labextension enable {EXTENSION}'"
        yield Check("JupyterLab extension", False, f"{', '.join(disabled)} is disabled", mend)
    else:
        yield Check("JupyterLab extension", True, f"{EXTENSION} is installed and enabled")
