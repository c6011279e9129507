"""Imports optional packages: the error names the missing one, what it is needed for, and how to install it."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from types import ModuleType

from workbench.errors import MissingPackageError

DISTRIBUTION = "streaming-workbench"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def needed(module: str, purpose: str) -> ModuleType:
    """Import a module that needs packages besides numpy, pyarrow, numba and sqlglot.

    Args:
        module: of the package, or one of ours that imports it.
        purpose: what cannot be done without it.

    Raises:
        MissingPackageError: the package is not installed.

    Example:
        >>> needed("json", "reading settings").__name__
        'json'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = (error.name or module).partition(".")[0]
        if name == "workbench":
            raise
        raise MissingPackageError(
            f"{purpose} needs the package {name}: run 'pip install \"{requirement(name)}\"', "
            f"or 'pip install {DISTRIBUTION}' for everything"
        ) from None


def requirement(package: str) -> str:
    """A package with the versions that the workbench accepts, as a requirement for pip."""
    try:
        lines = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        lines = []
    for line in lines:
        wanted = line.partition(";")[0].strip()
        if (found := _NAME.match(wanted)) and found[0].lower().replace("_", "-") == package.lower().replace("_", "-"):
            return wanted
    return package
